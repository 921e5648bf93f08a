// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/dispatch.hpp"

#include <new>

#include "interpose/device/transfer_batch.hpp"
#include "interpose/message/record.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {

thread_local constinit bool in_library_collective = false;

Route route(CommEntry& entry, Collective what, std::int64_t bytes, bool blocking, bool may_test,
            LibraryForm* left) noexcept {
  CollectiveChoice choice;
  Route to;
  if (const Job* all = job(); !blocking && !(all && all->nonblocking)) return to;
  to.queue = choose_queue(entry.collectives, what, bytes, blocking, may_test, &choice);
  *left = choice.tested ? LibraryForm::tested : LibraryForm::as_called;
  if (to.queue) {
    to.owner = entry.collectives.queue;
    to.pipeline.piece = choice.chunk_bytes;
    to.pipeline.in_flight = choice.in_flight;
    to.bytes = bytes;
    to.saved_s = choice.library_s - choice.hierarchical_s;
  }
  return to;
}

int execute_collective(const Route& route, MPI_Comm comm, const char* call, std::unique_ptr<Operation> operation,
                       bool persistent, MPI_Request* request) {
  const Stopwatch watch(reporting());
  const char* variant = route.one_node ? "one node" : operation->variant();
  operation->pipeline = route.pipeline;
  operation->comm = comm;
  if (!persistent) {
    TransferBatch batch;
    operation->staged.copy_in();
    if (batch.flush()) return raise_error(comm);
  }
  if (request) {
    const int error = make_request(route.owner, std::move(operation), persistent, request);
    if (error != MPI_SUCCESS) return raise_error(comm, error);
  } else {
    const bool good =
        route.one_node ? route.one_node->run(*operation) : route.queue->add(*operation) && route.queue->run(*operation);
    if (!good) return raise_error(comm);
    TransferBatch batch;
    operation->staged.copy_out();
    if (batch.flush()) return raise_error(comm);
  }
  if (reporting()) [[unlikely]]
    record_collective(call, variant, route.bytes, watch.seconds(), route.saved_s);
  return MPI_SUCCESS;
}

bool may_be_quantised(const CommEntry& entry) noexcept {
  const Job* all = job();
  const int hint = entry.collectives.hints.quantise;
  return (hint != CommHints::none ? hint : all ? all->settings.quantise : 0) != 0;
}

DispatchedReduction dispatch_reduction(const CommEntry& entry, MPI_Op op, MPI_Datatype type, std::int64_t element_bytes,
                                       bool blocking) noexcept {
  if (element_bytes > 4096 || !MpiReduction::possible(type)) return {};
  switch (reassociation_of(op, type)) {
    case Reassociation::in_any_order: return {true, false};
    case Reassociation::in_one_order_in_the_call:
      if (!blocking) return {};
      [[fallthrough]];
    case Reassociation::in_one_order: {
      const Job* all = job();
      const int hint = entry.collectives.hints.reassociate;
      return {all && (hint != CommHints::none ? hint : all->settings.reassociate), true};
    }
    case Reassociation::by_mpi: break;
  }
  return {};
}

}  // namespace bestride::inline interpose
