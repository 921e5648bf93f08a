// SPDX-License-Identifier: Apache-2.0
// The detector on generated jobs: random programs, executed by a model of MPI, with a fault put into one rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "telemetry/detector/detector.hpp"
#include "telemetry/detector/modeled_job.hpp"
#include "telemetry/detector/rank_facts.hpp"
#include "tests/support/repetitions.hpp"

namespace bestride::inline telemetry {
namespace {

using Kind = Operation::Kind;

/// What some ranks do together.
struct Phase {
  enum class Kind : std::uint8_t { compute, collective, shift, exchange, pair, workers } kind;
  std::uint32_t communicator = 0;
  std::vector<std::int32_t> ranks;                        ///< that take part
  std::vector<std::pair<std::size_t, std::size_t>> part;  ///< operations [first, last) of each rank of the job
};

/// A random program of up to eight ranks. It is correct: it ends whatever the ranks' speeds are.
class Program {
 public:
  Program(int ranks, std::uint64_t seed, double imbalance) : job(ranks), random_(seed), ranks_(ranks) {
    std::vector<std::int32_t> all = job.members(0);
    if (ranks >= 4) {
      std::shuffle(all.begin(), all.end(), random_);
      const std::ptrdiff_t size = 2 + below(ranks - 3);
      job.add_communicator({all.begin(), all.begin() + size});
      job.add_communicator({all.begin() + size, all.end()});
    }
    for (int i = 0; i < phases_in_program; ++i) {
      add_phase(Phase::Kind::compute, imbalance);
      add_phase(static_cast<Phase::Kind>(1 + below(5)), imbalance);
      if (i % 4 == 3) add_collective(0);  // so that all ranks depend on each other
    }
  }

  static constexpr int phases_in_program = 60;
  ModeledJob job;
  std::vector<Phase> phases;

  int below(int limit) { return std::uniform_int_distribution(0, limit - 1)(random_); }
  std::vector<Operation>& program(std::int32_t rank) { return job.programs()[static_cast<std::size_t>(rank)]; }

 private:
  Phase begin(Phase::Kind kind, std::uint32_t communicator, std::vector<std::int32_t> ranks) {
    Phase phase{kind, communicator, std::move(ranks), {}};
    for (const auto& program : job.programs()) phase.part.emplace_back(program.size(), program.size());
    return phase;
  }
  void end(Phase phase) {
    for (std::size_t i = 0; i < phase.part.size(); ++i) phase.part[i].second = job.programs()[i].size();
    phases.push_back(std::move(phase));
  }
  void add_phase(Phase::Kind kind, double imbalance) {
    const int groups = ranks_ >= 4 ? 3 : 1;
    switch (kind) {
      case Phase::Kind::collective: add_collective(static_cast<std::uint32_t>(below(groups))); return;
      case Phase::Kind::compute: {
        Phase phase = begin(kind, 0, job.members(0));
        const double mean = 0.05 + 0.3 * below(100) / 100;
        for (const std::int32_t rank : phase.ranks)
          program(rank).push_back(
              {.kind = Kind::compute, .seconds = mean * (1 + imbalance * (below(201) - 100) / 100)});
        end(std::move(phase));
        return;
      }
      default: break;
    }
    Phase phase = begin(kind, 0, job.members(0));
    const std::int32_t tag = below(3);
    const std::uint64_t bytes = below(2) ? 100 : 1 << 20;
    const auto next = [this](std::int32_t rank) { return (rank + 1) % ranks_; };
    const auto previous = [this](std::int32_t rank) { return (rank + ranks_ - 1) % ranks_; };
    if (kind == Phase::Kind::shift) {
      for (const std::int32_t rank : phase.ranks) {
        program(rank).push_back({Kind::start_receive, "MPI_Irecv", previous(rank), 0, tag, bytes});
        program(rank).push_back({Kind::start_send, "MPI_Isend", next(rank), 0, tag, bytes});
        program(rank).push_back({.kind = Kind::wait_all, .function = "MPI_Waitall"});
      }
    } else if (kind == Phase::Kind::exchange) {
      for (const std::int32_t rank : phase.ranks)
        program(rank).push_back({Kind::exchange, "MPI_Sendrecv", next(rank), 0, tag, bytes, previous(rank)});
    } else if (kind == Phase::Kind::pair) {
      const std::int32_t from = below(ranks_), to = (from + 1 + below(ranks_ - 1)) % ranks_;
      phase.ranks = {from, to};
      program(from).push_back({Kind::send, "MPI_Send", to, 0, tag, bytes});
      program(to).push_back({Kind::receive, "MPI_Recv", from, 0, tag, bytes});
    } else {
      const std::int32_t master = below(ranks_);
      for (const std::int32_t rank : phase.ranks)
        if (rank != master) {
          program(rank).push_back({Kind::send, "MPI_Send", master, 0, 7, bytes});
          program(master).push_back({Kind::receive, "MPI_Recv", any_rank, 0, 7, bytes});
        }
    }
    end(std::move(phase));
  }
  void add_collective(std::uint32_t communicator) {
    static const char* const functions[] = {"MPI_Allreduce", "MPI_Barrier", "MPI_Alltoall",
                                            "MPI_Allgather", "MPI_Bcast",   "MPI_Reduce"};
    const std::string function = functions[below(6)];
    Phase phase = begin(Phase::Kind::collective, communicator, job.members(communicator));
    const bool rooted = function == "MPI_Bcast" || function == "MPI_Reduce";
    const std::int32_t root = rooted ? below(static_cast<int>(phase.ranks.size())) : no_rank;
    for (const std::int32_t rank : phase.ranks)
      program(rank).push_back({Kind::collective, function, root, communicator});
    end(std::move(phase));
  }

