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
    cycles();
    culprits();
    library();
    if (lines_.size() > most_verdict_lines) lines_.resize(most_verdict_lines);
    return std::move(lines_);
  }

 private:
  void mismatches() {
    for (const CollectiveMismatch& mismatch : view_.graph.mismatches) {
      std::string text = "different collective calls as #" + std::to_string(mismatch.ordinal) + " on " +
                         (mismatch.name.empty() ? "a communicator" : mismatch.name) + ":";
      for (std::size_t i = 0; i < mismatch.variants.size() && i < 4; ++i) {
        const auto& variant = mismatch.variants[i];
        text += (i ? "; " : " ") + variant_text(variant) + " by " + ranks_text(variant.ranks);
      }
      lines_.push_back({text, true});
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
      const char* const verb = view_.ended() ? " held up " : ranks.size() == 1 ? " holds up " : " hold up ";
      lines_.push_back(
          {(view_.ended() ? "when the job ended, " : "") + ranks_text(ranks) + verb + ranks_text(held) + ": " + state,
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

  const JobView& view_;
  std::vector<VerdictLine> lines_;
};

}  // namespace

std::vector<VerdictLine> verdict(const JobView& view) { return Verdict(view).lines(); }

}  // namespace bestride::inline cli
