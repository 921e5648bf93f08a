// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/one_node_queue.hpp"

#include <utility>

#include "base/message.hpp"
#include "interpose/collectives/hierarchical_queue.hpp"

namespace bestride::inline interpose {

OneNodeQueue::OneNodeQueue(WindowMember member, RoundsShape shape, std::int64_t limit, MPI_Comm private_comm,
                           std::vector<int> world_ranks, WindowOffers& offers)
    : CollectiveQueue(private_comm, std::move(world_ranks)),
      member_(member),
      shape_(shape),
      window_(offers, member, static_cast<std::int64_t>(shape.bytes()), limit) {}

Task OneNodeQueue::share_memory() {
  return window_.set_up(rounds_, [this](std::byte* memory) { return view_of<Rounds>(memory, shape_, member_.rank); });
}

Task OneNodeQueue::make() {
  if (!failed_) co_await share_memory();
  if (rounds_) co_return;
  failed_ = true;
  warn_once_per_job("window",
                    "no shared memory between the ranks of a node; their nonblocking collectives go by messages");
  constexpr std::int64_t message_bytes = 64 * 1024;
  without_memory_ = std::make_unique<Hierarchy>(all_apart(member_.ranks), member_.rank, transport_,
                                                Channels(nullptr, {1, message_bytes}, 0));
}

}  // namespace bestride::inline interpose
