// SPDX-License-Identifier: Apache-2.0
// Several threads call collectives at the same time, each on its own communicator, and one thread only sends and
// receives. Results are compared with the MPI library's.
#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/hierarchical/calls.hpp"
#include "tests/hierarchical/job.hpp"
#include "tests/support/harness.hpp"

using namespace bestride::test;

namespace {

constexpr What kinds[] = {What::allgather, What::broadcast, What::allreduce, What::reduce_scatter_block,
                          What::alltoall,  What::reduce,    What::gather,    What::scatter};
constexpr int threads = 3, rounds = 12;

/// fail_check() is not thread-safe.
void fail(const std::string& what) {
  static std::mutex one;
  const std::lock_guard lock(one);
  fail_check(__FILE__, __LINE__, what);
}

/// Numbers that differ by position, rank, thread and round, so that a result of an earlier round is detected.
std::vector<int> numbers(std::size_t size, int thread, int round) {
  std::vector<int> all(size);
  for (std::size_t i = 0; i < size; ++i)
    all[i] = static_cast<int>(i % 1013) + 7919 * world_rank() + 104729 * thread + 611953 * round;
  return all;
}

/// The members agree on each persistent collective. If two threads of a rank do so at the same time, one of the
/// collectives goes to the MPI library.
std::atomic<int> persistent_calls{0};

void collectives(MPI_Comm comm, int thread) {
  for (int round = 0; round < rounds; ++round)
    for (const What what : kinds) {
      const int count = (round + thread) % 3 == 0 ? 11 : 5003;
      const std::size_t all = static_cast<std::size_t>(count) * static_cast<std::size_t>(world_size());
      const std::vector<int> out = numbers(all, thread, round);
      std::vector<int> in = numbers(all, thread, round + 1000), expected = in;
      Arguments given;
      given.out_count = given.in_count = count;
      given.out_type = given.in_type = MPI_INT;
      given.op = MPI_SUM;
      given.root = (round + thread) % world_size();
      given.comm = comm;
      given.out = out.data();
      given.in = expected.data();
      const Wait wait = every_wait[(round + static_cast<int>(what)) % 3];
      if (wait == Wait::persistent) ++persistent_calls;
      if (complete(what, {Wait::in_call, false, true}, given) != MPI_SUCCESS) fail("an error of the MPI library");
      given.in = in.data();
      if (complete(what, {wait, false, false}, given) != MPI_SUCCESS) fail(std::string(name(what)) + ": an error");
      if (in != expected)
        fail(std::string(name(what)) + ", thread " + std::to_string(thread) + ", round " + std::to_string(round) +
             ": differs");
    }
}

/// A fixed number of messages, so that it is the same on all ranks.
void messages() {
  const int next = (world_rank() + 1) % world_size(), previous = (world_rank() + world_size() - 1) % world_size();
  for (int i = 0; i < 200; ++i) {
    int sent = i, received = -1;
    MPI_Sendrecv(&sent, 1, MPI_INT, next, 77, &received, 1, MPI_INT, previous, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (received != i) fail("a message differs");
  }
}

}  // namespace

MPI_CASE(threads_with_a_communicator_each) {
  std::vector<MPI_Comm> comms(threads);
  // Ranks in ascending and in descending order.
  for (int t = 0; t < threads; ++t)
    MPI_Comm_split(MPI_COMM_WORLD, 0, t % 2 ? -world_rank() : world_rank(), &comms[static_cast<std::size_t>(t)]);
  const int before = expectation() == Expectation::hierarchical ? calls_seen_by_library() : 0;
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&, t] { collectives(comms[static_cast<std::size_t>(t)], t); });
  running.emplace_back([] { messages(); });
  for (std::thread& thread : running) thread.join();
  if (expectation() == Expectation::hierarchical) CHECK(calls_seen_by_library() - before <= persistent_calls);
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

// Each thread creates, uses and frees communicators while the other threads use theirs.
MPI_CASE(communicators_created_by_threads) {
  std::vector<MPI_Comm> parents(threads);
  for (MPI_Comm& parent : parents) MPI_Comm_dup(MPI_COMM_WORLD, &parent);
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      for (int round = 0; round < 6; ++round) {
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_dup(parents[static_cast<std::size_t>(t)], &comm);
        const std::vector<int> out(3001, world_rank() + round);
        std::vector<int> in(out.size(), -1);
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Iallreduce(out.data(), in.data(), static_cast<int>(out.size()), MPI_INT, MPI_MAX, comm, &request);
        MPI_Comm_free(&comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (in != std::vector<int>(in.size(), world_size() - 1 + round))
          fail("thread " + std::to_string(t) + ": differs");
      }
    });
  for (std::thread& thread : running) thread.join();
  for (MPI_Comm& parent : parents) MPI_Comm_free(&parent);
}

int main(int argc, char** argv) { return run_cases(argc, argv, MPI_THREAD_MULTIPLE); }
