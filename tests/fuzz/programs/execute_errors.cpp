// SPDX-License-Identifier: Apache-2.0
// Invalid arguments, with MPI_ERRORS_RETURN or an error handler of the program: checks the error class, and which
// handler is called how often.
#include "tests/fuzz/programs/collective.hpp"
#include "tests/fuzz/programs/common.h"
#include "tests/fuzz/programs/received.hpp"

namespace bestride::fuzz {
namespace {

/// Errors that every rank detects in its own arguments before it communicates.
void wrong_arguments(Context& context, const Step& step, MPI_Comm comm, Random& common, int size) {
  Buffer x(context, {seed_of(step, 3), 0, 0, 8192}), y(context, {seed_of(step, 4), 0, 0, 8192 * size});
  const void* out = x.at();
  void* in = y.at();
  const int n = 1 + static_cast<int>(common.between(0, 1) * 1000);
  for (int i = static_cast<int>(common.between(1, 3)); i > 0; --i) {
    MPI_Request request = MPI_REQUEST_NULL;
    Request slot;
    slot.id = ++context.operations;
    switch (common.between(0, 15)) {
      case 0: CALL(context, Bcast, in, n, MPI_INT, size + 3, comm); break;
      case 1: CALL(context, Bcast, in, -1, MPI_INT, 0, comm); break;
      case 2: CALL(context, Bcast, in, n, MPI_DATATYPE_NULL, 0, comm); break;
      case 3: CALL(context, Bcast, in, n, MPI_INT, 0, MPI_COMM_NULL); break;
      case 4: CALL(context, Allreduce, out, in, n, MPI_INT, MPI_OP_NULL, comm); break;
      case 5: CALL(context, Allreduce, out, in, n, MPI_DOUBLE, MPI_BAND, comm); break;
      case 6: CALL(context, Reduce, out, in, n, MPI_INT, MPI_SUM, -7, comm); break;
      case 7: CALL(context, Gather, out, n, MPI_INT, in, n, MPI_INT, 99, comm); break;
      case 8: CALL(context, Send, out, -1, MPI_INT, 0, 1, comm); break;
      case 9: CALL(context, Send, out, n, MPI_INT, size + 5, 1, comm); break;
      case 10: CALL(context, Isend, out, n, MPI_DATATYPE_NULL, 0, 1, comm, slot); break;
      case 11: CALL(context, Irecv, in, n, MPI_INT, 0, -77, comm, slot); break;
      case 12: {
        MPI_Datatype uncommitted = MPI_DATATYPE_NULL;
        CALL(context, Type_contiguous, 2, MPI_INT, (New{&uncommitted, "t"}));
        CALL(context, Bcast, in, n, uncommitted, 0, comm);
        CALL(context, Type_free, Gone{&uncommitted});
        break;
      }
      case 13: CALL(context, Allgather, out, n, MPI_INT, static_cast<void*>(nullptr), n, MPI_INT, comm); break;
      case 14: CALL(context, Iallgather, out, n, MPI_DATATYPE_NULL, in, n, MPI_INT, comm, slot); break;
      default: {
        MPI_Datatype null = MPI_DATATYPE_NULL;
        CALL(context, Type_free, Gone{&null});
      }
    }
    (void)request;
  }
}

/// A message longer than the posted receive. The receive is blocking, so its communicator's handler gets the error.
void truncation(Context& context, const Step& step, MPI_Comm comm, int rank, int size, Random& common) {
  if (size < 2) return;
  const int n = static_cast<int>(common.between(2, 500)), tag = step.number % 1000 * 8;
  Buffer x(context, {seed_of(step, 5), 0, 0, 8 * n});
  if (rank == 0) {
    Request request;
    request.id = ++context.operations;
    Status status;
    status.id = request.id;
    CALL(context, Isend, static_cast<const void*>(x.at()), n, MPI_DOUBLE, 1, tag, comm, request);
    CALL(context, Wait, request, status);
  } else if (rank == 1) {
    Status status;
    status.id = ++context.operations;
    CALL(context, Recv, static_cast<void*>(x.at()), n - 1, MPI_DOUBLE, 0, tag, comm, status);
  }
}

enum class Error { on_all_ranks, on_one_rank, truncated };

void wrong_or_truncated(Context& context, const Step& step, const CommSlot& slot, Random& common, Error error) {
  if (error == Error::truncated)
    truncation(context, step, slot.h, slot.rank, slot.group().size(), common);
  else if (error == Error::on_one_rank)
    refused(context, step, slot, common);
  else
    wrong_arguments(context, step, slot.h, common, slot.group().size());
}

}  // namespace

void errors(Context& context, const Step& step) {
  Random common(seed_of(step, 1));
  CommSlot& slot = context.pick_comm(common);
  const bool own = common.chance(60), world_too = common.chance(50);
  constexpr Error drawn[] = {Error::on_all_ranks, Error::on_one_rank, Error::on_one_rank, Error::truncated};
  const Error error = common.pick(drawn);
  if (slot.mine < 0) return;
  if (!own) return wrong_or_truncated(context, step, slot, common, error);
  MPI_Errhandler mine = MPI_ERRHANDLER_NULL, other = MPI_ERRHANDLER_NULL, before = MPI_ERRHANDLER_NULL;
  fuzz_expected_comm = slot.h;
  if (context.recorder) context.line("fuzz_expected_comm = " + context.recorder->handle(slot.h) + ";");
  CALL(context, Comm_create_errhandler, (Named<MPI_Comm_errhandler_function*>{fuzz_comm_handler, "fuzz_comm_handler"}),
       (New{&mine, "handler"}));
  CALL(context, Comm_get_errhandler, slot.h, (New{&before, "handler"}));
  if (world_too && !slot.world) {
    CALL(context, Comm_create_errhandler,
         (Named<MPI_Comm_errhandler_function*>{fuzz_other_handler, "fuzz_other_handler"}), (New{&other, "handler"}));
    CALL(context, Comm_set_errhandler, MPI_COMM_WORLD, other);
  }
  CALL(context, Comm_set_errhandler, slot.h, mine);
  wrong_or_truncated(context, step, slot, common, error);
  CALL(context, Comm_set_errhandler, slot.h, before);
  if (other != MPI_ERRHANDLER_NULL) {
    CALL(context, Comm_set_errhandler, MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CALL(context, Errhandler_free, Gone{&other});
  }
  CALL(context, Errhandler_free, Gone{&mine});
  // MPI_Comm_get_errhandler returned a new reference.
  if (before != MPI_ERRORS_RETURN && before != MPI_ERRORS_ARE_FATAL) CALL(context, Errhandler_free, Gone{&before});
}

void throwing(Context& context, const Step& step) {
  // C programs have no exceptions, and with threads MPICH holds a lock when it calls a handler.
  if (context.recorder || context.program->threads) return;
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Comm_create_errhandler(fuzz_throwing_handler, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  double x[8] = {};
  MPI_Request request = MPI_REQUEST_NULL;
  const auto caught = [&](const char* name, auto call) {
    int got = -1;
    try {
      call();
    } catch (int error) {
      got = error;
    }
    context.item(name, got);
  };
  caught("send", [&] { MPI_Send(x, -1, MPI_DOUBLE, 0, 0, comm); });
  caught("recv", [&] { MPI_Recv(x, 1, MPI_DATATYPE_NULL, 0, 0, comm, MPI_STATUS_IGNORE); });
  caught("bcast", [&] { MPI_Bcast(x, 1, MPI_DOUBLE, 7, comm); });
  caught("isend", [&] { MPI_Isend(x, 1, MPI_DOUBLE, 9, 0, comm, &request); });
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
}

}  // namespace bestride::fuzz
