// SPDX-License-Identifier: Apache-2.0
#include "collectives/core/block_sizes.hpp"

#include <algorithm>
#include <cstring>
#include <span>

namespace bestride {
namespace {

using Sizes = std::vector<std::int64_t>;

std::int64_t bytes_of(std::size_t sizes) noexcept { return static_cast<std::int64_t>(sizes * sizeof(std::int64_t)); }
std::size_t at_a_time(const Channels& channels) noexcept {
  return static_cast<std::size_t>(channels.slot_bytes()) / sizeof(std::int64_t);
}

/// Publishes the sizes to all other ranks of the node.
Task hand_round(Channels& channels, Stream stream, std::span<const std::int64_t> sizes) {
  while (!sizes.empty()) {
    const auto now = sizes.first(std::min(sizes.size(), at_a_time(channels)));
    co_await until([&] { return channels.vacant(stream); });
    std::memcpy(channels.slot(stream), now.data(), now.size_bytes());
    channels.publish(stream);
    sizes = sizes.subspan(now.size());
  }
}

/// Calls use(index, size) for each size that a neighbour publishes.
template <class Use>
Task hear(Channels& channels, int from, Stream stream, std::size_t count, Use use) {
  for (std::size_t first = 0; first < count; first += at_a_time(channels)) {
    co_await until([&] { return channels.arrived(from, stream) != nullptr; });
    const std::byte* slot = channels.arrived(from, stream);
    for (std::size_t i = first; i < std::min(count, first + at_a_time(channels)); ++i, slot += sizeof(std::int64_t)) {
      std::int64_t size = 0;
      std::memcpy(&size, slot, sizeof size);
      use(i, size);
    }
    channels.take(from, stream);
  }
}
Task hear(Channels& channels, int from, Stream stream, std::span<std::int64_t> sizes) {
  return hear(channels, from, stream, sizes.size(), [sizes](std::size_t i, std::int64_t size) { sizes[i] = size; });
}

Task all_done(Transport& wire, std::span<Transfer> transfers) {
  for (Transfer& transfer : transfers) co_await until([&] { return wire.done(transfer); });
}

/// Between the root and the first rank of each other node, which handles the sizes of its node.
class WithRoot {
 public:
  WithRoot(Hierarchy& hierarchy, int root, Sizes& sizes)
      : h_(hierarchy),
        root_(root),
        root_node_(hierarchy.topology().node_of(root)),
        sizes_(sizes),
        by_node_(sizes.size()) {
    std::size_t begin = 0;
    for (int node = 0; node < h_.nodes(); begin += h_.topology().ranks_on(node++).size()) begins_.push_back(begin);
  }

  Task upward() {
    if (h_.local_ranks() > 1) co_await tell_own();
    if (leads()) {
      const auto mine = of(h_.node());
      gather(h_.node(), mine);
      co_await send(root_, mine);
    }
    if (h_.rank() == root_) {
      std::vector<Transfer> received;
      for (int node = 0; node < h_.nodes(); ++node)
        if (node != root_node_)
          received.push_back(h_.wire().receive(first_of(node), of(node).data(), bytes_of(of(node).size())));
      co_await all_done(h_.wire(), received);
      for (int node = 0; node < h_.nodes(); ++node)
        if (node != root_node_) scatter(node, of(node));
    }
    co_await share_all();
  }

  Task downward() {
    std::vector<Transfer> sent;
    if (h_.rank() == root_)
      for (int node = 0; node < h_.nodes(); ++node) {
        if (node == root_node_) continue;
        gather(node, of(node));
        sent.push_back(h_.wire().send(first_of(node), of(node).data(), bytes_of(of(node).size())));
      }
    co_await share_all();
    co_await all_done(h_.wire(), sent);
    if (h_.node() == root_node_) co_return;
    const auto mine = of(h_.node());
    if (leads()) {
      Transfer received = h_.wire().receive(root_, mine.data(), bytes_of(mine.size()));
      co_await until([&] { return h_.wire().done(received); });
      if (h_.local_ranks() > 1) co_await hand_round(h_.channels(), Stream::own, mine);
    } else {
      co_await hear(h_.channels(), 0, Stream::own, mine);
    }
    scatter(h_.node(), mine);
  }

