// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "telemetry/waits/call_kind.hpp"
#include "telemetry/waits/cycle_groups.hpp"
#include "telemetry/waits/diagnosis.hpp"
#include "telemetry/waits/sample_job.hpp"

namespace bestride::inline telemetry {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Ranks = std::vector<std::int32_t>;

/// The only condition of a rank's only thread.
WaitCondition condition(const SampleJob& job, int rank) {
  const WaitGraph graph = find_waits(job.ranks);
  const auto& threads = graph.ranks.at(static_cast<std::size_t>(rank)).threads;
  EXPECT_EQ(threads.size(), 1u);
  if (threads.size() != 1) return {};
  EXPECT_EQ(threads[0].conditions.size(), 1u);
  return threads[0].conditions.empty() ? WaitCondition{} : threads[0].conditions[0];
}

TEST(CallKinds, FromNamesAndGroups) {
  const auto kind = [](const char* name, bool collective = false) { return kind_of(number_of(name), collective); };
  EXPECT_EQ(kind("MPI_Send_c"), CallKind::send);
  EXPECT_EQ(kind("MPI_Issend"), CallKind::send);
  EXPECT_EQ(kind("MPI_Ibsend"), CallKind::local);
  EXPECT_EQ(kind("MPI_Recv_init"), CallKind::receive);
  EXPECT_EQ(kind("MPI_Imrecv"), CallKind::local);
  EXPECT_EQ(kind("MPI_Mprobe"), CallKind::receive);
  EXPECT_EQ(kind("MPI_Sendrecv_replace"), CallKind::exchange);
  EXPECT_EQ(kind("MPI_Waitsome"), CallKind::wait_any);
  EXPECT_EQ(kind("MPI_Iallreduce_c", true), CallKind::from_all);
  EXPECT_EQ(kind("MPI_Bcast_init", true), CallKind::from_root);
  EXPECT_EQ(kind("MPI_Igatherv", true), CallKind::to_root);
  EXPECT_EQ(kind("MPI_Ineighbor_alltoall", true), CallKind::neighborhood);
  EXPECT_EQ(kind("MPI_Ibarrier", true), CallKind::from_all);
  EXPECT_EQ(kind("MPI_Comm_split", true), CallKind::from_all);
  EXPECT_EQ(kind("MPI_Testall"), CallKind::local);
  EXPECT_EQ(kind_of(no_function, false), CallKind::other);
  EXPECT_TRUE(may_block(number_of("MPI_Barrier"), true));
  for (const char* name : {"MPI_Isend", "MPI_Iallreduce", "MPI_Ibarrier", "MPI_Iprobe", "MPI_Test", "MPI_Send_init",
                           "MPI_Comm_idup", "MPI_File_iread", "MPI_Start"})
    EXPECT_FALSE(may_block(number_of(name), name == std::string("MPI_Iallreduce"))) << name;
}

TEST(Waits, AllreduceWithoutOneRank) {
  SampleJob job(4);
  for (int rank : {0, 1, 3}) job.collective(rank, "MPI_Allreduce");
  EXPECT_EQ(condition(job, 0).ranks, Ranks{2});
  EXPECT_TRUE(condition(job, 0).required);
  const WaitGraph graph = find_waits(job.ranks);
  EXPECT_FALSE(graph.ranks[2].waits());
  const Diagnosis diagnosis = diagnose(graph);
  EXPECT_THAT(diagnosis.culprits, ElementsAre(2));
  EXPECT_THAT(diagnosis.waiting, ElementsAre(0, 1, 3));
  EXPECT_THAT(diagnosis.deadlocked, IsEmpty());
  EXPECT_THAT(graph.mismatches, IsEmpty());
}

TEST(Waits, EverybodyIsInTheCollective) {
  SampleJob job(2);
  job.collective(0, "MPI_Barrier");
  job.collective(1, "MPI_Barrier");
  EXPECT_THAT(condition(job, 0).ranks, IsEmpty());
  EXPECT_THAT(diagnose(find_waits(job.ranks)).deadlocked, IsEmpty());
}

TEST(Waits, BroadcastWaitsForItsRoot) {
  SampleJob job(4);
  job.collective(0, "MPI_Bcast", 2);
  EXPECT_EQ(condition(job, 0).ranks, Ranks{2});
  EXPECT_TRUE(condition(job, 0).required);
  job.collective(2, "MPI_Bcast", 2);  // now rank 0 can only wait for others in the tree
  EXPECT_EQ(condition(job, 0).ranks, (Ranks{1, 3}));
  EXPECT_FALSE(condition(job, 0).required);
}

TEST(Waits, GatherAndScan) {
  SampleJob job(4);
  job.collective(1, "MPI_Gather", 1);
  EXPECT_EQ(condition(job, 1).ranks, (Ranks{0, 2, 3}));
  EXPECT_TRUE(condition(job, 1).required);
  SampleJob other(4);
  other.collective(1, "MPI_Reduce", 3);
  EXPECT_FALSE(condition(other, 1).required);
  SampleJob scan(4);
  scan.collective(2, "MPI_Scan");
  EXPECT_EQ(condition(scan, 2).ranks, (Ranks{0, 1}));
  SampleJob neighbors(4);
  neighbors.collective(2, "MPI_Neighbor_alltoall");
  EXPECT_FALSE(condition(neighbors, 2).required);
  for (const int rank : {0, 3}) neighbors.collective(rank, "MPI_Neighbor_alltoall");
  EXPECT_TRUE(condition(neighbors, 2).required) << "only rank 1 is left";
  EXPECT_EQ(condition(neighbors, 2).ranks, (Ranks{1}));
}

TEST(Waits, RingOfReceivesIsADeadlock) {
  SampleJob job(4);
  for (int rank = 0; rank < 4; ++rank) job.call(rank, "MPI_Recv", (rank + 3) % 4);
  const Diagnosis diagnosis = diagnose(find_waits(job.ranks));
  EXPECT_THAT(diagnosis.culprits, IsEmpty());
  EXPECT_THAT(diagnosis.deadlocked, ElementsAre(0, 1, 2, 3));
  ASSERT_EQ(diagnosis.cycles.size(), 1u);
  EXPECT_THAT(diagnosis.cycles[0].ranks, ElementsAre(0, 3, 2, 1));
}

TEST(Waits, ARankThatReceivesFromItself) {
  SampleJob job(2);
  job.call(1, "MPI_Recv", 1);
  ASSERT_EQ(diagnose(find_waits(job.ranks)).cycles.size(), 1u);
  EXPECT_THAT(diagnose(find_waits(job.ranks)).cycles[0].ranks, ElementsAre(1));
}

TEST(Waits, TheChainBehindACycleIsDeadlockedButNoCycle) {
  SampleJob job(4);
  job.call(0, "MPI_Recv", 1);
  job.call(1, "MPI_Ssend", 0);
  job.call(1, "MPI_Recv", 2);
  job.call(2, "MPI_Recv", 1);
  const Diagnosis diagnosis = diagnose(find_waits(job.ranks));
  EXPECT_THAT(diagnosis.deadlocked, ElementsAre(0, 1, 2));
  ASSERT_EQ(diagnosis.cycles.size(), 1u);
  EXPECT_THAT(diagnosis.cycles[0].ranks, ElementsAre(1, 2));
}

TEST(Waits, AReceiveFromAnySourceIsAnOr) {
  SampleJob job(3);
  job.call(0, "MPI_Recv", any_rank);
  job.call(1, "MPI_Recv", 0);
  EXPECT_EQ(condition(job, 0).kind, WaitKind::any);
  EXPECT_EQ(condition(job, 0).ranks, (Ranks{1, 2}));
  EXPECT_THAT(diagnose(find_waits(job.ranks)).cycles, IsEmpty());  // rank 2 may send
  EXPECT_THAT(diagnose(find_waits(job.ranks)).culprits, ElementsAre(2));
  job.call(2, "MPI_Recv", 0);
  EXPECT_THAT(diagnose(find_waits(job.ranks)).deadlocked, ElementsAre(0, 1, 2));
  EXPECT_EQ(diagnose(find_waits(job.ranks)).cycles.size(), 1u);
}

TEST(Waits, MembersWithoutARecordMaySend) {
  SampleJob job(3);
  job.call(0, "MPI_Recv", any_rank);
  job.call(1, "MPI_Recv", 0);
  job.ranks.pop_back();  // on another host
  EXPECT_EQ(condition(job, 0).unseen, 1);
  EXPECT_THAT(diagnose(find_waits(job.ranks)).deadlocked, IsEmpty());
}

TEST(Waits, WaitallIsAnAndWaitanyAnOr) {
  SampleJob job(4);
  job.call(0, "MPI_Waitall");
  job.request(0, "MPI_Irecv", 1);
  job.request(0, "MPI_Irecv", 2);
  job.request(0, "MPI_Irecv", 2);
  job.request(0, "MPI_Irecv", 3).waiter = 2;  // another thread's
  job.call(1, "MPI_Recv", 0);
  WaitGraph graph = find_waits(job.ranks);
  ASSERT_EQ(graph.ranks[0].threads.size(), 1u);
  EXPECT_EQ(graph.ranks[0].threads[0].kind, WaitKind::all);
  ASSERT_EQ(graph.ranks[0].threads[0].conditions.size(), 2u);
  EXPECT_THAT(diagnose(graph).deadlocked, ElementsAre(0, 1));
  job.call(0, "MPI_Waitany");
  graph = find_waits(job.ranks);
  EXPECT_EQ(graph.ranks[0].threads[0].kind, WaitKind::any);
  EXPECT_THAT(diagnose(graph).deadlocked, IsEmpty());
}

TEST(Waits, SendrecvWaitsForBoth) {
  SampleJob job(3);
  job.call(0, "MPI_Sendrecv", 1).second_peer = 2;
  const WaitGraph graph = find_waits(job.ranks);
  ASSERT_EQ(graph.ranks[0].threads.at(0).conditions.size(), 2u);
  EXPECT_EQ(graph.ranks[0].threads[0].conditions[0].ranks, Ranks{1});
  EXPECT_EQ(graph.ranks[0].threads[0].conditions[1].ranks, Ranks{2});
}

/// Rank 0 has received all that rank 1 had sent, and what it sends now, in a call whose receive does not end.
TEST(Waits, TheSendOfAnExchangeMayHaveBeenReceived) {
  SampleJob job(4);
  CallSnapshot& mine = job.call(0, "MPI_Sendrecv", 2);
  mine.second_peer = 1;
  mine.tag = mine.second_tag = 5;
  CallSnapshot& theirs = job.call(1, "MPI_Sendrecv", 0);
  theirs.second_peer = 3;
  theirs.tag = theirs.second_tag = 5;
  const auto receive = [&job]() -> WaitCondition {
    return find_waits(job.ranks).ranks[0].threads.at(0).conditions.at(1);
  };
  job.ranks[1].peers.push_back({no_index, 0, 7, 56, 0, 0});
  job.ranks[0].peers.push_back({no_index, 1, 0, 0, 7, 56});
  EXPECT_FALSE(receive().required);
  EXPECT_TRUE(receive().matched);
  ++job.ranks[0].peers[0].received_messages;
  EXPECT_TRUE(receive().required);
  // One of them may be for this receive, which has another tag.
  job.request(0, "MPI_Irecv", 1).waiter = 0;
  EXPECT_FALSE(receive().required);
}

TEST(Waits, ACallWithoutAPeerWaitsForNobody) {
  SampleJob job(2);
  job.call(0, "MPI_Recv", null_rank);
  EXPECT_FALSE(find_waits(job.ranks).ranks[0].waits());
  job.call(0, "MPI_Isend", 1);
  EXPECT_THAT(find_waits(job.ranks).ranks[0].threads, IsEmpty());
}

TEST(Waits, AKilledRankIsTheCulprit) {
  SampleJob job(3);
  job.call(0, "MPI_Recv", 1);
  job.call(2, "MPI_Recv", 0);
  job.call(1, "MPI_Recv", 0);
  job.kill(1);
  const Diagnosis diagnosis = diagnose(find_waits(job.ranks));
  EXPECT_THAT(diagnosis.culprits, ElementsAre(1));
  EXPECT_THAT(diagnosis.deadlocked, ElementsAre(0, 2));  // for good
  EXPECT_THAT(diagnosis.cycles, IsEmpty());
}

TEST(Waits, AnEndedJobIsSeenAsItWas) {
  SampleJob job(2);
  job.call(0, "MPI_Recv", 1);
  for (int rank : {0, 1}) job.kill(rank);
  const Diagnosis diagnosis = diagnose(find_waits(job.ranks));
  EXPECT_THAT(diagnosis.waiting, ElementsAre(0));
  EXPECT_THAT(diagnosis.culprits, ElementsAre(1));
  EXPECT_THAT(diagnosis.deadlocked, IsEmpty());
}

TEST(Waits, MembersThatAreNotEvenlySpaced) {
  SampleJob job(6);
  job.communicator(77, {5, 0, 4});
  job.call(0, "MPI_Recv", 0, 1);
  EXPECT_EQ(condition(job, 0).ranks, Ranks{5});
  job.collective(0, "MPI_Allreduce", no_rank, 1);
  EXPECT_EQ(condition(job, 0).ranks, (Ranks{4, 5}));
  EXPECT_EQ(condition(job, 0).communicator, 77u);
}

TEST(Waits, AMemberThatIsStillCreatingTheCommunicator) {
  SampleJob job(3);
  job.communicator(77, {0, 1});
  job.collective(2, "MPI_Comm_split");
  for (int rank : {0, 1}) job.ranks[static_cast<std::size_t>(rank)].communicators[0].collectives = 1;
  auto& c = job.ranks[0].communicators[1];
  c.size = 3;
  c.first_member = 0;
  c.stride = 1;
  job.ranks[1].communicators[1] = c;
  job.ranks[1].communicators[1].rank = 1;
  job.collective(0, "MPI_Barrier", no_rank, 1);
  job.collective(1, "MPI_Barrier", no_rank, 1);
  EXPECT_EQ(condition(job, 0).ranks, Ranks{2});
}

TEST(Waits, FinalizeWaitsForRanksThatHaveNotCalledIt) {
  SampleJob job(3);
  for (int rank : {0, 1}) {
    job.call(rank, "MPI_Finalize");
    job.ranks[static_cast<std::size_t>(rank)].state = ProcessState::finalizing;
  }
  EXPECT_EQ(condition(job, 0).ranks, Ranks{2});
}

TEST(Waits, OtherFunctionOrRootIsAMismatch) {
  SampleJob job(4);
  for (int rank : {0, 1, 3}) job.collective(rank, "MPI_Allreduce");
  job.collective(2, "MPI_Barrier");
  WaitGraph graph = find_waits(job.ranks);
  ASSERT_EQ(graph.mismatches.size(), 1u);
  EXPECT_EQ(graph.mismatches[0].ordinal, 1u);
  EXPECT_EQ(graph.mismatches[0].name, "MPI_COMM_WORLD");
  ASSERT_EQ(graph.mismatches[0].variants.size(), 2u);
  EXPECT_EQ(graph.mismatches[0].variants[0].ranks, (Ranks{0, 1, 3}));
  EXPECT_EQ(graph.mismatches[0].variants[1].ranks, Ranks{2});

  SampleJob roots(2);
  roots.collective(0, "MPI_Bcast", 0);
  roots.collective(1, "MPI_Bcast", 1);
  graph = find_waits(roots.ranks);
  ASSERT_EQ(graph.mismatches.size(), 1u);
  EXPECT_EQ(graph.mismatches[0].variants[1].root, 1);
}

TEST(Waits, AMismatchWithAFinishedCall) {
  SampleJob job(2);
  job.collective(0, "MPI_Bcast", 0);  // the root may leave before the others come
  job.ranks[0].threads[0].finished.push_back(*job.ranks[0].threads[0].current);
  job.ranks[0].threads[0].current.reset();
  job.ranks[0].threads[0].in_mpi = false;
  job.collective(1, "MPI_Allreduce");
  EXPECT_EQ(find_waits(job.ranks).mismatches.size(), 1u);
  job.collective(1, "MPI_Bcast_c", 0).ordinal = 1;  // matches
  EXPECT_THAT(find_waits(job.ranks).mismatches, IsEmpty());
}

TEST(Waits, TheThirtyTwoBitsOfAnOrdinalWrapAround) {
  SampleJob job(2);
  for (RankSnapshot& rank : job.ranks) rank.communicators[0].collectives = 0xffffffff;
  job.collective(0, "MPI_Barrier");
  job.ranks[0].threads[0].current->ordinal = 1;
  job.ranks[0].communicators[0].collectives = 1;
  EXPECT_EQ(condition(job, 0).ranks, Ranks{1});
}

TEST(Waits, AThreadOutsideMpiMayYetSend) {
  SampleJob job(2);
  job.call(0, "MPI_Recv", 1);
  job.call(1, "MPI_Recv", 0);
  job.ranks[1].threads.emplace_back();
  job.ranks[1].threads[1].slot = 1;
  job.ranks[1].threads[1].tid = 500;
  job.ranks[1].threads[1].calls = 3;
  EXPECT_THAT(diagnose(find_waits(job.ranks)).deadlocked, IsEmpty());
  job.ranks[1].visible = true;  // and now /proc says that it has ended
  job.ranks[1].threads[0].state = 'S';
  EXPECT_THAT(diagnose(find_waits(job.ranks)).deadlocked, ElementsAre(0, 1));
}

TEST(Waits, ATornCallWaitsForAnUnknownRank) {
  SampleJob job(1);
  job.ranks[0].threads[0].in_mpi = job.ranks[0].threads[0].torn = true;
  const WaitGraph graph = find_waits(job.ranks);
  ASSERT_EQ(graph.ranks[0].threads.size(), 1u);
  EXPECT_FALSE(graph.ranks[0].threads[0].resolved);
}

/// Rank 0 holds a lock and waits in a barrier, rank 1 wants the lock.
TEST(Waits, ALockOfAWindow) {
  SampleJob job(3);
  for (RankSnapshot& rank : job.ranks)
    rank.communicators.push_back({1, 77, 1, 0, 3, rank.world_rank, 0, 1, CommunicatorKind::window, "counter"});
  const auto made = [&](int rank, const char* function, std::int32_t target) {
    CallSnapshot call;
    call.function = number_of(function);
    call.communicator = 1;
    call.peer = target;
    job.ranks[static_cast<std::size_t>(rank)].threads[0].finished.push_back(call);
  };
  made(0, "MPI_Win_lock", 0);
  made(2, "MPI_Win_lock", 0);
  made(2, "MPI_Win_unlock", 0);
  made(2, "MPI_Win_lock", 1);
  job.collective(0, "MPI_Barrier");
  job.call(1, "MPI_Win_lock", 0, 1);
  WaitGraph graph = find_waits(job.ranks);
  ASSERT_NE(graph.edge(1, 0), nullptr);
  EXPECT_EQ(graph.edge(1, 2), nullptr) << "it has unlocked";
  EXPECT_TRUE(graph.needs(1, 0));
  made(0, "MPI_Win_unlock", 0);
  graph = find_waits(job.ranks);
  EXPECT_EQ(graph.edge(1, 0), nullptr);
  EXPECT_FALSE(graph.find(1)->threads.at(0).resolved);
  made(2, "MPI_Win_lock_all", no_rank);
  EXPECT_NE(find_waits(job.ranks).edge(1, 2), nullptr);
  made(2, "MPI_Win_unlock_all", no_rank);
  EXPECT_EQ(find_waits(job.ranks).edge(1, 2), nullptr);
}

}  // namespace
/// The transitive closure of the wait-for graph, computed from its single edges.
class EdgeByEdge {
 public:
  EdgeByEdge(const WaitGraph& graph, bool only_required) {
    for (const RankWaits& rank : graph.ranks)
      for (const ThreadWait& thread : rank.threads)
        for (const WaitCondition& condition : thread.conditions)
          if (condition.required || (!only_required && !condition.matched))
            for (const std::int32_t target : condition.ranks) reached_[rank.rank].insert(target);
    for (bool changed = true; changed;) {
      changed = false;
      for (auto& [rank, targets] : reached_)
        for (const std::int32_t target : std::set<std::int32_t>(targets))
          if (const auto next = reached_.find(target); next != reached_.end())
            for (const std::int32_t further : next->second) changed = targets.insert(further).second || changed;
    }
  }
  bool reaches(std::int32_t rank, std::int32_t target) const {
    const auto known = reached_.find(rank);
    return known != reached_.end() && known->second.count(target) != 0;
  }

