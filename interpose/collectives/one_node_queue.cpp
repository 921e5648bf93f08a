// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/one_node_queue.hpp"

#include <utility>

#include "base/message.hpp"
#include "interpose/collectives/hierarchical_queue.hpp"

namespace bestride::inline interpose {

OneNodeQueue::OneNodeQueue(std::shared_ptr<CommMemory> memory, const RoundsShape& full, bool always,
                           MPI_Comm private_comm, std::vector<int> world_ranks)
    : CollectiveQueue(private_comm, std::move(world_ranks)),
      memory_(std::move(memory)),
      full_(full),
      asked_for_full_(always),
      always_(always) {}

Task OneNodeQueue::ask(NewMemory wanted) {
  if (!part_) part_.emplace(memory_, PartKind::nonblocking);
  if (part_->settled(full_)) co_return;
  part_->ask();
  co_await until([&] {
    return part_->step(full_, wanted, [this](std::byte* data, const RoundsShape& shape) {
      return view_of<Rounds>(data, shape, memory_->member().rank);
    });
  });
}

Task OneNodeQueue::make() {
  if (rounds()) {
    asked_for_full_ = true;
    co_await ask(NewMemory::full);
    co_return;
  }
  if (!failed_) co_await ask(always_ ? NewMemory::full : NewMemory::small);
  if (rounds()) co_return;
  failed_ = true;
  memory_->retire();
  warn_once_per_job("window",
                    "no shared memory between the ranks of a node; their nonblocking collectives go by messages");
  constexpr std::int64_t message_bytes = 64 * 1024;
  const WindowMember member = memory_->member();
  without_memory_ = std::make_unique<Hierarchy>(all_apart(member.ranks), member.rank, transport_,
                                                Channels(nullptr, {1, message_bytes}, 0));
}

}  // namespace bestride::inline interpose
