// SPDX-License-Identifier: Apache-2.0
#include "communication.hpp"

#include <utility>

namespace zero_step {
namespace {

constexpr MPI_Comm world = MPI_COMM_WORLD;

}  // namespace

// Errors: MPI's default error handler ends the job.
Operation::Operation(Form form, Now now, Later start, const Later& make)
    : form_(form), now_(std::move(now)), later_(std::move(start)) {
  if (form_ == Form::persistent) make(&request_);
}

Operation::Operation(Operation&& other) noexcept
    : form_(other.form_),
      now_(std::move(other.now_)),
      later_(std::move(other.later_)),
      request_(std::exchange(other.request_, MPI_REQUEST_NULL)),
      running_(std::exchange(other.running_, false)) {}

Operation::~Operation() {
  if (request_ != MPI_REQUEST_NULL) MPI_Request_free(&request_);
}

void Operation::start() {
  running_ = true;
  if (form_ == Form::blocking)
    now_();
  else if (form_ == Form::nonblocking)
    later_(&request_);
  else
    MPI_Start(&request_);
}

void Operation::finish() {
  if (running_ && form_ != Form::blocking) MPI_Wait(&request_, MPI_STATUS_IGNORE);
  running_ = false;
}

#if MPI_VERSION >= 4
#define ZERO_STEP_PERSISTENT(call) [=](MPI_Request* request) { return call; }
#else
#define ZERO_STEP_PERSISTENT(call) [](MPI_Request*) { return MPI_ERR_OTHER; }  // not reached: parse() rejects the form
#endif

Operation make_allgather(Form form, const void* share, void* all, int count, MPI_Datatype type) {
  return {
      form, [=] { return MPI_Allgather(share, count, type, all, count, type, world); },
      [=](MPI_Request* request) { return MPI_Iallgather(share, count, type, all, count, type, world, request); },
      ZERO_STEP_PERSISTENT(MPI_Allgather_init(share, count, type, all, count, type, world, MPI_INFO_NULL, request))};
}

Operation make_reduce_scatter(Form form, const void* all, void* share, int count, MPI_Datatype type) {
  return {
      form, [=] { return MPI_Reduce_scatter_block(all, share, count, type, MPI_SUM, world); },
      [=](MPI_Request* request) { return MPI_Ireduce_scatter_block(all, share, count, type, MPI_SUM, world, request); },
      ZERO_STEP_PERSISTENT(
          MPI_Reduce_scatter_block_init(all, share, count, type, MPI_SUM, world, MPI_INFO_NULL, request))};
}

Operation make_allreduce_max(Form form, double* value) {
  return {
      form, [=] { return MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_DOUBLE, MPI_MAX, world); },
      [=](MPI_Request* request) { return MPI_Iallreduce(MPI_IN_PLACE, value, 1, MPI_DOUBLE, MPI_MAX, world, request); },
      ZERO_STEP_PERSISTENT(
          MPI_Allreduce_init(MPI_IN_PLACE, value, 1, MPI_DOUBLE, MPI_MAX, world, MPI_INFO_NULL, request))};
}

Operation make_broadcast(Form form, double* value) {
  return {form, [=] { return MPI_Bcast(value, 1, MPI_DOUBLE, 0, world); },
          [=](MPI_Request* request) { return MPI_Ibcast(value, 1, MPI_DOUBLE, 0, world, request); },
          ZERO_STEP_PERSISTENT(MPI_Bcast_init(value, 1, MPI_DOUBLE, 0, world, MPI_INFO_NULL, request))};
}

}  // namespace zero_step