  std::mt19937_64 random_;
  const int ranks_;
};

/// Observes as the watcher does, once a second or four times, until there is a finding, or for `seconds`.
std::vector<Finding> run(ModeledJob& job, double seconds) {
  Detector detector;
  double next = job.now();
  for (const double end = job.now() + seconds; job.now() < end;) {
    job.step();
    if (job.now() < next) continue;
    std::vector<Finding> found = detector.observe({job.now(), job.snapshots()});
    if (!found.empty()) return found;
    next = job.now() + (detector.suspects() ? 0.25 : 1) - 1e-9;
  }
  return {};
}

class ModeledJobs : public testing::Test {
 protected:
  /// A program, and one of its phases of a kind in its first half, with at least `ranks` ranks; null if there is none.
  static const Phase* choose(Program& program, Phase::Kind kind, std::size_t ranks = 2) {
    std::vector<const Phase*> possible;
    for (std::size_t i = 4; i < program.phases.size() / 2; ++i)
      if (program.phases[i].kind == kind && program.phases[i].ranks.size() >= ranks)
        possible.push_back(&program.phases[i]);
    return possible.empty() ? nullptr
                            : possible[static_cast<std::size_t>(program.below(static_cast<int>(possible.size())))];
  }
  static std::int32_t one_of(Program& program, const Phase& phase) {
    return phase.ranks[static_cast<std::size_t>(program.below(static_cast<int>(phase.ranks.size())))];
  }
  static std::size_t first_operation(const Phase& phase, std::int32_t rank) {
    return phase.part[static_cast<std::size_t>(rank)].first;
  }
  static void insert(Program& program, const Phase& phase, std::int32_t rank, Operation operation) {
    auto& list = program.program(rank);
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(first_operation(phase, rank)), std::move(operation));
  }
  static void remove(Program& program, const Phase& phase, std::int32_t rank) {
    auto& list = program.program(rank);
    const auto [first, last] = phase.part[static_cast<std::size_t>(rank)];
    list.erase(list.begin() + static_cast<std::ptrdiff_t>(first), list.begin() + static_cast<std::ptrdiff_t>(last));
  }
  static Finding first(ModeledJob& job) {
    const std::vector<Finding> found = run(job, 200);
    EXPECT_FALSE(found.empty()) << "no finding";
    return found.empty() ? Finding{} : found[0];
  }
  static std::string text(const Finding& finding) {
    std::string result = std::string(name(finding.fault)) + " of";
    for (const std::int32_t rank : finding.culprits) result += " " + std::to_string(rank);
    return result;
  }
  template <class Test>
  void for_each_program(Test test) {
    for (unsigned seed = 1; seed <= test::repetitions(100u); ++seed)
      for (const int ranks : {2, 3, 4, 8}) {
        Program program(ranks, seed * 10 + static_cast<unsigned>(ranks), 0.3);
        SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(ranks) + " ranks");
        test(program);
        if (HasFailure()) return;
      }
  }
};

TEST_F(ModeledJobs, CorrectProgramsHaveNoFinding) {
  for_each_program([&](Program& program) {
    const std::vector<Finding> found = run(program.job, 60);
    EXPECT_TRUE(found.empty()) << text(found[0]);
    EXPECT_GT(program.job.completed(), 60u) << "the program does not go on";
  });
}

