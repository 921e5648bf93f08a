// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/refused_calls.hpp"

#include <atomic>

#include "interpose/collectives/reduction_order.hpp"
#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {
namespace {

using namespace dispatch_detail;

/// Which faults the library finds before it communicates.
enum class Checks : unsigned char { unknown, none, some, as_mpich };

/// The library is asked once, by calls on this rank alone: whether it looks at arguments at all, which it does not if
/// it was built so, and whether it compares buffers, as MPICH does. A library that does neither moves nothing, or one
/// integer to its own place.
Checks library_checks() noexcept {
  static std::atomic<Checks> answer{Checks::unknown};
  Checks known = answer.load(std::memory_order_relaxed);
  if (known == Checks::unknown) {
    const MPI_Comm comm = runtime().types.comm_for_asking();
    if (comm == MPI_COMM_NULL) return Checks::none;
    int number = 0;
    known = real.Bcast(&number, 0, MPI_INT, 1, comm) == MPI_SUCCESS                      ? Checks::none
            : real.Allreduce(&number, &number, 1, MPI_INT, MPI_SUM, comm) == MPI_SUCCESS ? Checks::some
                                                                                         : Checks::as_mpich;
    answer.store(known, std::memory_order_relaxed);
  }
  return known;
}

/// An operation that the library accepts for a type.
struct AcceptedPair {
  MPI_Op op;
  MPI_Datatype type;
};
/// The last one that this thread has found, of predefined handles.
thread_local constinit AcceptedPair last_accepted __attribute__((tls_model("initial-exec"))) = {};

/// `type` is committed. True also if the library can't be asked.
bool accepts(MPI_Op op, MPI_Datatype type) noexcept {
  if (last_accepted.op == op && last_accepted.type == type && predefined(type)) return true;
  if (runtime().ops.known(op)) return true;
  if (reassociation_of(op, type) == Reassociation::by_mpi) {
    const MPI_Comm comm = library_checks() != Checks::none ? runtime().types.comm_for_asking() : MPI_COMM_NULL;
    std::int64_t none[2] = {};
    if (comm != MPI_COMM_NULL && real.Allreduce(&none[0], &none[1], 0, type, op, comm) != MPI_SUCCESS) return false;
  }
  last_accepted = {op, type};
  return true;
}

Fault fault_of_operation(const ReductionArguments& given) noexcept {
  if (given.op == MPI_OP_NULL) return Fault::in_any_library;
  const Fault of_type = fault_of_type(given.type, given.operands > 0);
  if (of_type != Fault::none) return of_type;
  return accepts(given.op, given.type) ? Fault::none : Fault::in_any_library;
}

/// `gets`: this rank gets a result.
Fault fault_of_reduction(const ReductionArguments& given, bool gets) noexcept {
  if (given.operands < 0) return Fault::in_any_library;
  if (const Fault fault = fault_of_operation(given); fault != Fault::none || given.operands == 0) return fault;
  if (given.send != MPI_IN_PLACE && (no_buffer(given.send, given.type) || (gets && given.send == given.receive)))
    return Fault::in_mpich;
  return gets && given.results > 0 && (given.receive == MPI_IN_PLACE || no_buffer(given.receive, given.type))
             ? Fault::in_mpich
             : Fault::none;
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

Fault fault_of_type(MPI_Datatype type, bool any_elements) noexcept {
  TypeRegistry& types = runtime().types;
  if (types.committed(type)) return Fault::none;
  if (type == MPI_DATATYPE_NULL) return any_elements ? Fault::in_any_library : Fault::in_mpich;
  return types.asked_committed(type) ? Fault::none : Fault::in_mpich;
}

bool refuses(Fault fault) noexcept {
  return library_checks() >= (fault == Fault::in_any_library ? Checks::some : Checks::as_mpich);
}

}  // namespace dispatch_detail

bool refuses_reduction(const ReductionArguments& given) noexcept {
  const Fault fault = fault_of_reduction(given, true);
  return fault != Fault::none && refuses(fault);
}

bool refuses_reduction(const CommEntry& entry, const ReductionArguments& given, int root) noexcept {
  const Fault fault = std::max(fault_of_root(entry, root), fault_of_reduction(given, entry.rank() == root));
  return fault != Fault::none && refuses(fault);
}

}  // namespace bestride::inline interpose
