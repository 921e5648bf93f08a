// SPDX-License-Identifier: Apache-2.0
#pragma once
// A job without MPI: all ranks of a communicator in one thread, taking turns in random order over a simulated network
// in memory. For tests.
#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "collectives/core/hierarchy.hpp"
#include "collectives/core/task.hpp"

namespace bestride::inline collectives {

/// One rank's calls, each begun when the one before it has ended on this rank.
inline Task in_turn(std::vector<Task> calls) {
  for (Task& call : calls) co_await std::move(call);
}

class SimulatedJob {
 public:
  /// `nodes[rank]`: the node of each rank, any numbers. `seed` determines the order of turns and of message arrival.
  SimulatedJob(const std::vector<int>& nodes, std::uint64_t seed, std::int64_t slot_bytes = 4096)
      : random_(seed), topology_(nodes) {
    const int ranks = topology_.ranks();
    bytes_between_.resize(static_cast<std::size_t>(topology_.nodes() * topology_.nodes()));
    messages_.resize(static_cast<std::size_t>(ranks * ranks));
    for (int node = 0; node < topology_.nodes(); ++node) {
      const ChannelShape shape{static_cast<int>(topology_.ranks_on(node).size()), slot_bytes};
      windows_.emplace_back(new (std::align_val_t(64)) std::byte[shape.bytes()]());
    }
    for (int rank = 0; rank < ranks; ++rank) {
      const int node = topology_.node_of(rank);
      transports_.push_back(std::make_unique<MemoryTransport>(*this, rank));
      hierarchies_.push_back(std::make_unique<Hierarchy>(
          topology_, rank, *transports_.back(),
          Channels(windows_[static_cast<std::size_t>(node)].get(),
                   {static_cast<int>(topology_.ranks_on(node).size()), slot_bytes}, topology_.local_rank_of(rank))));
    }
  }

  /// Permits messages shorter than their receive. Otherwise these abort the test: the two ends disagree about the size.
  void allow_shorter_messages() { shorter_ = true; }

  const Topology& topology() const { return topology_; }
  Hierarchy& at(int rank) { return *hierarchies_[static_cast<std::size_t>(rank)]; }
  int ranks() const { return topology_.ranks(); }

  /// Runs one task per rank to its end. False: deadlock.
  bool run(std::vector<Task> tasks) {
    std::vector<int> running(tasks.size());
    for (std::size_t i = 0; i < tasks.size(); ++i) running[i] = static_cast<int>(i);
    long idle = 0;
    while (!running.empty()) {
      const std::size_t pick = random_() % running.size();
      const std::uint64_t before = events_;
      if (tasks[static_cast<std::size_t>(running[pick])].step()) {
        running[pick] = running.back();
        running.pop_back();
        idle = 0;
      }
      idle = events_ == before ? idle + 1 : 0;
      if (idle > 200000) return false;
    }
    for (Task& task : tasks)
      if (task.failed()) return false;
    return messages_waiting_ == 0;
  }

  /// Bytes that `from` has sent to `to` so far.
  std::int64_t bytes_between(int from, int to) const {
    return bytes_between_[static_cast<std::size_t>(from * topology_.nodes() + to)];
  }
  /// Messages that one rank has sent to another so far.
  std::int64_t messages(int from, int to) const { return messages_[static_cast<std::size_t>(from * ranks() + to)]; }
  std::int64_t bytes_out(int node) const {
    std::int64_t sum = 0;
    for (int to = 0; to < topology_.nodes(); ++to)
      if (to != node) sum += bytes_between(node, to);
    return sum;
  }
  std::int64_t bytes_in(int node) const {
    std::int64_t sum = 0;
    for (int from = 0; from < topology_.nodes(); ++from)
      if (from != node) sum += bytes_between(from, node);
    return sum;
  }

