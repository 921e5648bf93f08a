// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/refused_calls.hpp"

#include <atomic>
#include <utility>

#include "interpose/collectives/reduction_order.hpp"
#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {
namespace {

using namespace dispatch_detail;

/// The last operation that this thread has found to be accepted for a type, of predefined handles.
thread_local constinit std::pair<MPI_Op, MPI_Datatype> last_accepted __attribute__((tls_model("initial-exec"))) = {};

/// `type` is committed. True also if the library can't be asked.
bool accepts(MPI_Op op, MPI_Datatype type) noexcept {
  if (last_accepted == std::pair(op, type) && predefined(type)) return true;
  if (runtime().ops.known(op)) return true;
  if (reassociation_of(op, type) == Reassociation::by_mpi) {
    const MPI_Comm comm = library_checks() ? runtime().types.comm_for_asking() : MPI_COMM_NULL;
    std::int64_t none[2] = {};
    if (comm != MPI_COMM_NULL && real.Allreduce(&none[0], &none[1], 0, type, op, comm) != MPI_SUCCESS) return false;
  }
  last_accepted = {op, type};
  return true;
}

/// `gets`: this rank gets a result.
bool wrong_reduction(const ReductionArguments& given, bool gets) noexcept {
  if (given.operands < 0 || given.op == MPI_OP_NULL || wrong_type(given.type) || !accepts(given.op, given.type))
    return true;
  if (given.operands == 0) return false;
  if (given.send != MPI_IN_PLACE && (no_buffer(given.send, given.type) || (gets && given.send == given.receive)))
    return true;
  return gets && given.results > 0 && no_place(given.receive, given.type);
}

}  // namespace

namespace dispatch_detail {

bool begins_at_buffer(MPI_Datatype type) noexcept {
  if (!runtime().types.find(type)) return false;
  int size = 0;
  MPI_Aint lower = 0, extent = 0;
  return real.Type_size(type, &size) == MPI_SUCCESS && size != 0 &&
         real.Type_get_true_extent(type, &lower, &extent) == MPI_SUCCESS && lower == 0;
}

bool wrong_type(MPI_Datatype type) noexcept {
  TypeRegistry& types = runtime().types;
  return !types.committed(type) && (type == MPI_DATATYPE_NULL || !types.asked_committed(type));
}

/// The library is asked once, by calls on this rank alone: whether it looks at arguments at all, which it does not if
/// it was built so, and whether it compares buffers, as MPICH does. A library that does not look moves one integer to
/// its own place.
bool library_checks() noexcept {
  enum class Answer : unsigned char { unknown, no, yes };
  static std::atomic<Answer> answer{Answer::unknown};
  if (answer.load(std::memory_order_relaxed) == Answer::unknown) {
    const MPI_Comm comm = runtime().types.comm_for_asking();
    if (comm == MPI_COMM_NULL) return false;
    int number = 0;
    const bool checks = real.Allreduce(&number, &number, 1, MPI_INT, MPI_SUM, comm) != MPI_SUCCESS;
    answer.store(checks ? Answer::yes : Answer::no, std::memory_order_relaxed);
  }
  return answer.load(std::memory_order_relaxed) == Answer::yes;
}

}  // namespace dispatch_detail

bool refuses_reduction(const ReductionArguments& given) noexcept {
  return wrong_reduction(given, true) && library_checks();
}

bool refuses_reduction(const CommEntry& entry, const ReductionArguments& given, int root) noexcept {
  return (wrong_root(entry, root) || wrong_reduction(given, entry.rank() == root)) && library_checks();
}

}  // namespace bestride::inline interpose