 private:
  std::map<std::int32_t, std::set<std::int32_t>> reached_;
};

/// Of 2 to 13 ranks that wait for ranks of four random sets. `any`: also for any of several.
WaitGraph random_graph(std::mt19937& random, bool any) {
  const auto below = [&](std::size_t bound) { return static_cast<std::int32_t>(random() % bound); };
  const std::size_t size = 2 + random() % 12;
  std::vector<RankSet> sets;
  for (int i = 0; i < 4; ++i) {
    std::vector<std::int32_t> ranks;
    for (int k = 1 + below(4); k > 0; --k) ranks.push_back(below(size + 1));  // one of them has no record
    sets.emplace_back(ranks);
  }
  WaitGraph graph;
  for (std::size_t i = 0; i < size; ++i) {
    RankWaits rank;
    rank.rank = static_cast<std::int32_t>(i);
    rank.gone = below(10) == 0;
    if (!rank.gone && below(any ? 8 : 4) != 0) {
      rank.every_thread_waits = true;
      ThreadWait thread;
      if (any && below(3) == 0) thread.kind = WaitKind::any;
      thread.resolved = !any || below(8) != 0;
      for (int k = 1 + below(2); k > 0; --k) {
        WaitCondition condition;
        condition.ranks = sets[static_cast<std::size_t>(below(sets.size()))];
        condition.required = below(4) != 0;
        condition.matched = !condition.required && below(2) == 0;
        if (any && below(3) == 0) condition.kind = WaitKind::any;
        if (any && below(8) == 0) condition.unseen = 1;
        thread.conditions.push_back(condition);
      }
      rank.threads.push_back(thread);
    }
    graph.ranks.push_back(rank);
  }
  return graph;
}