/// A serial phase of up to 55 s.
TEST_F(ModeledJobs, ARankThatComputesLong) {
  for_each_program([&](Program& program) {
    const Phase& phase = *choose(program, Phase::Kind::compute);
    const std::int32_t rank = one_of(program, phase);
    insert(program, phase, rank, {.kind = Kind::compute, .seconds = 5.0 + 10 * (rank % 6)});
    const std::vector<Finding> found = run(program.job, 90);
    EXPECT_TRUE(found.empty()) << text(found[0]);
  });
}

TEST_F(ModeledJobs, ARankThatDies) {
  for_each_program([&](Program& program) {
    const Phase& phase = *choose(program, Phase::Kind::compute);
    const std::int32_t rank = one_of(program, phase);
    insert(program, phase, rank, {.kind = Kind::die});
    const Finding found = first(program.job);
    EXPECT_TRUE(found.fault == Fault::crash && found.culprits == Ranks{rank}) << text(found) << ", not rank " << rank;
  });
}

TEST_F(ModeledJobs, ARankThatIsStopped) {
  for_each_program([&](Program& program) {
    const Phase& phase = *choose(program, Phase::Kind::compute);
    const std::int32_t rank = one_of(program, phase);
    insert(program, phase, rank, {.kind = Kind::stop});
    const Finding found = first(program.job);
    EXPECT_TRUE(found.fault == Fault::stopped && found.culprits == Ranks{rank}) << text(found) << ", not rank " << rank;
  });
}

TEST_F(ModeledJobs, ARankThatComputesForEver) {
  for_each_program([&](Program& program) {
    const Phase& phase = *choose(program, Phase::Kind::compute);
    const std::int32_t rank = one_of(program, phase);
    insert(program, phase, rank, {.kind = Kind::spin});
    const Finding found = first(program.job);
    EXPECT_TRUE(found.fault == Fault::computation_hang && found.culprits == Ranks{rank})
        << text(found) << ", not rank " << rank;
    EXPECT_EQ(found.cause, Cause::computing);
  });
}

TEST_F(ModeledJobs, AllRanksComputeLong) {
  for_each_program([&](Program& program) {
    const Phase& phase = *choose(program, Phase::Kind::compute);
    for (const std::int32_t rank : phase.ranks) insert(program, phase, rank, {.kind = Kind::compute, .seconds = 100});
    const std::vector<Finding> found = run(program.job, 150);
    EXPECT_TRUE(found.empty()) << text(found[0]);
  });
}

TEST_F(ModeledJobs, AllRanksAreBlocked) {
  for_each_program([&](Program& program) {
    const Phase& phase = *choose(program, Phase::Kind::compute);
    for (const std::int32_t rank : phase.ranks) insert(program, phase, rank, {.kind = Kind::read});
    const Finding found = first(program.job);
    EXPECT_TRUE(found.fault == Fault::computation_hang && found.whole_job && found.culprits == phase.ranks)
        << text(found);
    EXPECT_EQ(found.cause, Cause::blocked);
  });
}

TEST_F(ModeledJobs, AnotherCollectiveFunction) {
  for_each_program([&](Program& program) {
    const Phase* const phase = choose(program, Phase::Kind::collective, 3);
    if (!phase) return;
    const std::int32_t rank = one_of(program, *phase);
    Operation& operation = program.program(rank)[first_operation(*phase, rank)];
    operation.function = operation.function == "MPI_Scan" ? "MPI_Barrier" : "MPI_Scan";
    operation.peer = no_rank;
    const Finding found = first(program.job);
    EXPECT_TRUE(found.fault == Fault::mismatch && found.culprits == Ranks{rank})
        << text(found) << ", not rank " << rank;
  });
}

TEST_F(ModeledJobs, AnotherRoot) {
  for_each_program([&](Program& program) {
    for (const Phase& phase : program.phases) {
      if (phase.kind != Phase::Kind::collective || phase.ranks.size() < 3 || &phase < &program.phases[4]) continue;
      const std::int32_t rank = one_of(program, phase);
      Operation& operation = program.program(rank)[first_operation(phase, rank)];
      if (operation.peer < 0) continue;
      operation.peer = (operation.peer + 1) % static_cast<std::int32_t>(phase.ranks.size());
      const Finding found = first(program.job);
      EXPECT_TRUE(found.fault == Fault::mismatch && found.culprits == Ranks{rank})
          << text(found) << ", not rank " << rank;
      return;
    }
  });
}

