// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/hierarchical/requests.hpp"

#include <atomic>
#include <new>
#include <utility>

#include "interpose/back/calls.hpp"
#include "interpose/back/gpu/raise.hpp"
#include "interpose/back/hierarchical/job.hpp"
#include "interpose/back/hierarchical/progress_thread.hpp"
#include "interpose/back/unseen.hpp"

namespace bestride {
namespace {

MPI_Comm self = MPI_COMM_NULL;
std::atomic<unsigned> next_tag{0};

/// What a request owes: its operation has to end before the request does, and device memory is brought in and out.
struct OwedCollective final : Owed {
  OwedCollective(std::shared_ptr<CollectiveQueue> of, std::unique_ptr<Operation> given) noexcept
      : queue(std::move(of)), operation(std::move(given)) {}
  void fill() noexcept override { operation->staged.bring_in(); }
  bool refused() const noexcept override { return operation->staged.refused(); }
  int raise() const noexcept override { return bestride::raise(operation->comm); }
  void settle(bool, const MPI_Status*) noexcept override {
    if (!operation->failed) operation->staged.bring_out();
  }
  bool wants_status() const noexcept override { return true; }
  Fault fault() const noexcept override { return {operation->error(), operation->comm}; }
  void has_started() noexcept override {
    if (!queue->add(*operation)) {
      operation->failed = true;
      return complete_request(operation->request_tag, false);
    }
    queue->step();
    wake_progress_thread();
  }

  std::shared_ptr<CollectiveQueue> queue;
  std::unique_ptr<Operation> operation;
};

}  // namespace

bool open_requests() noexcept {
  return real.Comm_dup(MPI_COMM_SELF, &self) == MPI_SUCCESS && real.Comm_set_errhandler(self, MPI_ERRORS_RETURN) == MPI_SUCCESS;
}

void close_requests() noexcept {
  if (self != MPI_COMM_NULL) real.Comm_free(&self);
}

void complete_request(int tag, bool good) noexcept {
  const char more_than_fits = 0;
  real.Send(&more_than_fits, good ? 0 : 1, MPI_BYTE, 0, tag, self);
}

int give_request(std::shared_ptr<CollectiveQueue> queue, std::unique_ptr<Operation> operation, bool persistent, MPI_Request* request) noexcept {
  const Job* all = job();
  const int tag = static_cast<int>(next_tag.fetch_add(1, std::memory_order_relaxed) % static_cast<unsigned>(all->largest_tag));
  operation->request_tag = tag;
  auto* owed = new (std::nothrow) OwedCollective(std::move(queue), std::move(operation));
  if (!owed) return MPI_ERR_NO_MEM;
  owed->persistent = persistent;
  owed->pending = !persistent;
  const int error = persistent ? real.Recv_init(nullptr, 0, MPI_BYTE, 0, tag, self, request)
                               : real.Irecv(nullptr, 0, MPI_BYTE, 0, tag, self, request);
  if (error != MPI_SUCCESS) {
    delete owed;
    return error;
  }
  watch_unseen_calls();
  if (!persistent) owed->has_started();
  hang(owed, *request);
  return MPI_SUCCESS;
}

}  // namespace bestride