 private:
  struct Message {
    std::vector<std::byte> data;
    std::uint64_t send = 0;
  };
  struct Pending {
    bool done = false;
    bool is_send = false;
    int peer = -1;
    VirtualChannel line = VirtualChannel::first;
    void* into = nullptr;
    std::int64_t bytes = 0;
  };
  class MemoryTransport final : public Transport {
   public:
    MemoryTransport(SimulatedJob& job, int rank)
        : job_(job), rank_(rank), receives_(2 * static_cast<std::size_t>(job.topology_.ranks())) {}
    Transfer send(int rank, const void* data, std::int64_t bytes, VirtualChannel line) noexcept override {
      const std::uint64_t id = add({false, true, rank, line, nullptr, bytes});
      Message message{{}, id};
      message.data.assign(static_cast<const std::byte*>(data), static_cast<const std::byte*>(data) + bytes);
      job_.bytes_between_[static_cast<std::size_t>(job_.topology_.node_of(rank_) * job_.topology_.nodes() +
                                                   job_.topology_.node_of(rank))] += bytes;
      ++job_.messages_[static_cast<std::size_t>(rank_ * job_.ranks() + rank)];
      job_.queue(rank_, rank, line).push_back(std::move(message));
      ++job_.messages_waiting_;
      ++job_.events_;
      return {id, 0};
    }
    Transfer receive(int rank, void* data, std::int64_t bytes, VirtualChannel line) noexcept override {
      const std::uint64_t id = add({false, false, rank, line, data, bytes});
      receives_[index(rank, line)].push_back(id);
      ++job_.events_;
      return {id, 0};
    }
    bool done(Transfer& transfer) noexcept override {
      Pending& pending = pending_[transfer.handle];
      if (!pending.is_send && !pending.done && job_.random_() % 3 == 0) deliver(pending.peer, pending.line);
      // Sends complete when they are received, or occasionally before, as eager sends do.
      if (pending.is_send && !pending.done && job_.random_() % 50 == 0) pending.done = true;
      if (pending.done) ++job_.events_;
      if (pending.done && !pending.is_send) transfer.bytes = pending.bytes;
      return pending.done;
    }

   private:
    std::uint64_t add(Pending pending) {
      pending_.push_back(pending);
      return pending_.size() - 1;
    }
    static std::size_t index(int rank, VirtualChannel line) {
      return static_cast<std::size_t>(2 * rank + static_cast<int>(line));
    }
    void deliver(int from, VirtualChannel line) {
      auto& waiting = receives_[index(from, line)];
      auto& queue = job_.queue(from, rank_, line);
      if (waiting.empty() || queue.empty()) return;
      Pending& receive = pending_[waiting.front()];
      const std::int64_t came = static_cast<std::int64_t>(queue.front().data.size());
      if (came > receive.bytes || (came < receive.bytes && !job_.shorter_)) std::abort();
      receive.bytes = came;
      std::copy(queue.front().data.begin(), queue.front().data.end(), static_cast<std::byte*>(receive.into));
      receive.done = true;
      job_.transports_[static_cast<std::size_t>(from)]->pending_[queue.front().send].done = true;
      waiting.pop_front();
      queue.pop_front();
      --job_.messages_waiting_;
      ++job_.events_;
    }

    SimulatedJob& job_;
    const int rank_;
    std::vector<Pending> pending_;
    std::vector<std::deque<std::uint64_t>> receives_;
  };
  struct Aligned {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t(64)); }
  };

  std::deque<Message>& queue(int from, int to, VirtualChannel line) {
    if (queues_.empty()) queues_.resize(static_cast<std::size_t>(2 * ranks() * ranks()));
    return queues_[static_cast<std::size_t>(2 * (from * ranks() + to) + static_cast<int>(line))];
  }

  std::mt19937_64 random_;
  Topology topology_;
  std::vector<std::unique_ptr<std::byte[], Aligned>> windows_;
  std::vector<std::unique_ptr<MemoryTransport>> transports_;
  std::vector<std::unique_ptr<Hierarchy>> hierarchies_;
  std::vector<std::deque<Message>> queues_;
  std::vector<std::int64_t> bytes_between_, messages_;
  std::uint64_t events_ = 0;
  std::int64_t messages_waiting_ = 0;
  bool shorter_ = false;
};

}  // namespace bestride::inline collectives
