// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/hierarchical_queue.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "base/message.hpp"
#include "interpose/message/report_entry.hpp"
#include "interpose/mpi/fault_injection.hpp"

namespace bestride::inline interpose {
namespace {

std::int64_t slot_bytes_of(const Topology& topology, std::int64_t window_limit, std::int64_t most_bytes) noexcept {
  const std::int64_t fit = window_limit / (2 * ChannelShape::slots * topology.max_ranks_per_node());
  return std::clamp<std::int64_t>(std::min(fit, most_bytes + 4095), 4096, HierarchicalQueue::max_slot_bytes) / 4096 *
         4096;
}

/// One message.
Task send_small(Transport& transport, int rank, const void* data, std::int64_t bytes) {
  Transfer transfer = transport.send(rank, data, bytes);
  co_await until([&] { return transport.done(transfer); });
}
Task receive_small(Transport& transport, int rank, void* data, std::int64_t bytes) {
  Transfer transfer = transport.receive(rank, data, bytes);
  co_await until([&] { return transport.done(transfer); });
}

}  // namespace

Topology all_apart(int ranks) {
  std::vector<int> nodes(static_cast<std::size_t>(ranks));
  std::iota(nodes.begin(), nodes.end(), 0);
  return Topology(nodes);
}

HierarchicalQueue::HierarchicalQueue(Topology topology, int rank, MPI_Comm private_comm, std::vector<int> world_ranks,
                                     std::int64_t window_limit, std::int64_t most_bytes)
    : CollectiveQueue(private_comm, std::move(world_ranks)),
      topology_(std::move(topology)),
      rank_(rank),
      slot_bytes_(slot_bytes_of(topology_, window_limit, most_bytes)) {}

Task HierarchicalQueue::make() {
  const int node = topology_.node_of(rank_), local = topology_.local_rank_of(rank_);
  const auto here = topology_.ranks_on(node);
  const ChannelShape shape{static_cast<int>(here.size()), slot_bytes_};
  const bool alone = here.size() == 1, leads = local == 0;
  WindowKey key[2];  // of the channels' memory, and of the arena
  const bool keeps = cache_limits_.budget > 0;
  const auto arena_bytes = static_cast<std::size_t>(cache_limits_.budget);
  if (keeps && leads && !inject_failure(FailPoint::arena))
    arena_ = Window::create(arena_bytes, Window::Pages::on_demand);
  std::int32_t good = 1;
  if (!alone && leads) {
    if (!inject_failure(FailPoint::window)) window_ = Window::create(shape.bytes());
    key[0] = window_.key();
    key[1] = arena_.key();
    for (std::size_t i = 1; i < here.size(); ++i) co_await send_small(transport_, here[i], key, sizeof key);
    good = window_.data() != nullptr;
    for (std::size_t i = 1; i < here.size(); ++i) {
      std::int32_t theirs = 0;
      co_await receive_small(transport_, here[i], &theirs, sizeof theirs);
      good = good && theirs;
    }
    window_.close_descriptor();
  } else if (!alone) {
    co_await receive_small(transport_, here[0], key, sizeof key);
    window_ = Window::open(key[0]);
    if (keeps) arena_ = Window::open(key[1], Window::Pages::on_demand);
    good = window_.data() != nullptr;
    co_await send_small(transport_, here[0], &good, sizeof good);
  }
  // The first rank of each node reports to the first rank of node 0, which replies.
  if (leads && node == 0) {
    for (int other = 1; other < topology_.nodes(); ++other) {
      std::int32_t theirs = 0;
      co_await receive_small(transport_, topology_.ranks_on(other)[0], &theirs, sizeof theirs);
      good = good && theirs;
    }
    for (int other = 1; other < topology_.nodes(); ++other)
      co_await send_small(transport_, topology_.ranks_on(other)[0], &good, sizeof good);
  } else if (leads) {
    const int first = topology_.ranks_on(0)[0];
    co_await send_small(transport_, first, &good, sizeof good);
    co_await receive_small(transport_, first, &good, sizeof good);
  }
  if (!alone) {
    if (leads)
      for (std::size_t i = 1; i < here.size(); ++i) co_await send_small(transport_, here[i], &good, sizeof good);
    else
      co_await receive_small(transport_, here[0], &good, sizeof good);
  }
  if (good) {
    hierarchy_ = std::make_unique<Hierarchy>(topology_, rank_, transport_, Channels(window_.data(), shape, local));
    // A member without an arena stores nothing and finds nothing, but it must take part in each agreement.
    if (keeps)
      cache_ = std::make_unique<CollectiveCache>(
          CollectiveCache{CacheTable(cache_limits_, topology_.ranks()),
                          arena_.data() ? Arena(arena_.data(), cache_limits_.budget, arena_.descriptor()) : Arena()});
  } else {
    failed_ = true;
    window_ = Window();
    arena_ = Window();
    warn_once(
        "window",
        "no shared memory between the ranks of a node; collectives of its communicators are left to the MPI library");
    hierarchy_ = std::make_unique<Hierarchy>(all_apart(topology_.ranks()), rank_, transport_,
                                             Channels(nullptr, {1, slot_bytes_}, 0));
  }
}

Task HierarchicalQueue::begin(Operation& operation) {
  operation.cache = cache_.get();
  return operation.begin(*hierarchy_);
}

void HierarchicalQueue::note_end(Operation&) noexcept {
  if (cache_ && reporting()) record_cache(std::exchange(noted_, cache_->table.counts()), cache_->table.counts());
}

}  // namespace bestride::inline interpose