/// The ranks that can't proceed, by repetition over all ranks until nothing changes.
std::vector<std::int32_t> deadlocked_by_repetition(const WaitGraph& graph) {
  std::set<std::int32_t> stuck;
  for (const RankWaits& rank : graph.ranks)
    if (rank.gone || rank.every_thread_waits) stuck.insert(rank.rank);
  const auto is_live = [&](std::int32_t rank) { return stuck.count(rank) == 0; };
  const auto holds = [&](const WaitCondition& condition) {
    if (!condition.required) return false;
    if (condition.kind == WaitKind::all) return !std::all_of(condition.ranks.begin(), condition.ranks.end(), is_live);
    return condition.unseen == 0 && std::none_of(condition.ranks.begin(), condition.ranks.end(), is_live);
  };
  const auto is_held = [&](const ThreadWait& thread) {
    return thread.kind == WaitKind::any
               ? thread.resolved && std::all_of(thread.conditions.begin(), thread.conditions.end(), holds)
               : std::any_of(thread.conditions.begin(), thread.conditions.end(), holds);
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (const RankWaits& rank : graph.ranks)
      if (!rank.gone && !std::all_of(rank.threads.begin(), rank.threads.end(), is_held))
        changed = stuck.erase(rank.rank) != 0 || changed;
  }
  for (const RankWaits& rank : graph.ranks)
    if (rank.gone) stuck.erase(rank.rank);
  return {stuck.begin(), stuck.end()};
}

