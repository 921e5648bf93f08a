// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"

#include <sched.h>

#include <algorithm>

#include "base/profiling_names.hpp"  // after mpi.h

namespace collectives {

// The names in MPI_Name and in MPI_Iname.
#define COLLECTIVES(X)                          \
  X(Allgather, allgather)                       \
  X(Allgatherv, allgatherv)                     \
  X(Bcast, bcast)                               \
  X(Reduce_scatter_block, reduce_scatter_block) \
  X(Reduce_scatter, reduce_scatter)             \
  X(Allreduce, allreduce)                       \
  X(Reduce, reduce)                             \
  X(Gather, gather)                             \
  X(Scatter, scatter)                           \
  X(Alltoall, alltoall)

struct Names {
#define MEMBERS(Name, name)       \
  decltype(&MPI_##Name) name;     \
  decltype(&MPI_I##name) i##name; \
  decltype(&MPI_##Name##_init) name##_init;
  COLLECTIVES(MEMBERS)
#undef MEMBERS
  decltype(&MPI_Start) start;
  decltype(&MPI_Test) test;
};

#define MPI_ENTRIES(Name, name) MPI_##Name, MPI_I##name, MPI_##Name##_init,
#define PMPI_ENTRIES(Name, name) PMPI_##Name, PMPI_I##name, PMPI_##Name##_init,
const Names mpi_names = {COLLECTIVES(MPI_ENTRIES) MPI_Start, MPI_Test};
const Names pmpi_names = {COLLECTIVES(PMPI_ENTRIES) PMPI_Start, PMPI_Test};

namespace {

void finish(const Names& names, MPI_Request* request) {
  for (int done = 0; !done;) {
    names.test(request, &done, MPI_STATUS_IGNORE);
    if (!done) sched_yield();
  }
}

}  // namespace

Operation::Operation(Kind kind, std::size_t bytes, Element element)
    : kind_(kind), type_(element == Element::int32 ? MPI_INT32_T : MPI_FLOAT) {
  int rank = 0, ranks = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const bool root = rank == 0;
  elements_ = std::max(bytes / 4, std::size_t(ranks));
  const bool any_length = kind == Kind::allgatherv || kind == Kind::reduce_scatter || kind == Kind::bcast ||
                          kind == Kind::allreduce || kind == Kind::reduce;
  if (!any_length) elements_ -= elements_ % ranks;
  block_ = int(elements_ / ranks);
  int place = 0;
  for (int r = 0; r < ranks; ++r) {
    counts_.push_back(block_ + (std::size_t(r) < elements_ % ranks));
    places_.push_back(place);
    place += counts_.back();
  }
  const std::size_t own = counts_[rank], all = elements_, at_root = root ? all : 0;
  switch (kind) {
    case Kind::allgather:
    case Kind::allgatherv: contribution_ = own, result_ = all; break;
    case Kind::bcast: contribution_ = at_root, result_ = all; break;
    case Kind::reduce_scatter_block:
    case Kind::reduce_scatter: contribution_ = all, result_ = own; break;
    case Kind::allreduce:
    case Kind::alltoall: contribution_ = all, result_ = all; break;
    case Kind::reduce: contribution_ = all, result_ = at_root; break;
    case Kind::gather: contribution_ = own, result_ = at_root; break;
    case Kind::scatter: contribution_ = at_root, result_ = own; break;
  }
}

/// Calls apply(blocking, nonblocking, persistent, common arguments...).
template <class Apply>
void Operation::apply(const Names& n, const void* give, void* take, Apply apply) const {
  constexpr MPI_Comm world = MPI_COMM_WORLD;
  const MPI_Datatype t = type_;
  const int all = int(elements_), own = int(contribution_);
#define FORMS(name) n.name, n.i##name, n.name##_init
  switch (kind_) {
    case Kind::allgather: return apply(FORMS(allgather), give, block_, t, take, block_, t, world);
    case Kind::allgatherv:
      return apply(FORMS(allgatherv), give, own, t, take, counts_.data(), places_.data(), t, world);
    case Kind::bcast: return apply(FORMS(bcast), take, all, t, 0, world);
    case Kind::reduce_scatter_block: return apply(FORMS(reduce_scatter_block), give, take, block_, t, MPI_SUM, world);
    case Kind::reduce_scatter: return apply(FORMS(reduce_scatter), give, take, counts_.data(), t, MPI_SUM, world);
    case Kind::allreduce: return apply(FORMS(allreduce), give, take, all, t, MPI_SUM, world);
    case Kind::reduce: return apply(FORMS(reduce), give, take, all, t, MPI_SUM, 0, world);
    case Kind::gather: return apply(FORMS(gather), give, block_, t, take, block_, t, 0, world);
    case Kind::scatter: return apply(FORMS(scatter), give, block_, t, take, block_, t, 0, world);
    case Kind::alltoall: return apply(FORMS(alltoall), give, block_, t, take, block_, t, world);
  }
#undef FORMS
}

void Operation::call(const Names& names, const void* contribution, void* result) const {
  apply(names, contribution, result, [](auto now, auto, auto, auto... arguments) { now(arguments...); });
}

void Operation::call_nonblocking(const Names& names, const void* contribution, void* result) const {
  MPI_Request request = MPI_REQUEST_NULL;
  apply(names, contribution, result, [&](auto, auto later, auto, auto... arguments) { later(arguments..., &request); });
  finish(names, &request);
}

MPI_Request Operation::make_persistent(const Names& names, const void* contribution, void* result) const {
  MPI_Request request = MPI_REQUEST_NULL;
  apply(names, contribution, result,
        [&](auto, auto, auto make, auto... arguments) { make(arguments..., MPI_INFO_NULL, &request); });
  return request;
}

void Operation::run_persistent(const Names& names, MPI_Request* request) const {
  names.start(request);
  finish(names, request);
}

}  // namespace collectives