 private:
  bool leads() const noexcept { return h_.node() != root_node_ && h_.local_rank() == 0; }
  int first_of(int node) const noexcept { return h_.topology().ranks_on(node)[0]; }
  /// The entries of a node in by_node_.
  std::span<std::int64_t> of(int node) noexcept {
    return std::span(by_node_).subspan(begins_[static_cast<std::size_t>(node)], h_.topology().ranks_on(node).size());
  }
  void gather(int node, std::span<std::int64_t> to) const noexcept {
    for (std::size_t i = 0; i < to.size(); ++i)
      to[i] = sizes_[static_cast<std::size_t>(h_.topology().ranks_on(node)[i])];
  }
  void scatter(int node, std::span<const std::int64_t> from) noexcept {
    for (std::size_t i = 0; i < from.size(); ++i)
      sizes_[static_cast<std::size_t>(h_.topology().ranks_on(node)[i])] = from[i];
  }
  Task send(int rank, std::span<const std::int64_t> sizes) {
    Transfer sent = h_.wire().send(rank, sizes.data(), bytes_of(sizes.size()));
    co_await until([&] { return h_.wire().done(sent); });
  }

  Task tell_own() {
    std::vector<Task> tasks;
    const auto here = h_.topology().ranks_on(h_.node());
    for (int q = 0; q < h_.local_ranks(); ++q) {
      const std::span one(&sizes_[static_cast<std::size_t>(here[static_cast<std::size_t>(q)])], 1);
      tasks.push_back(q == h_.local_rank() ? hand_round(h_.channels(), Stream::own, one)
                                           : hear(h_.channels(), q, Stream::own, one));
    }
    co_await all_of(tasks);
  }

  /// Passes the sizes that the root knows to the ranks of its node.
  Task share_all() {
    if (h_.node() != root_node_ || h_.local_ranks() == 1) co_return;
    if (h_.rank() == root_)
      co_await hand_round(h_.channels(), Stream::own, sizes_);
    else
      co_await hear(h_.channels(), h_.topology().local_rank_of(root_), Stream::own, sizes_);
  }

  Hierarchy& h_;
  const int root_, root_node_;
  Sizes& sizes_;
  Sizes by_node_;
  std::vector<std::size_t> begins_;  ///< by node: where its entries begin in by_node_
};

/// One message per pair of nodes: what each rank of one node sends to each rank of the other. In step t node n sends to
/// node n+t. In each step another rank of a node sends or receives.
class Pairs {
 public:
  Pairs(Hierarchy& hierarchy, const Operands& input, PairSizes& sizes)
      : h_(hierarchy),
        topology_(hierarchy.topology()),
        sizes_(sizes),
        own_(static_cast<std::size_t>(topology_.ranks())) {
    for (std::size_t rank = 0; rank < own_.size(); ++rank) own_[rank] = input.bytes(static_cast<int>(rank));
    for (int step = 1; step < h_.nodes(); ++step) {
      if (carrier(h_.node(), step) != h_.local_rank()) continue;
      const int to = (h_.node() + step) % h_.nodes(), from = (h_.node() + h_.nodes() - step) % h_.nodes();
      going_.push_back({to, topology_.ranks_on(to)[static_cast<std::size_t>(carrier(to, step))], table(to), {}});
      coming_.push_back(
          {from, topology_.ranks_on(from)[static_cast<std::size_t>(carrier(from, step))], table(from), {}});
    }
  }