TEST_F(ModeledJobs, SynchronousSendsInARing) {
  for_each_program([&](Program& program) {
    const Phase* const phase = choose(program, Phase::Kind::exchange);
    if (!phase) return;
    for (const std::int32_t rank : phase->ranks) {
      auto& list = program.program(rank);
      const std::size_t at = first_operation(*phase, rank);
      const Operation both = list[at];
      list[at] = {Kind::send, "MPI_Ssend", both.peer, 0, both.tag, 1 << 20};
      list.insert(list.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                  {Kind::receive, "MPI_Recv", both.source, 0, both.tag, 1 << 20});
    }
    const Finding found = first(program.job);
    EXPECT_EQ(found.fault, Fault::deadlock) << text(found);
    EXPECT_EQ(found.culprits, phase->ranks);
  });
}

/// Two ranks have a fault in the same phase. In nearly all jobs (goal: 95 %), the first two findings a minute after the
/// first one name both.
class TwoFaults : public ModeledJobs {
 protected:
  static Ranks named(ModeledJob& job) {
    Detector detector;
    std::vector<Finding> found;
    double next = job.now(), end = job.now() + 200;
    for (bool first = true; job.now() < end;) {
      job.step();
      if (job.now() < next) continue;
      found = detector.observe({job.now(), job.snapshots()});
      if (!found.empty() && first) first = false, end = job.now() + 60;
      next = job.now() + (detector.suspects() ? 0.25 : 1) - 1e-9;
    }
    Ranks result;
    for (std::size_t i = 0; i < std::min<std::size_t>(found.size(), 2); ++i)
      result.insert(result.end(), found[i].culprits.begin(), found[i].culprits.end());
    std::sort(result.begin(), result.end());
    return result;
  }
  /// A rank that computes for ever cannot be detected if no rank waits for it.
  static bool is_waited_for(ModeledJob& job, std::int32_t rank) {
    const std::vector<RankSnapshot> ranks = job.snapshots();
    const WaitGraph graph = find_waits(ranks);
    return !Waiters(graph).held_up({rank}).empty();
  }
  /// `put`: puts the faults into a program, and returns their ranks, the second one of a fault of kind `second`; none
  /// if the program has no place for them.
  template <class Put>
  static void expect_both(Operation::Kind second, Put put) {
    int made = 0, wrong = 0;
    for (unsigned seed = 1; seed <= test::repetitions(100u); ++seed)
      for (const int ranks : {3, 4, 8}) {
        Program program(ranks, seed * 10 + static_cast<unsigned>(ranks), 0.3);
        Ranks both = put(program);
        if (both.empty()) continue;
        const Ranks found = named(program.job);
        if (second == Kind::spin && !std::all_of(both.begin(), both.end(), [&](std::int32_t rank) {
              return snapshot_of(program.job, rank).threads[0].state == 'T' || is_in_mpi(program.job, rank) ||
                     is_waited_for(program.job, rank);
            }))
          continue;
        std::sort(both.begin(), both.end());
        ++made;
        wrong += found == both ? 0 : 1;
      }
    EXPECT_GT(made, test::repetitions(100));
    EXPECT_LE(wrong, made / 20) << "of " << made;
    RecordProperty("wrong", wrong);
    RecordProperty("made", made);
  }
  static const RankSnapshot& snapshot_of(ModeledJob& job, std::int32_t rank) {
    return job.snapshots()[static_cast<std::size_t>(rank)];
  }
  static bool is_in_mpi(ModeledJob& job, std::int32_t rank) { return snapshot_of(job, rank).threads[0].in_mpi; }
  static std::int32_t another(Program& program, const Phase& phase, std::int32_t rank) {
    const auto at = std::find(phase.ranks.begin(), phase.ranks.end(), rank) - phase.ranks.begin();
    const auto size = static_cast<int>(phase.ranks.size());
    return phase.ranks[static_cast<std::size_t>((static_cast<int>(at) + 1 + program.below(size - 1)) % size)];
  }
  static void expect_both_in_computation(Operation::Kind one, Operation::Kind other) {
    expect_both(other, [&](Program& program) {
      const Phase& phase = *choose(program, Phase::Kind::compute);
      const std::int32_t a = one_of(program, phase), b = another(program, phase, a);
      insert(program, phase, a, {.kind = one});
      insert(program, phase, b, {.kind = other});
      return Ranks{a, b};
    });
  }
  /// One rank makes another collective call, and another one does not come to it.
  static void expect_both_in_collective(Operation::Kind other) {
    expect_both(other, [&](Program& program) {
      const Phase* const phase = choose(program, Phase::Kind::collective, 4);
      if (!phase) return Ranks{};
      const std::int32_t a = one_of(program, *phase), b = another(program, *phase, a);
      Operation& operation = program.program(a)[first_operation(*phase, a)];
      operation.function = "MPI_Scan";
      operation.peer = no_rank;
      insert(program, *phase, b, {.kind = other});
      return Ranks{a, b};
    });
  }
};

