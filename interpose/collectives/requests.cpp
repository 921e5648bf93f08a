// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/requests.hpp"

#include <atomic>
#include <new>
#include <utility>

#include "interpose/collectives/job.hpp"
#include "interpose/collectives/progress_thread.hpp"
#include "interpose/device/mpi_errors.hpp"
#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {
namespace {

MPI_Comm self = MPI_COMM_NULL;
std::atomic<unsigned> next_tag{0};

/// Completion of a request: the operation must end before the request does, and device memory is copied in and out.
struct QueuedCompletion final : Completion {
  QueuedCompletion(std::shared_ptr<CollectiveQueue> of, std::unique_ptr<Operation> given) noexcept
      : queue(std::move(of)), operation(std::move(given)) {}
  void fill() noexcept override { operation->staged.copy_in(); }
  bool failed() const noexcept override { return operation->staged.failed(); }
  int raise_error() const override { return bestride::raise_error(operation->comm); }
  void complete(bool, const MPI_Status*) noexcept override {
    if (!operation->failed) operation->staged.copy_out();
  }
  bool wants_status() const noexcept override { return true; }
  // Not Operation::ended, which is set before the progressing thread completes the request.
  bool ended() const noexcept override {
    int complete = 0;
    return !pending || real.Request_get_status(request, &complete, MPI_STATUS_IGNORE) != MPI_SUCCESS || complete;
  }
  void poll() noexcept override { queue->poll(); }
  bool is_collective() const noexcept override { return true; }
  CompletionError fault() const noexcept override { return {operation->error(), operation->comm}; }
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
  return real.Comm_dup(MPI_COMM_SELF, &self) == MPI_SUCCESS &&
         real.Comm_set_errhandler(self, MPI_ERRORS_RETURN) == MPI_SUCCESS;
}

void complete_request(int tag, bool good) noexcept {
  const char more_than_fits = 0;
  real.Send(&more_than_fits, good ? 0 : 1, MPI_BYTE, 0, tag, self);
}

int on_empty_collective(int (*call)(MPI_Request*)) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (const int error = real.Ibcast(nullptr, 0, MPI_BYTE, 0, self, &request); error != MPI_SUCCESS) return error;
  const int answer = call(&request);
  real.Wait(&request, MPI_STATUS_IGNORE);
  return answer;
}

int make_request(std::shared_ptr<CollectiveQueue> queue, std::unique_ptr<Operation> operation, bool persistent,
                 MPI_Request* request) noexcept {
  const Job* all = job();
  const int tag =
      static_cast<int>(next_tag.fetch_add(1, std::memory_order_relaxed) % static_cast<unsigned>(all->largest_tag));
  operation->request_tag = tag;
  auto* completion = new (std::nothrow) QueuedCompletion(std::move(queue), std::move(operation));
  if (!completion) return MPI_ERR_NO_MEM;
  completion->persistent = persistent;
  completion->pending = !persistent;
  const int error = persistent ? real.Recv_init(nullptr, 0, MPI_BYTE, 0, tag, self, request)
                               : real.Irecv(nullptr, 0, MPI_BYTE, 0, tag, self, request);
  if (error != MPI_SUCCESS) {
    delete completion;
    return error;
  }
  if (!persistent) completion->has_started();
  attach(completion, *request);
  return MPI_SUCCESS;
}

}  // namespace bestride::inline interpose
