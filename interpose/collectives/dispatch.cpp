// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/dispatch.hpp"

#include <new>

#include "base/float_environment.hpp"
#include "interpose/collectives/comm_parts.hpp"
#include "interpose/collectives/maximum.hpp"
#include "interpose/collectives/queue.hpp"
#include "interpose/device/transfer_batch.hpp"
#include "interpose/message/report_entry.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {
namespace {

bool reassociation_permitted(const CommEntry& entry) noexcept {
  const Job* all = job();
  const int hint = collectives_of(entry).hints.reassociate;
  return all && (hint != CommHints::none ? hint : all->settings.reassociate);
}

}  // namespace

Route route(CommEntry& entry, Collective what, std::int64_t bytes, bool blocking, bool exact) noexcept {
  CollectiveChoice choice;
  Route to;
  if (const Job* all = job(); !blocking && !(all && all->nonblocking)) return to;
  to.queue = choose_queue(collectives_of(entry), what, bytes, blocking, exact, &choice);
  if (to.queue) {
    const FloatEnvironment floats;
    to.owner = collectives_of(entry).queue;
    to.pipeline.piece = choice.chunk_bytes;
    to.pipeline.in_flight = choice.in_flight;
    to.bytes = bytes;
    to.saved_s = choice.library_s - choice.hierarchical_s;
  }
  return to;
}

Route nonblocking_on_one_node(CommEntry& entry, Collective what, std::optional<std::int64_t> bytes) noexcept {
  CommCollectives& collectives = collectives_of(entry);
  Route to;
  const Job* const all = job();
  if (!all || !all->nonblocking_on_node) return to;
  const OneNodeLimits& limits = all->settings.one_node;
  if (bytes ? !nonblocking_on_one_node(what, *bytes, entry.size(), collectives.shares_always, limits)
            : !(collectives.shares_always || limits.requests))
    return to;
  // The members can't ask each other, so only what they all know counts.
  constexpr std::int64_t unknown_bytes = 32 * 4096;
  collectives.usage.add(bytes.value_or(unknown_bytes));
  if (collectives.shares_always ? collectives.one_node_starts++ < 2 : collectives.usage.sum < Usage::small_pays)
    return to;
  if (!make_one_node_queue(entry)) return to;
  to.wants_full_memory = collectives.usage.sum >= Usage::full_pays;
  to.owner = collectives.queue;
  to.queue = to.owner.get();
  to.bytes = bytes.value_or(0);
  return to;
}

namespace {
/// True if the members may carry out a persistent collective. The same on all members.
bool may_be_persistent(const CommEntry& entry) noexcept {
  const Job* all = job();
  const CommCollectives& collectives = collectives_of(entry);
  if (!may_share_memory(entry)) return collectives.queue != nullptr;
  return all && all->nonblocking_on_node && (collectives.shares_always || all->settings.one_node.requests);
}
}  // namespace

bool refused_on_any_member(MPI_Comm comm, bool refused) noexcept {
  const CommMember entry(comm, true);
  if (!entry || !may_be_persistent(*entry)) return refused;
  before_library_collective(comm);
  return !on_all_members(comm, !refused);
}

Route persistent_on_one_node(MPI_Comm comm, CommEntry& entry, Collective what, std::int64_t* bytes, bool varying,
                             bool gaps) noexcept {
  Route to;
  if (!may_be_persistent(entry)) return to;
  before_library_collective(comm);
  const std::int64_t own[] = {*bytes, gaps};
  std::int64_t most[] = {0, 0};
  if (real.Allreduce(own, most, 2, MPI_INT64_T, maximum(), comm) != MPI_SUCCESS) return to;
  *bytes = most[0];
  if (!persistent_on_one_node(what, most[0], entry.size(), collectives_of(entry).shares_always, varying, most[1] != 0))
    return to;
  to.owner = make_persistent_queue(comm, entry, most[0]);
  to.queue = to.owner.get();
  to.bytes = most[0];
  return to;
}

bool run_to_end(const Route& route, Operation& operation) noexcept {
  return route.one_node ? route.one_node->run(operation) : route.queue->add(operation) && route.queue->run(operation);
}

std::optional<int> execute_collective(const Route& route, MPI_Comm comm, const char* call,
                                      std::unique_ptr<Operation> operation, bool persistent, MPI_Request* request) {
  const Stopwatch watch(reporting());
  const char* const of_queue = route.queue ? route.queue->variant() : nullptr;
  const char* variant = route.one_node ? "one node" : of_queue ? of_queue : operation->variant();
  operation->pipeline = route.pipeline;
  operation->wants_full_memory = route.wants_full_memory;
  operation->comm = comm;
  if (!persistent) {
    TransferBatch batch;
    operation->staged.copy_in();
    if (batch.flush()) {
      if (route.one_node) route.one_node->leave();
      return raise_error(comm);
    }
  }
  if (request) {
    const int error = make_request(route.owner, std::move(operation), persistent, request);
    if (error != MPI_SUCCESS) return raise_error(comm, error);
  } else {
    if (route.queue && operation->asks_members()) {
      before_library_collective(comm);
      if (!on_all_members(comm, !operation->must_leave())) return std::nullopt;
    }
    const bool good = run_to_end(route, *operation);
    if (operation->outcome == CallOutcome::left) return std::nullopt;
    if (route.one_node) route.one_node->close();
    if (!good) {
      operation->failed = true;  // also if it was not added to its queue
      return raise_error(comm, operation->error());
    }
    TransferBatch batch;
    operation->staged.copy_out();
    if (batch.flush()) return raise_error(comm);
  }
  if (reporting()) [[unlikely]]
    record_collective(call, variant, route.bytes, watch.seconds(), route.saved_s);
  return MPI_SUCCESS;
}

bool may_be_quantized(const CommEntry& entry) noexcept {
  const Job* all = job();
  const int hint = collectives_of(entry).hints.quantize;
  return (hint != CommHints::none ? hint : all ? all->settings.quantize : 0) != 0;
}

DispatchedReduction reduction_of_nothing(MPI_Op op, MPI_Datatype type) noexcept {
  return {reassociation_of(op, type) != Reassociation::by_mpi};
}

DispatchedReduction dispatch_reduction(const CommEntry& entry, MPI_Op op, MPI_Datatype type, std::int64_t element_bytes,
                                       bool blocking) noexcept {
  if (element_bytes > 4096 || !MpiReduction::possible(type)) return {};
  // The progress thread may have to combine elements, and it may not call MPI.
  if (!blocking && collectives_of(entry).on_one_node && !integer_operation(op, type)) return {};
  switch (reassociation_of(op, type)) {
    case Reassociation::in_any_order: return {true, false, false, false, true};
    case Reassociation::in_any_order_if_ordinary: {
      const bool permitted = reassociation_permitted(entry);
      return {permitted, false, false, !permitted && blocking, true};
    }
    case Reassociation::in_one_order_in_the_call:
      if (!blocking) return {};
      [[fallthrough]];
    case Reassociation::in_one_order: {
      const Job* all = job();
      const bool permitted = reassociation_permitted(entry);
      return {permitted, true, all && !permitted && blocking && all->settings.calls_before_order >= 0, false, true};
    }
    case Reassociation::by_mpi: break;
  }
  return {};
}

}  // namespace bestride::inline interpose
