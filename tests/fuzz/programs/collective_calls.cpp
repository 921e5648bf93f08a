// SPDX-License-Identifier: Apache-2.0
// The calls of a collective in their three forms.
#include "tests/fuzz/programs/collective.hpp"
#include "tests/fuzz/programs/common.h"

// The call in the given form. In the two forms with a request, it is the last argument.
#define IN_FORM(name, lower, ...)                                                \
  (form_ == Form::blocking      ? CALL(context_, name, __VA_ARGS__)              \
   : form_ == Form::nonblocking ? CALL(context_, I##lower, __VA_ARGS__, request) \
                                : CALL(context_, name##_init, __VA_ARGS__, MPI_INFO_NULL, request))

namespace bestride::fuzz {

void Collective::issue(Request& request) {
  if (reduces(what_))
    call_reduction(request);
  else
    call(request);
}

int Collective::call(Request& request) {
  const bool place = in_place(rank_), scatters = what_ == What::scatter || what_ == What::scatterv;
  const void* out = place && !scatters ? MPI_IN_PLACE : out_ ? static_cast<const void*>(out_->at()) : nullptr;
  void* in = place && scatters ? MPI_IN_PLACE : in_ ? static_cast<void*>(in_->at()) : nullptr;
  switch (what_) {
    case What::barrier:
      return form_ == Form::blocking      ? CALL(context_, Barrier, comm_)
             : form_ == Form::nonblocking ? CALL(context_, Ibarrier, comm_, request)
                                          : CALL(context_, Barrier_init, comm_, MPI_INFO_NULL, request);
    case What::bcast: return IN_FORM(Bcast, bcast, in, in_count_, in_type_, root_, comm_);
    case What::gather:
      return IN_FORM(Gather, gather, out, out_count_, out_type_, in, in_count_, in_type_, root_, comm_);
    case What::gatherv:
      return IN_FORM(Gatherv, gatherv, out, out_count_, out_type_, in, in_counts_, in_at_, in_type_, root_, comm_);
    case What::scatter:
      return IN_FORM(Scatter, scatter, out, out_count_, out_type_, in, in_count_, in_type_, root_, comm_);
    case What::scatterv:
      return IN_FORM(Scatterv, scatterv, out, out_counts_, out_at_, out_type_, in, in_count_, in_type_, root_, comm_);
    case What::allgather:
      return IN_FORM(Allgather, allgather, out, out_count_, out_type_, in, in_count_, in_type_, comm_);
    case What::allgatherv:
      return IN_FORM(Allgatherv, allgatherv, out, out_count_, out_type_, in, in_counts_, in_at_, in_type_, comm_);
    case What::alltoall: return IN_FORM(Alltoall, alltoall, out, out_count_, out_type_, in, in_count_, in_type_, comm_);
    case What::alltoallv:
      return IN_FORM(Alltoallv, alltoallv, out, out_counts_, out_at_, out_type_, in, in_counts_, in_at_, in_type_,
                     comm_);
    default:
      return IN_FORM(Alltoallw, alltoallw, out, out_counts_, out_at_, out_types_, in, in_counts_, in_at_, in_types_,
                     comm_);
  }
}

int Collective::call_reduction(Request& request) {
  const bool place = in_place(rank_);
  const void* out = place ? MPI_IN_PLACE : static_cast<const void*>(out_->at());
  void* in = in_ ? static_cast<void*>(in_->at()) : nullptr;
  switch (what_) {
    case What::reduce: return IN_FORM(Reduce, reduce, out, in, op_count_, in_type_, op_, root_, comm_);
    case What::allreduce: return IN_FORM(Allreduce, allreduce, out, in, op_count_, in_type_, op_, comm_);
    case What::reduce_scatter:
      return IN_FORM(Reduce_scatter, reduce_scatter, out, in, op_counts_, in_type_, op_, comm_);
    case What::reduce_scatter_block:
      return IN_FORM(Reduce_scatter_block, reduce_scatter_block, out, in, op_count_, in_type_, op_, comm_);
    case What::scan: return IN_FORM(Scan, scan, out, in, op_count_, in_type_, op_, comm_);
    default: return IN_FORM(Exscan, exscan, out, in, op_count_, in_type_, op_, comm_);
  }
}

void collective(Context& context, const Step& step) {
  Random common(seed_of(step, 1));
  CommSlot& slot = context.pick_comm(common);
  const int operations = static_cast<int>(common.chance(30) ? common.between(2, 3) : 1);
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
