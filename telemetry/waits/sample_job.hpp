// SPDX-License-Identifier: Apache-2.0
#pragma once
// Snapshots of the ranks of a job, made by hand for tests.
#include <cstdlib>
#include <string>
#include <vector>

#include "telemetry/record/functions.hpp"
#include "telemetry/record/snapshot.hpp"

namespace bestride::inline telemetry {

inline std::uint16_t number_of(const std::string& name) {
  const auto functions = recorded_functions();
  for (std::size_t i = 0; i < functions.size(); ++i)
    if (name == functions[i].name) return static_cast<std::uint16_t>(i);
  std::abort();
}

/// Ranks outside MPI, each with one thread and MPI_COMM_WORLD as communicator 0.
class SampleJob {
 public:
  explicit SampleJob(int size) {
    for (int i = 0; i < size; ++i) {
      RankSnapshot rank;
      rank.world_rank = i;
      rank.world_size = size;
      rank.alive = rank.functions_known = true;
      rank.state = ProcessState::initialized;
      rank.communicators.push_back({0, 1, 0, 0, size, i, 0, 1, CommunicatorKind::intra, "MPI_COMM_WORLD"});
      rank.threads.emplace_back();
      rank.threads[0].tid = 100 + i;
      rank.threads[0].calls = 1;
      ranks.push_back(std::move(rank));
    }
  }
  /// Rank `rank` is in a call.
  CallSnapshot& call(int rank, const std::string& function, std::int32_t peer = no_rank,
                     std::uint32_t communicator = 0) {
    ThreadSnapshot& thread = ranks[static_cast<std::size_t>(rank)].threads[0];
    thread.in_mpi = true;
    thread.current = CallSnapshot{};
    thread.current->function = number_of(function);
    thread.current->peer = peer;
    thread.current->communicator = communicator;
    return *thread.current;
  }
  /// It is the next collective call of the communicator.
  CallSnapshot& collective(int rank, const std::string& function, std::int32_t root = no_rank,
                           std::uint32_t communicator = 0) {
    CallSnapshot& made = call(rank, function, root, communicator);
    for (CommunicatorSnapshot& c : ranks[static_cast<std::size_t>(rank)].communicators)
      if (c.index == communicator) made.ordinal = static_cast<std::uint32_t>(++c.collectives);
    return made;
  }
  /// A request for which the rank waits; the next message to or from its peer, of which none was counted.
  RequestSnapshot& request(int rank, const std::string& function, std::int32_t peer) {
    RequestSnapshot made;
    made.key = 1 + ranks[static_cast<std::size_t>(rank)].requests.size();
    made.function = number_of(function);
    made.communicator = 0;
    made.peer = peer;
    made.waiter = 1;
    made.number = 1;
    for (const RequestSnapshot& before : ranks[static_cast<std::size_t>(rank)].requests)
      if (before.peer == peer && before.function == made.function) ++made.number;
    return ranks[static_cast<std::size_t>(rank)].requests.emplace_back(made);
  }
  /// A communicator whose members are not evenly spaced; its index is 1.
  void communicator(std::uint64_t uid, const std::vector<int>& members, std::uint64_t parent_uid = 1) {
    for (std::size_t i = 0; i < members.size(); ++i)
      ranks[static_cast<std::size_t>(members[i])].communicators.push_back(
          {1, uid, parent_uid, 0, static_cast<std::int32_t>(members.size()), static_cast<std::int32_t>(i), -1, 0,
           CommunicatorKind::intra, "rows"});
  }
  /// The rank is outside MPI, without requests.
  void leave(int rank) {
    RankSnapshot& left = ranks[static_cast<std::size_t>(rank)];
    left.threads[0].in_mpi = false;
    left.threads[0].current.reset();
    left.requests.clear();
  }
  void kill(int rank) { ranks[static_cast<std::size_t>(rank)].alive = false; }

  std::vector<RankSnapshot> ranks;
};

}  // namespace bestride::inline telemetry
