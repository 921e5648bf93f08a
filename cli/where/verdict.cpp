// SPDX-License-Identifier: Apache-2.0
#include "cli/where/verdict.hpp"

#include <algorithm>
#include <map>

#include "cli/job/rank_line.hpp"
#include "cli/job/rank_list.hpp"
#include "telemetry/waits/collective_call.hpp"

namespace bestride::inline cli {
namespace {

constexpr std::size_t most_verdict_lines = 10;
using Ranks = std::vector<std::int32_t>;

class Verdict {
 public:
  explicit Verdict(const JobView& view) : view_(view) {}

  std::vector<VerdictLine> lines() {
    mismatches();
    if (view_.ended()) {
      end();
      return std::move(lines_);
    }
    cycles();
    culprits();
    library();
    outside();
    if (lines_.size() > most_verdict_lines) lines_.resize(most_verdict_lines);
    return std::move(lines_);
  }

 private:
  void mismatches() {
    for (const CollectiveMismatch& mismatch : view_.graph.mismatches) {
      std::string text = (mismatch.pairs.empty() ? "different collective calls as #" : "different amounts in #") +
                         std::to_string(mismatch.ordinal) + " on " + communicator_text(view_, mismatch.communicator) +
                         ":";
      for (std::size_t i = 0; i < mismatch.pairs.size() && i < 4; ++i)
        text += (i ? "; " : " ") + pair_text(mismatch.pairs[i]);
      if (!mismatch.pairs.empty()) {
        lines_.push_back({text, true});
        continue;
      }
      for (std::size_t i = 0; i < mismatch.variants.size() && i < 4; ++i) {
        const auto& variant = mismatch.variants[i];
        text += (i ? "; " : " ") + variant_text(variant) + " by " + ranks_text(variant.ranks);
      }
      lines_.push_back({text, true});
    }
  }

  /// Why the job has ended, as far as a rank has noted that. The launcher ends the others.
  void end() {
    if (view_.job.ranks.empty()) return;  // no record could be read
    const RankSnapshot* first = nullptr;
    std::map<std::string, Ranks> by_end;
    bool all_finalized = true;
    for (const RankSnapshot& rank : view_.job.ranks) {
      if (rank.gone()) all_finalized = false;
      if (!rank.gone() || rank.world_rank < 0) continue;
      if (rank.has_fault() && (!first || rank.realtime(rank.end->at) < first->realtime(first->end->at))) first = &rank;
      if (const std::string text = end_of_rank(rank); !text.starts_with("killed"))
        by_end[text].push_back(rank.world_rank);
    }
    if (first) {
      const std::string others = by_end.size() > 1 ? ", as the first that has noted its end" : "";
      lines_.push_back(
          {"the job has ended: rank " + std::to_string(first->world_rank) + " was " + end_of_rank(*first) + others,
           true});
    } else if (by_end.size() == 1) {
      const auto& [text, ranks] = *by_end.begin();
      lines_.push_back({"the job has ended: " + ranks_text(ranks) + " " + text, true});
    } else if (!by_end.empty()) {
      lines_.push_back(
          {"the job has ended: ranks ended in different ways, and which was the first is not known", true});
    } else if (all_finalized) {
      lines_.push_back({"the job has ended: all ranks with a record here have called MPI_Finalize", false});
    } else {
      lines_.push_back(
          {"the job has ended, and no rank has noted why: faults, as SIGSEGV, are noted only in a job that is watched "
           "('bestride run --watch'); else they were killed, by the launcher, the batch system or the kernel (dmesg), "
           "or have called _exit()",
           true});
    }
  }

  void cycles() {
    if (view_.progresses()) return;  // the samples of the ranks are not from the same time
    for (const Diagnosis::Cycle& cycle : view_.diagnosis.cycles)
      lines_.push_back({cycle.ranks.size() == 1
                            ? "deadlock: rank " + std::to_string(cycle.ranks[0]) + " waits for itself"
                            : "deadlock: ranks wait for each other in a cycle: " + cycle_text(cycle.ranks),
                        true});
  }

  void culprits() {
    std::map<std::string, Ranks> by_state;
    for (const std::int32_t culprit : view_.diagnosis.culprits) {
      const RankWaits* const waits = view_.graph.find(culprit);
      by_state[waits ? short_state(view_, view_.job.ranks[waits->snapshot]) : "no record on this host"].push_back(
          culprit);
    }
    for (const auto& [state, ranks] : by_state) {
      const Ranks held = Waiters(view_.graph).held_up(ranks);
      lines_.push_back(
          {ranks_text(ranks) + (ranks.size() == 1 ? " holds up " : " hold up ") + ranks_text(held) + ": " + state,
           !view_.progresses()});
    }
  }

  /// Every member has begun the call, and yet it does not end.
  void library() {
    if (view_.progresses() || !lines_.empty() || view_.graph.ranks.empty()) return;
    std::int32_t unseen = 0;
    for (const RankWaits& rank : view_.graph.ranks) {
      if (rank.gone || rank.threads.empty() || !rank.every_thread_waits) return;
      for (const ThreadWait& thread : rank.threads) {
        if (!thread.resolved) return;
        for (const WaitCondition& condition : thread.conditions) {
          if (condition.ordinal == 0) return;
          unseen = std::max(unseen, condition.unseen);
        }
      }
    }
    if (unseen > 0)
      lines_.push_back({"all ranks with a record here have begun the call; what the other " + std::to_string(unseen) +
                            " do is known on their hosts",
                        false});
    else
      lines_.push_back({"all members have begun the call: the MPI library or the network does not complete it", true});
  }

  /// No rank waits for another, and none does anything.
  void outside() {
    if (view_.progresses() || !lines_.empty()) return;
    for (const RankSnapshot& rank : view_.job.ranks) {
      const ThreadSnapshot* const thread = leading_thread(rank);
      if (!rank.alive || !thread || thread->in_mpi || thread->polling ||
          (thread->state != 'S' && thread->state != 'D') ||
          view_.graph.ranks.size() < static_cast<std::size_t>(rank.world_size))
        return;
    }
    lines_.push_back({"no rank waits for another: all ranks sleep outside MPI", true});
  }

  const JobView& view_;
  std::vector<VerdictLine> lines_;
};

}  // namespace

std::vector<VerdictLine> verdict(const JobView& view) { return Verdict(view).lines(); }

}  // namespace bestride::inline cli
