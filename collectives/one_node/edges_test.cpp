// SPDX-License-Identifier: Apache-2.0
#include "collectives/one_node/edges.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <new>
#include <random>
#include <thread>

#include "collectives/core/task.hpp"
#include "collectives/one_node/edge_messages.hpp"
#include "collectives/testing/simulated_job.hpp"
#include "collectives/testing/test_blocks.hpp"

namespace bestride::inline collectives {
namespace {

Task exchange(Edges& edges, std::span<const EdgeEnd> in, const Operands& input, const Operands& output) {
  edges.begin();
  co_await until([&edges, in, &input, &output] { return edges.step(in, input, output); });
}

/// A random graph of ranks in this process: edges between any two ranks, several between the same two, edges of a rank
/// to itself, and ends without a neighbor.
class Graph {
 public:
  /// `process`: the process ID under which all ranks know each other.
  Graph(int ranks, std::int64_t edges, std::int64_t slot_bytes, int process, std::mt19937_64& random)
      : shape_{ranks, edges, slot_bytes}, memory_(new (std::align_val_t(128)) std::byte[shape_.bytes()]()) {
    out_.resize(static_cast<std::size_t>(ranks));
    in_.resize(static_cast<std::size_t>(ranks));
    for (std::int64_t edge = 0; edge < edges; ++edge) {
      const auto from = random() % static_cast<unsigned>(ranks), to = random() % static_cast<unsigned>(ranks);
      out_[from].push_back({edge, static_cast<int>(to), process});
      in_[to].push_back({edge, static_cast<int>(from), process});
      if (random() % 4 == 0) out_[from].emplace_back();
      if (random() % 4 == 0) in_[to].emplace_back();
    }
    for (int rank = 0; rank < ranks; ++rank)
      edges_.push_back(std::make_unique<Edges>(memory_.get(), shape_, rank, out_[static_cast<std::size_t>(rank)],
                                               in_[static_cast<std::size_t>(rank)].size()));
  }
  Edges& at(int rank) { return *edges_[static_cast<std::size_t>(rank)]; }
  const std::vector<EdgeEnd>& out(int rank) const { return out_[static_cast<std::size_t>(rank)]; }
  const std::vector<EdgeEnd>& in(int rank) const { return in_[static_cast<std::size_t>(rank)]; }
  int ranks() const { return shape_.ranks; }

 private:
  struct Aligned {
    void operator()(std::byte* memory) const { ::operator delete[](memory, std::align_val_t(128)); }
  };
  EdgesShape shape_;
  std::unique_ptr<std::byte[], Aligned> memory_;
  std::vector<std::vector<EdgeEnd>> out_, in_;
  std::vector<std::unique_ptr<Edges>> edges_;
};

/// One neighbor collective of all ranks. The content of a message follows from the number of its edge and `call`.
struct Call {
  std::vector<TestBlocks> input, output;
  int seed;