TEST_F(TwoFaults, OneStoppedAndOneComputing) { expect_both_in_computation(Kind::stop, Kind::spin); }
TEST_F(TwoFaults, BothStopped) { expect_both_in_computation(Kind::stop, Kind::stop); }
TEST_F(TwoFaults, BothComputing) { expect_both_in_computation(Kind::spin, Kind::spin); }
TEST_F(TwoFaults, AnotherCallAndOneStopped) { expect_both_in_collective(Kind::stop); }
TEST_F(TwoFaults, AnotherCallAndOneComputing) { expect_both_in_collective(Kind::spin); }

/// Faults of missing messages and calls. An observer cannot always tell which call is missing, because another one may
/// have matched in its place. So nearly all verdicts are right, and the others have a lower confidence.
class MissingCalls : public ModeledJobs {
 protected:
  /// `put`: puts the fault into a program and returns its rank, or -1 if the program has no place for it.
  template <class Put, class Right>
  static void expect_nearly_all(Put put, Right right) {
    int made = 0, wrong = 0;
    for (unsigned seed = 1; seed <= test::repetitions(100u); ++seed)
      for (const int ranks : {2, 3, 4, 8}) {
        Program program(ranks, seed * 10 + static_cast<unsigned>(ranks), 0.3);
        const std::int32_t rank = put(program);
        if (rank < 0) continue;
        ++made;
        const Finding found = first(program.job);
        if (right(found, rank)) continue;
        ++wrong;
        EXPECT_TRUE(found.fault == Fault::communication_hang || found.confidence <= 0.8)
            << "seed " << seed << ", " << ranks << " ranks: " << text(found) << ", not rank " << rank;
      }
    EXPECT_GT(made, test::repetitions(150));
    EXPECT_LT(wrong, made / 25) << "of " << made;
    RecordProperty("wrong", wrong);
    RecordProperty("made", made);
  }
  static bool names(const Finding& found, std::int32_t rank) {
    return (found.fault == Fault::unmatched_message || found.fault == Fault::deadlock ||
            found.fault == Fault::mismatch || found.fault == Fault::computation_hang) &&
           (is_member(found.culprits, rank) || is_member(found.cycle, rank));
  }
};

TEST_F(MissingCalls, AnotherTag) {
  expect_nearly_all(
      [](Program& program) {
        const Phase* const phase = choose(program, Phase::Kind::pair);
        if (!phase) return -1;
        program.program(phase->ranks[0])[first_operation(*phase, phase->ranks[0])].tag = 77;
        return phase->ranks[0];
      },
      [](const Finding& found, std::int32_t rank) {
        return found.fault == Fault::unmatched_message && found.culprits == Ranks{rank};
      });
}

TEST_F(MissingCalls, ASend) {
  expect_nearly_all(
      [](Program& program) {
        const Phase* const phase = choose(program, Phase::Kind::pair);
        if (!phase) return -1;
        remove(program, *phase, phase->ranks[0]);
        return phase->ranks[0];
      },
      names);
}

TEST_F(MissingCalls, AReceive) {
  expect_nearly_all(
      [](Program& program) {
        const Phase* const phase = choose(program, Phase::Kind::pair);
        if (!phase) return -1;
        // Long, and with a tag of its own: it is not received later.
        Operation& send = program.program(phase->ranks[0])[first_operation(*phase, phase->ranks[0])];
        send.bytes = 1 << 20;
        send.tag = 99;
        remove(program, *phase, phase->ranks[1]);
        return phase->ranks[1];
      },
      names);
}

TEST_F(MissingCalls, ACollectiveCall) {
  expect_nearly_all(
      [](Program& program) {
        const Phase* const phase = choose(program, Phase::Kind::collective, 3);
        if (!phase) return -1;
        const std::int32_t rank = one_of(program, *phase);
        // Of a broadcast or reduction the others may not wait for the rank.
        if (program.program(rank)[first_operation(*phase, rank)].peer >= 0) return -1;
        remove(program, *phase, rank);
        return rank;
      },
      names);
}

}  // namespace
}  // namespace bestride::inline telemetry