TEST(Graphs, DeadlockedRanksAreThoseThatNothingFrees) {
  std::mt19937 random(12);
  std::size_t deadlocked = 0;
  for (int round = 0; round < 5000; ++round) {
    const WaitGraph graph = random_graph(random, true);
    const std::vector<std::int32_t> expected = deadlocked_by_repetition(graph);
    ASSERT_EQ(diagnose(graph).deadlocked, expected) << round;
    deadlocked += expected.size();
  }
  EXPECT_GT(deadlocked, 1000u);
}

TEST(Graphs, WalksOverSetsFindWhatWalksOverEdgesFind) {
  std::mt19937 random(11);
  int cycles = 0;
  for (int round = 0; round < 2000; ++round) {
    const WaitGraph graph = random_graph(random, false);
    const std::size_t size = graph.ranks.size();
    const EdgeByEdge all(graph, false), required(graph, true);
    const Waiters waiters(graph);
    const auto everybody = [](std::int32_t) { return true; };
    const std::vector<CycleGroup> groups = cycle_groups(graph, everybody);
    const auto group_of = [&](std::int32_t rank) -> const CycleGroup* {
      for (const CycleGroup& group : groups)
        if (std::binary_search(group.ranks.begin(), group.ranks.end(), rank)) return &group;
      return nullptr;
    };
    for (std::int32_t target = 0; target <= static_cast<std::int32_t>(size); ++target) {
      std::vector<std::int32_t> expected;
      for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(size); ++rank)
        if (rank != target && all.reaches(rank, target)) expected.push_back(rank);
      ASSERT_EQ(waiters.held_up({target}), expected) << round;
      const CycleGroup* const group = group_of(target);
      ASSERT_EQ(group != nullptr, required.reaches(target, target)) << round << " rank " << target;
      bool final = true;
      for (std::int32_t other = 0; group && other < static_cast<std::int32_t>(size); ++other) {
        const bool together = required.reaches(target, other) && required.reaches(other, target);
        ASSERT_EQ(group_of(other) == group, together) << round << " ranks " << target << ", " << other;
        final = final && (together || !required.reaches(target, other) || !required.reaches(other, other));
      }
      ASSERT_TRUE(!group || group->final == final) << round << " rank " << target;
    }
    // Every cycle that is reported is one.
    for (const auto& [cycle, group] : diagnose(graph).cycles)
      for (std::size_t i = 0; i < cycle.size(); ++i, ++cycles) {
        ASSERT_TRUE(graph.needs(cycle[i], cycle[(i + 1) % cycle.size()])) << round;
        ASSERT_TRUE(std::binary_search(group.begin(), group.end(), cycle[i])) << round;
      }
  }
  EXPECT_GT(cycles, 100);
}

}  // namespace bestride::inline telemetry