  Task run() {
    std::vector<Task> tasks;
    if (h_.local_ranks() > 1) tasks.push_back(hand_round(h_.channels(), Stream::own, own_));
    for (std::size_t rank = 0; rank < own_.size(); ++rank) enter_given(h_.local_rank(), rank, own_[rank]);
    for (int q = 0; q < h_.local_ranks(); ++q)
      if (q != h_.local_rank())
        tasks.push_back(hear(h_.channels(), q, Stream::own, own_.size(),
                             [this, q](std::size_t rank, std::int64_t size) { enter_given(q, rank, size); }));
    co_await all_of(tasks);
    tasks.clear();
    tasks.push_back(send());
    tasks.push_back(receive());
    for (int q = 0; q < h_.local_ranks(); ++q)
      if (q != h_.local_rank()) tasks.push_back(take(q));
    co_await all_of(tasks);
  }

 private:
  struct Message {
    int node, rank;  ///< of the peer
    Sizes sizes;     ///< by sending and by receiving local rank
    Transfer transfer;
  };

  std::size_t ranks_of(int node) const noexcept { return topology_.ranks_on(node).size(); }
  Sizes table(int other) const { return Sizes(ranks_of(h_.node()) * ranks_of(other)); }
  int carrier(int node, int step) const noexcept { return (step - 1) % static_cast<int>(ranks_of(node)); }

  /// Enters what local rank q sends to a rank.
  void enter_given(int q, std::size_t rank, std::int64_t size) noexcept {
    const int to = static_cast<int>(rank), node = topology_.node_of(to), local = topology_.local_rank_of(to);
    const int step = (node + h_.nodes() - h_.node()) % h_.nodes();
    sizes_.add_given(q, node, size);
    if (step == 0)
      sizes_.set_received(local, topology_.ranks_on(node)[static_cast<std::size_t>(q)], size);
    else if (carrier(h_.node(), step) == h_.local_rank())
      going_[static_cast<std::size_t>((step - 1) / h_.local_ranks())]
          .sizes[static_cast<std::size_t>(q) * ranks_of(node) + static_cast<std::size_t>(local)] = size;
  }
  void enter(int from, const Sizes& sizes) noexcept {
    std::size_t next = 0;
    for (const int rank : topology_.ranks_on(from))
      for (int q = 0; q < h_.local_ranks(); ++q) sizes_.set_received(q, rank, sizes[next++]);
  }

  Task send() {
    for (Message& message : going_)
      message.transfer = h_.wire().send(message.rank, message.sizes.data(), bytes_of(message.sizes.size()));
    for (Message& message : going_) co_await until([&] { return h_.wire().done(message.transfer); });
  }
  Task receive() {
    for (Message& message : coming_)
      message.transfer = h_.wire().receive(message.rank, message.sizes.data(), bytes_of(message.sizes.size()));
    for (Message& message : coming_) {
      co_await until([&] { return h_.wire().done(message.transfer); });
      enter(message.node, message.sizes);
      if (h_.local_ranks() > 1) co_await hand_round(h_.channels(), Stream::arrived, message.sizes);
    }
  }
  /// Takes what a neighbour received.
  Task take(int q) {
    for (int step = 1; step < h_.nodes(); ++step) {
      if (carrier(h_.node(), step) != q) continue;
      const int from = (h_.node() + h_.nodes() - step) % h_.nodes();
      Sizes sizes = table(from);
      co_await hear(h_.channels(), q, Stream::arrived, sizes);
      enter(from, sizes);
    }
  }

  Hierarchy& h_;
  const Topology& topology_;
  PairSizes& sizes_;
  Sizes own_;  ///< what this rank sends to each rank
  std::vector<Message> going_, coming_;
};

}  // namespace

Task send_sizes_upward(Hierarchy& hierarchy, int root, std::vector<std::int64_t>& sizes) {
  WithRoot work(hierarchy, root, sizes);
  co_await work.upward();
}

Task send_sizes_downward(Hierarchy& hierarchy, int root, std::vector<std::int64_t>& sizes) {
  WithRoot work(hierarchy, root, sizes);
  co_await work.downward();
}

Task send_pair_sizes(Hierarchy& hierarchy, const Operands& input, PairSizes& sizes) {
  Pairs work(hierarchy, input, sizes);
  co_await work.run();
}

}  // namespace bestride
