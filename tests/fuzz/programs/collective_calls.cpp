// SPDX-License-Identifier: Apache-2.0
// The calls of a collective in their three forms.
#include "tests/fuzz/programs/collective.hpp"
#include "tests/fuzz/programs/common.h"

// The call in the given form and size of counts. In the two forms with a request, it is the last argument.
#define IN_SIZE(name, lower, size, ...)                                                \
  (form_ == Form::blocking      ? CALL(context_, name##size, __VA_ARGS__)              \
   : form_ == Form::nonblocking ? CALL(context_, I##lower##size, __VA_ARGS__, request) \
                                : CALL(context_, name##_init##size, __VA_ARGS__, MPI_INFO_NULL, request))
#define IN_FORM(name, lower, ...) (large_ ? IN_SIZE(name, lower, _c, __VA_ARGS__) : IN_SIZE(name, lower, , __VA_ARGS__))
#define ONE(arguments) arguments.buffer, arguments.count, arguments.type
#define VARYING(arguments, counts, at) arguments.buffer, counts, at, arguments.type

namespace bestride::fuzz {

void Collective::issue(Request& request) {
  be_late(context_, spelling_of(rank_));
  const int code = reduces(what_) ? call_reduction(request) : call(request);
  if (code != MPI_SUCCESS) context_.say("WRONG:" + label + ":rejected");
}

int Collective::call(Request& request) {
  const Arguments &out = out_args_, &in = in_args_;
  // MPICH compares the addresses of these arrays if both directions have one base address.
  const Spelling spelling = spelling_of(rank_);
  const bool shares = spelling.is(Way::one_list) && raw(out.buffer) != raw(in.buffer);
  const List &in_counts = shares && in.counts == out.counts ? out.counts : in.counts,
             &in_at = shares && in.at == out.at ? out.at : in.at,
             &in_types = shares && in.types == out.types ? out.types : in.types;
  switch (what_) {
    case What::barrier:
      return form_ == Form::blocking      ? CALL(context_, Barrier, comm_)
             : form_ == Form::nonblocking ? CALL(context_, Ibarrier, comm_, request)
                                          : CALL(context_, Barrier_init, comm_, MPI_INFO_NULL, request);
    case What::bcast: return IN_FORM(Bcast, bcast, ONE(in), root_, comm_);
    case What::gather: return IN_FORM(Gather, gather, ONE(out), ONE(in), root_, comm_);
    case What::gatherv: return IN_FORM(Gatherv, gatherv, ONE(out), VARYING(in, in.counts, in.at), root_, comm_);
    case What::scatter: return IN_FORM(Scatter, scatter, ONE(out), ONE(in), root_, comm_);
    case What::scatterv: return IN_FORM(Scatterv, scatterv, VARYING(out, out.counts, out.at), ONE(in), root_, comm_);
    case What::allgather: return IN_FORM(Allgather, allgather, ONE(out), ONE(in), comm_);
    case What::allgatherv: return IN_FORM(Allgatherv, allgatherv, ONE(out), VARYING(in, in.counts, in.at), comm_);
    case What::alltoall: return IN_FORM(Alltoall, alltoall, ONE(out), ONE(in), comm_);
    case What::alltoallv:
      return IN_FORM(Alltoallv, alltoallv, VARYING(out, out.counts, out.at), VARYING(in, in_counts, in_at), comm_);
    default:
      return IN_FORM(Alltoallw, alltoallw, out.buffer, out.counts, out.at, out.types, in.buffer, in_counts, in_at,
                     in_types, comm_);
  }
}

int Collective::call_reduction(Request& request) {
  const Place &out = out_args_.buffer, &in = in_args_.buffer;
  switch (what_) {
    case What::reduce: return IN_FORM(Reduce, reduce, out, in, op_count_, op_type_, op_, root_, comm_);
    case What::allreduce: return IN_FORM(Allreduce, allreduce, out, in, op_count_, op_type_, op_, comm_);
    case What::reduce_scatter: return IN_FORM(Reduce_scatter, reduce_scatter, out, in, op_list_, op_type_, op_, comm_);
    case What::reduce_scatter_block:
      return IN_FORM(Reduce_scatter_block, reduce_scatter_block, out, in, op_count_, op_type_, op_, comm_);
    case What::scan: return IN_FORM(Scan, scan, out, in, op_count_, op_type_, op_, comm_);
    default: return IN_FORM(Exscan, exscan, out, in, op_count_, op_type_, op_, comm_);
  }
}

void collective(Context& context, const Step& step) {
  Random common(seed_of(step, 1));
  CommSlot& slot = context.pick_comm(common);
  // The library shares memory from the third call on a communicator on.
  const int operations = static_cast<int>(common.chance(30) ? common.between(2, 4) : 1);
  const bool blocking = common.chance(40);
  if (slot.mine < 0) return;
  std::vector<OperationPtr> set;
  for (int i = 0; i < operations; ++i) {
    const Form form = blocking ? Form::blocking : Form::nonblocking;
    auto one = std::make_shared<Collective>(context, step, slot, form, i);
    auto operation = context.add(one->label);
    operation->collective = true;
    one->issue(operation->request);
    const bool early = blocking || (step.types >= 3 && context.own.chance(50));
    one->free_handles(early);
    operation->report = [one, early] {
      one->report();
      one->free_handles(!early);
    };
    if (blocking)
      operation->report();
    else
      set.push_back(operation);
  }
  context.finish_step(step, std::move(set), true);
}

}  // namespace bestride::fuzz
