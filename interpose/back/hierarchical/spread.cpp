// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/hierarchical/spread.hpp"

#include <new>

#include "interpose/back/gpu/together.hpp"
#include "interpose/back/note.hpp"
#include "interpose/back/runtime.hpp"

namespace bestride {

Route route(CommEntry& entry, Collective what, std::int64_t bytes, bool blocking, bool may_test, LibraryForm* left) noexcept {
  CollectiveChoice choice;
  Route to;
  to.queue = entry.collectives.choose(what, bytes, blocking, may_test, &choice);
  *left = choice.tested ? LibraryForm::tested : LibraryForm::as_called;
  if (to.queue) {
    to.owner = entry.collectives.queue();
    to.pace.piece = choice.chunk_bytes;
    to.pace.in_flight = choice.in_flight;
    to.bytes = bytes;
    to.saved_s = choice.library_s - choice.hierarchical_s;
  }
  return to;
}

Route route_of_any_size(CommEntry& entry, Collective what, std::int64_t bytes, bool blocking) noexcept {
  const Job* all = job();
  if (!all || all->chooser.parameters().mode != CollectiveMode::hierarchical) return {};
  // Pieces as for long blocks: of short ones there is one.
  LibraryForm left;
  Route to = route(entry, what, std::int64_t{1} << 30, blocking, false, &left);
  to.bytes = bytes;
  to.saved_s = 0;
  return to;
}

int carry_spread(const Route& route, MPI_Comm comm, const char* call, std::unique_ptr<Operation> operation, bool persistent,
                 MPI_Request* request) noexcept {
  const Stopwatch watch(reporting());
  const char* way = operation->way();
  operation->pace = route.pace;
  operation->comm = comm;
  int error = MPI_SUCCESS;
  if (!persistent) {
    Together together;
    operation->staged.bring_in();
    if (together.conclude()) return raise(comm);
  }
  if (request) {
    error = give_request(route.owner, std::move(operation), persistent, request);
    if (error != MPI_SUCCESS) return raise(comm, error);
  } else {
    if (!route.queue->add(*operation) || !route.queue->run(*operation)) return raise(comm);
    Together together;
    operation->staged.bring_out();
    if (together.conclude()) return raise(comm);
    if (operation->truncated) error = raise(comm, MPI_ERR_TRUNCATE);
  }
  if (reporting()) [[unlikely]] note_spread(call, way, route.bytes, watch.seconds(), route.saved_s);
  return error;
}

bool may_be_quantised(const CommEntry& entry) noexcept {
  const Job* all = job();
  const int hint = entry.collectives.hints.quantise;
  return (hint != CommHints::none ? hint : all ? all->settings.quantise : 0) != 0;
}

SpreadReduction spread_reduction(const CommEntry& entry, MPI_Op op, MPI_Datatype type, std::int64_t element_bytes, bool blocking) noexcept {
  if (element_bytes > 4096 || !MpiReduction::possible(type)) return {};
  switch (how_applied(op, type)) {
    case Applied::in_any_order: return {true, false};
    case Applied::in_one_order_in_the_call:
      if (!blocking) return {};
      [[fallthrough]];
    case Applied::in_one_order: {
      const Job* all = job();
      const int hint = entry.collectives.hints.reassociate;
      return {all && (hint != CommHints::none ? hint : all->settings.reassociate), true};
    }
    case Applied::by_mpi: break;
  }
  return {};
}

}  // namespace bestride
