// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/one_node_queue.hpp"

#include <atomic>
#include <utility>

#include "base/message.hpp"
#include "interpose/collectives/hierarchical_queue.hpp"
#include "interpose/mpi/fault_injection.hpp"

namespace bestride::inline interpose {

constinit std::atomic<std::int64_t> OneNodeQueue::bytes_in_use_{0};

OneNodeQueue::OneNodeQueue(int ranks, int rank, RoundsShape shape, std::int64_t most_in_use, MPI_Comm private_comm,
                           std::vector<int> world_ranks, WindowOffers& offers)
    : CollectiveQueue(private_comm, std::move(world_ranks)),
      ranks_(ranks),
      rank_(rank),
      shape_(shape),
      offers_(offers),
      most_in_use_(most_in_use) {}

OneNodeQueue::~OneNodeQueue() {
  if (rank_ == 0 && offer_ >= 0) offers_.put_back(offer_, ranks_);
  if (rounds_) bytes_in_use_.fetch_sub(bytes(), std::memory_order_relaxed);
}

Task OneNodeQueue::make() {
  const bool may_create = bytes_in_use() + bytes() <= most_in_use_ && !inject_failure(FailPoint::window);
  if (!failed_) co_await set_up_rounds(offers_.at(offer_), shape_, rank_, may_create, window_, rounds_);
  if (rounds_) {
    bytes_in_use_.fetch_add(bytes(), std::memory_order_relaxed);
    co_return;
  }
  failed_ = true;
  warn_once_per_job("window",
                    "no shared memory between the ranks of a node; their nonblocking collectives go by messages");
  constexpr std::int64_t message_bytes = 64 * 1024;
  without_memory_ =
      std::make_unique<Hierarchy>(all_apart(ranks_), rank_, transport_, Channels(nullptr, {1, message_bytes}, 0));
}

}  // namespace bestride::inline interpose