  /// `sizes`: bytes, by edge.
  Call(const Graph& graph, const std::vector<std::int64_t>& sizes, int seed_of_call, std::mt19937_64& random)
      : seed(seed_of_call) {
    const auto bytes_of = [&](const std::vector<EdgeEnd>& ends) {
      std::vector<std::int64_t> bytes;
      for (const EdgeEnd& end : ends) bytes.push_back(end.edge < 0 ? 40 : sizes[static_cast<std::size_t>(end.edge)]);
      return bytes;
    };
    for (int rank = 0; rank < graph.ranks(); ++rank) {
      input.emplace_back(bytes_of(graph.out(rank)), random() % 2 != 0);
      output.emplace_back(bytes_of(graph.in(rank)), random() % 2 != 0);
      for (std::size_t i = 0; i < graph.out(rank).size(); ++i)
        input.back().fill(static_cast<int>(i), seed + static_cast<int>(graph.out(rank)[i].edge));
    }
  }
  Task task(Graph& graph, int rank) {
    const auto i = static_cast<std::size_t>(rank);
    return exchange(graph.at(rank), graph.in(rank), input[i], output[i]);
  }
  ::testing::AssertionResult correct(const Graph& graph) const {
    for (int rank = 0; rank < graph.ranks(); ++rank)
      for (std::size_t i = 0; i < graph.in(rank).size(); ++i) {
        const std::int64_t edge = graph.in(rank)[i].edge;
        const TestBlocks& block = output[static_cast<std::size_t>(rank)];
        if (edge >= 0 && !block.holds(static_cast<int>(i), seed + static_cast<int>(edge)))
          return ::testing::AssertionFailure() << "edge " << edge << " to rank " << rank;
      }
    return ::testing::AssertionSuccess();
  }
};

/// Steps the ranks in random order. False: they wait for each other, or a task failed.
bool run(std::vector<Task> tasks, std::mt19937_64& random) {
  std::vector<std::size_t> running(tasks.size());
  for (std::size_t i = 0; i < running.size(); ++i) running[i] = i;
  for (long idle = 0; !running.empty(); ++idle) {
    if (idle > 100'000) return false;
    const std::size_t pick = random() % running.size();
    if (!tasks[running[pick]].step()) continue;
    if (tasks[running[pick]].failed()) return false;
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(pick));
    idle = 0;
  }
  return true;
}

void run_sequences(int process, int jobs, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int job = 0; job < jobs; ++job) {
    const int ranks = static_cast<int>(1 + random() % 6);
    const auto edges = static_cast<std::int64_t>(random() % 14);
    Graph graph(ranks, edges, 128 << random() % 6, process, random);
    std::vector<Call> calls;
    for (std::uint64_t count = 1 + random() % 6; count > 0; --count)
      calls.emplace_back(graph,
                         random_sizes(random, static_cast<std::size_t>(edges),
                                      {0, 1, 128, 1000, 20'000, 2 * Edges::longest_through_slots}),
                         static_cast<int>(random() % 100), random);
    std::vector<Task> tasks;
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<Task> own;
      for (Call& call : calls) own.push_back(call.task(graph, rank));
      tasks.push_back(in_turn(std::move(own)));
    }
    ASSERT_TRUE(run(std::move(tasks), random)) << job;
    for (const Call& call : calls) ASSERT_TRUE(call.correct(graph)) << job;
    for (int rank = 0; rank < ranks; ++rank) ASSERT_FALSE(graph.at(rank).truncated());
  }
}

TEST(Edges, SequencesOfExchangesMoveEveryByte) { run_sequences(getpid(), 500, 1); }

/// The ranks know each other under the ID of no process, so every copy from a buffer of another rank fails.
TEST(Edges, MessagesGoThroughSlotsWhereTheKernelForbidsCopies) { run_sequences(1 << 30, 500, 2); }

/// The same graphs and calls by messages: lengths around that of a piece.
TEST(EdgeMessages, SequencesOfExchangesMoveEveryByte) {
  std::mt19937_64 random(5);
  constexpr std::int64_t piece = EdgeMessages::piece_bytes;
  for (int number = 0; number < 150; ++number) {
    const int ranks = static_cast<int>(1 + random() % 5);
    const auto edges = static_cast<std::int64_t>(random() % 14);
    Graph graph(ranks, edges, 4096, getpid(), random);
    SimulatedJob job(std::vector<int>(static_cast<std::size_t>(ranks)), random());
    job.allow_shorter_messages();
    std::vector<Call> calls;
    for (std::uint64_t count = 1 + random() % 3; count > 0; --count) {
      std::vector<std::int64_t> sizes = random_sizes(random, static_cast<std::size_t>(edges), {0, 1, 1000, 2 * piece});
      for (std::int64_t& size : sizes)
        if (random() % 8 == 0) size = piece * static_cast<std::int64_t>(random() % 3);
      calls.emplace_back(graph, sizes, static_cast<int>(random() % 100), random);
    }
    std::vector<std::unique_ptr<EdgeMessages>> messages;
    std::vector<Task> tasks;
    for (int rank = 0; rank < ranks; ++rank) {
      messages.push_back(std::make_unique<EdgeMessages>(job.at(rank).transport(), graph.out(rank)));
      std::vector<Task> own;
      const auto i = static_cast<std::size_t>(rank);
      for (Call& call : calls) own.push_back(messages[i]->exchange(graph.in(rank), call.input[i], call.output[i]));
      tasks.push_back(in_turn(std::move(own)));
    }
    ASSERT_TRUE(job.run(std::move(tasks))) << number;
    for (const Call& call : calls) ASSERT_TRUE(call.correct(graph)) << number;
    for (const auto& of_rank : messages) ASSERT_FALSE(of_rank->truncated());
  }
}

TEST(EdgeMessages, TheEndOfAMessageLongerThanItsBlockIsDropped) {
  for (const std::int64_t bytes : {std::int64_t{100}, 3 * EdgeMessages::piece_bytes}) {
    SimulatedJob job({0, 0}, 6);
    job.allow_shorter_messages();
    const EdgeEnd to{0, 1, 0}, from{0, 0, 0};
    EdgeMessages sender(job.at(0).transport(), {&to, 1}), receiver(job.at(1).transport(), {});
    TestBlocks input({bytes}, false), shorter({bytes / 2}, true), none({}, false), whole({bytes}, false);
    input.fill(0, 7);
    bool truncated = false;
    const auto send_twice = [&]() -> Task {
      co_await sender.exchange({}, input, none);
      co_await sender.exchange({}, input, none);
    };
    const auto receive_twice = [&]() -> Task {
      co_await receiver.exchange({&from, 1}, none, shorter);
      truncated = receiver.truncated();
      co_await receiver.exchange({&from, 1}, none, whole);
    };
    std::vector<Task> ranks;
    ranks.push_back(send_twice());
    ranks.push_back(receive_twice());
    ASSERT_TRUE(job.run(std::move(ranks)));
    EXPECT_TRUE(truncated);
    EXPECT_FALSE(receiver.truncated());
    EXPECT_TRUE(shorter.holds(0, 7));
    EXPECT_TRUE(whole.holds(0, 7));
  }
}

TEST(Edges, SourceLearnsThatCopiesAreRefused) {
  std::mt19937_64 random(3);
  for (const int process : {1 << 30, static_cast<int>(getpid())}) {
    Graph graph(2, 40, 4096, process, random);
    Call call(graph, std::vector<std::int64_t>(40, 2 * Edges::longest_through_slots), 1, random);
    // Only contiguous data is left in the source's buffer.
    for (std::vector<TestBlocks>* blocks : {&call.input})
      for (int rank = 0; rank < 2; ++rank) {
        const auto& ends = graph.out(rank);
        (*blocks)[static_cast<std::size_t>(rank)] =
            TestBlocks(std::vector<std::int64_t>(ends.size(), 2 * Edges::longest_through_slots), false);
        for (std::size_t i = 0; i < ends.size(); ++i)
          (*blocks)[static_cast<std::size_t>(rank)].fill(static_cast<int>(i), 1 + static_cast<int>(ends[i].edge));
      }
    std::vector<Task> tasks;
    for (int rank = 0; rank < 2; ++rank) tasks.push_back(call.task(graph, rank));
    ASSERT_TRUE(run(std::move(tasks), random));
    EXPECT_TRUE(call.correct(graph));
    for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(graph.at(rank).copies_refused(), process == 1 << 30);
  }
}

constexpr std::size_t tracked_bytes = 64 * 4096;
char* tracked = nullptr;
int faults = 0;

void make_accessible(int, siginfo_t* info, void*) {
  auto* const address = static_cast<char*>(info->si_addr);
  if (address < tracked || address >= tracked + tracked_bytes) _exit(11);
  ++faults;
  mprotect(tracked + (address - tracked) / 4096 * 4096, 4096, PROT_READ | PROT_WRITE);
}

/// One contiguous block.
struct OneOperand final : Operands {
  explicit OneOperand(Operand given) : operand(given) {}
  Operand of(int) const noexcept override { return operand; }
  std::int64_t bytes(int) const noexcept override { return operand.bytes(); }
  Operand operand;
};

/// The kernel can't copy to protected pages of an application that handles the signal.
TEST(Edges, DestinationMayBeWriteProtected) {
  tracked =
      static_cast<char*>(mmap(nullptr, tracked_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  struct sigaction handler = {}, before;
  handler.sa_sigaction = &make_accessible;
  handler.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &handler, &before);
  const EdgesShape shape{2, 1, 4096};
  const auto memory = std::make_unique<std::byte[]>(shape.bytes() + 128);
  std::byte* const aligned = memory.get() + 128 - reinterpret_cast<std::uintptr_t>(memory.get()) % 128;
  const EdgeEnd out{0, 1, getpid()}, in{0, 0, getpid()};
  Edges source(aligned, shape, 0, {&out, 1}, 0), destination(aligned, shape, 1, {}, 1);
  std::vector<char> sent(tracked_bytes, 7);
  const OneOperand input(Operand(sent.data(), tracked_bytes)), output(Operand(tracked, tracked_bytes));
  const OneOperand none{Operand()};
  mprotect(tracked + 3 * 4096, 40 * 4096, PROT_READ);
  Task sending = exchange(source, {}, input, none), receiving = exchange(destination, {&in, 1}, none, output);
  for (bool ended = false; !ended;) ended = sending.step() & receiving.step();
  sigaction(SIGSEGV, &before, nullptr);
  EXPECT_EQ(faults, 40);
  EXPECT_FALSE(destination.copies_refused());
  EXPECT_EQ(std::vector<char>(tracked, tracked + tracked_bytes), sent);
  munmap(tracked, tracked_bytes);
}

/// A rank that is ahead does not wait for ranks that are not its neighbors, and for a neighbor only when all slots of
/// their edge are full.
TEST(Edges, RankMayBeAheadByAllSlots) {
  std::mt19937_64 random(4);
  Graph graph(2, 0, 4096, getpid(), random);
  EXPECT_TRUE(Call(graph, {}, 0, random).task(graph, 0).step());
  const EdgesShape shape{2, 1, 4096};
  const auto memory = std::make_unique<std::byte[]>(shape.bytes() + 128);
  std::byte* const aligned = memory.get() + 128 - reinterpret_cast<std::uintptr_t>(memory.get()) % 128;
  const EdgeEnd out{0, 1, getpid()}, in{0, 0, getpid()};
  Edges source(aligned, shape, 0, {&out, 1}, 0), destination(aligned, shape, 1, {}, 1);
  TestBlocks sent({100}, false), received({100}, false), none({}, false);
  for (int call = 0; call < EdgesShape::slots; ++call) EXPECT_TRUE(exchange(source, {}, sent, none).step());
  Task one_more = exchange(source, {}, sent, none);
  EXPECT_FALSE(one_more.step());
  EXPECT_TRUE(exchange(destination, {&in, 1}, none, received).step());
  EXPECT_TRUE(one_more.step());
}

/// A message that is longer than its block, by the slots and by a copy: the block is filled, nothing behind it is
/// written, and the next message is received as a whole.
TEST(Edges, LongerMessageIsTruncated) {
  for (const std::int64_t bytes : {std::int64_t{10'000}, 2 * Edges::longest_through_slots}) {
    const EdgesShape shape{2, 1, 4096};
    const auto memory = std::make_unique<std::byte[]>(shape.bytes() + 128);
    std::byte* const aligned = memory.get() + 128 - reinterpret_cast<std::uintptr_t>(memory.get()) % 128;
    const EdgeEnd out{0, 1, getpid()}, in{0, 0, getpid()};
    Edges source(aligned, shape, 0, {&out, 1}, 0), destination(aligned, shape, 1, {}, 1);
    TestBlocks sent({bytes}, false), none({}, false);
    sent.fill(0, 5);
    for (const std::int64_t room : {bytes - 5000, bytes}) {
      TestBlocks received({room}, true);
      std::vector<Task> tasks;
      tasks.push_back(exchange(source, {}, sent, none));
      tasks.push_back(exchange(destination, {&in, 1}, none, received));
      std::mt19937_64 random(5);
      ASSERT_TRUE(run(std::move(tasks), random));
      EXPECT_EQ(destination.truncated(), room < bytes);
      EXPECT_TRUE(received.holds(0, 5));
    }
  }
}

TEST(Edges, ShapeFitsTheLimit) {
  for (const std::int64_t edges : {1, 30, 1000})
    for (const std::int64_t limit : {std::int64_t{1}, std::int64_t{1} << 20, std::int64_t{64} << 20}) {
      const EdgesShape shape = EdgesShape::within(8, edges, limit);
      EXPECT_EQ(shape.slot_bytes % 4096, 0);
      EXPECT_GE(shape.slot_bytes, 4096);
      EXPECT_TRUE(shape.slot_bytes == 4096 || shape.slot_bytes * EdgesShape::slots * edges <= limit);
    }
}

/// Two threads that always sleep instead of checking again, as in the test of Rounds.
TEST(Edges, NoWakeUpIsLost) {
  const EdgesShape shape{2, 2, 4096};
  const auto memory = std::make_unique<std::byte[]>(shape.bytes() + 128);
  std::byte* const aligned = memory.get() + 128 - reinterpret_cast<std::uintptr_t>(memory.get()) % 128;
  constexpr int exchanges = 3000;
  constexpr long timeout_ns = 10'000'000'000;
  std::atomic<int> vain{0};
  const auto work = [&](int rank) {
    const EdgeEnd out{rank, 1 - rank, getpid()}, in{1 - rank, 1 - rank, getpid()};
    Edges edges(aligned, shape, rank, {&out, 1}, 1);
    TestBlocks sent({64}, false), received({64}, false);
    for (int i = 0; i < exchanges; ++i) {
      Task task = exchange(edges, {&in, 1}, sent, received);
      while (!task.step()) {
        const Edges::Sleep sleep = edges.prepare_sleep();
        if (task.step()) {
          edges.cancel(sleep);
          break;
        }
        const auto before = std::chrono::steady_clock::now();
        edges.start(sleep, timeout_ns);
        if (std::chrono::steady_clock::now() - before >= std::chrono::nanoseconds(timeout_ns)) ++vain;
      }
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  EXPECT_EQ(vain, 0);
}

}  // namespace
}  // namespace bestride::inline collectives
