// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/mismatch_text.hpp"

#include <algorithm>

#include "cli/job/rank_line.hpp"
#include "cli/job/rank_list.hpp"
#include "cli/watch/finding_facts.hpp"
#include "telemetry/record/reduction.hpp"
#include "telemetry/report/quantity.hpp"
#include "telemetry/waits/call_kind.hpp"
#include "telemetry/waits/collective_call.hpp"

namespace bestride::inline cli {
namespace {

using Variant = CollectiveMismatch::Variant;

constexpr std::size_t most_lines = 4;

/// "the groups of MPI_Win_start and MPI_Win_post differ: rank 0 starts an access epoch to rank 1, which does not expose
/// its window to rank 0".
std::string epoch_text(const telemetry::EpochMismatch& epoch) {
  const std::string waiter = "rank " + std::to_string(epoch.waiter), other = "rank " + std::to_string(epoch.other);
  return epoch.missing == std::string("MPI_Win_post")
             ? "the groups of MPI_Win_start and MPI_Win_post differ: " + waiter + " starts an access epoch to " +
                   other + ", which does not expose its window to " + waiter
             : "the groups of MPI_Win_post and MPI_Win_start differ: " + waiter + " exposes its window to " + other +
                   ", which starts no access epoch to " + waiter;
}

/// All members of the communicator are culprits: there is no minority.
bool all_differ(const Finding& finding) {
  std::size_t members = 0;
  for (const Variant& variant : finding.mismatch->variants) members += variant.ranks.size();
  return finding.culprits.size() >= members;
}

/// "rank 2 has called MPI_Finalize while ranks 0,1,3 wait in MPI_Barrier on MPI_COMM_WORLD"; "" if the mismatch is of
/// another kind.
std::string finalize_text(const CollectiveMismatch& mismatch, const std::string& communicator) {
  const auto finalizes = [](const auto& variant) { return function_name(variant.function) == "MPI_Finalize"; };
  if (mismatch.first != 0 || mismatch.variants.size() != 2) return "";
  for (const std::size_t i : {0, 1}) {
    const Variant& ended = mismatch.variants[i];
    const Variant& waiting = mismatch.variants[1 - i];
    if (finalizes(ended) && !finalizes(waiting))
      return ranks_text(ended.ranks) + (ended.ranks.size() == 1 ? " has" : " have") + " called MPI_Finalize while " +
             ranks_text(waiting.ranks) + (waiting.ranks.size() == 1 ? " is in " : " are in ") +
             function_name(waiting.function) + " on " + communicator;
  }
  return "";
}

/// ": root 2, not 0", the arguments by which the first culprit's call differs from that of the others; "" if there are
/// no others.
std::string difference_text(const Finding& finding) {
  const Variant *own = nullptr, *others = nullptr;
  for (const Variant& variant : finding.mismatch->variants) {
    const bool blamed = std::any_of(variant.ranks.begin(), variant.ranks.end(), [&](std::int32_t rank) {
      return std::binary_search(finding.culprits.begin(), finding.culprits.end(), rank);
    });
    const Variant*& side = blamed ? own : others;
    if (!side) side = &variant;
  }
  if (!own || !others) return "";
  std::string text;
  const auto add = [&](const std::string& is, const std::string& is_not) {
    if (is != is_not && !is.empty() && !is_not.empty()) text += (text.empty() ? ": " : "; ") + is + ", not " + is_not;
  };
  if (own->root >= 0 && others->root >= 0 && own->root != others->root)
    add("root " + std::to_string(own->root), std::to_string(others->root));
  add(name(reduction_op_of(own->reduction)), name(reduction_op_of(others->reduction)));
  add(name(type_of(own->reduction)), name(type_of(others->reduction)));
  if (own->bytes > 0 && others->bytes > 0 && own->bytes != others->bytes) {
    const std::string is = bytes_text(own->bytes), is_not = bytes_text(others->bytes);
    const bool is_exact = is != is_not;
    add(is_exact ? is : std::to_string(own->bytes) + " B", is_exact ? is_not : std::to_string(others->bytes) + " B");
  }
  return text;
}

/// " at solve (solver.f90:88)": where a rank has made its call; "" if that is not known.
std::string place_of(const CollectiveMismatch& mismatch, std::int32_t number, const JobView& view, CallSites& sites) {
  const RankSnapshot* const rank = find_rank(view, number);
  if (!rank) return "";
  std::string place;
  const auto look = [&](const CallSnapshot& call) {
    const CommunicatorSnapshot* const in = rank->communicator(call.communicator);
    if (in && in->uid == mismatch.communicator && call.ordinal == mismatch.ordinal)
      place = sites.text(*rank, call.site);
  };
  for (const ThreadSnapshot& thread : rank->threads) {
    for (const CallSnapshot& call : thread.finished) look(call);
    if (thread.current) look(*thread.current);
  }
  return place.empty() ? "" : " at " + place;
}

}  // namespace

std::string mismatch_headline(const Finding& finding, const JobView& view, const std::string& who) {
  if (finding.cause == Cause::finalized)
    return who + plural(finding, " has", " have") + " called MPI_Finalize, while " +
           (finding.held_up.empty() ? "the others" : ranks_text(finding.held_up)) +
           (finding.held_up.size() == 1 ? " still needs " : " still need ") + plural(finding, "it", "them");
  if (finding.epoch && finding.epoch->group)
    return epoch_text(*finding.epoch) + ", on " + communicator_text(view, finding.epoch->window);
  if (finding.epoch)
    return "rank " + std::to_string(finding.epoch->other) + " has not called " + finding.epoch->missing + " for rank " +
           std::to_string(finding.epoch->waiter) + ", which waits in " + function_name(finding.epoch->waits_in) +
           " on " + communicator_text(view, finding.epoch->window);
  if (finding.omitted)
    return who + plural(finding, " has", " have") + " left out " + function_name(finding.omitted->function) + " #" +
           std::to_string(finding.omitted->ordinal) + " on " + communicator_text(view, finding.omitted->communicator) +
           ", in which others wait for " + plural(finding, "it", "them");
  if (!finding.mismatch->pairs.empty())
    return "different amounts in " + function_name(finding.mismatch->variants[0].function) + " #" +
           std::to_string(finding.mismatch->ordinal) + " on " +
           communicator_text(view, finding.mismatch->communicator) + ": " + pair_text(finding.mismatch->pairs.front());
  if (const std::string text =
          finalize_text(*finding.mismatch, communicator_text(view, finding.mismatch->communicator));
      !text.empty())
    return text;
  const CollectiveMismatch& mismatch = *finding.mismatch;
  const std::string number = std::to_string(mismatch.ordinal),
                    on = " on " + communicator_text(view, mismatch.communicator);
  if (mismatch.first != 0)
    return "different reductions (operation, type, count or root) as one of the collective calls #" +
           std::to_string(mismatch.first) + " to #" + number + on + ", by " + who;
  const bool undecided = all_differ(finding);
  if (is_one_function(mismatch))
    return who +
           (undecided ? " pass different arguments to "
                      : plural(finding, " passes", " pass") + std::string(" other arguments than the others to ")) +
           function_name(mismatch.variants[0].function) + " #" + number + on + difference_text(finding);
  return who +
         (undecided
              ? " make different collective calls, as #"
              : plural(finding, " makes", " make") + std::string(" another collective call than the others, as #")) +
         number + on;
}

std::vector<std::string> mismatch_evidence(const Finding& finding, const JobView& view) {
  std::vector<std::string> lines;
  if (!finding.mismatch) return lines;
  const CollectiveMismatch& mismatch = *finding.mismatch;
  for (std::size_t i = 0; i < mismatch.pairs.size() && i < most_lines; ++i)
    lines.push_back(pair_text(mismatch.pairs[i]));
  CallSites sites;
  for (std::size_t i = 0; mismatch.pairs.empty() && i < mismatch.variants.size() && i < most_lines; ++i) {
    const Variant& variant = mismatch.variants[i];
    const std::string by = " by " + ranks_text(variant.ranks);
    if (mismatch.first != 0)
      lines.push_back((i ? "others" : "one history of reductions") + by);
    else
      lines.push_back(variant_text(variant) + by + place_of(mismatch, variant.ranks.front(), view, sites));
  }
  return lines;
}

std::string mismatch_advice(const Finding& finding) {
  if (finding.epoch)
    return "compare the groups that the ranks pass to MPI_Win_post and MPI_Win_start, first of " +
           ranks_text(finding.culprits) + ", and the order of the calls";
  if (finding.mismatch && !finding.mismatch->pairs.empty())
    return "compare the counts and types that the two ranks pass for each other";
  if (finding.mismatch && !finding.mismatch->culprits.empty())
    return "one member of one group passes MPI_ROOT, the others of that group MPI_PROC_NULL, and the members of "
           "the other group its rank";
  if (finding.mismatch && finding.mismatch->first != 0)
    return "the results of these calls are wrong or undefined; look for reductions whose arguments depend on the "
           "rank";
  if (finding.cause == Cause::finalized)
    return std::string(plural(finding, "the rank has", "the ranks have")) +
           " left out what the others wait for, a message or a collective call, or these wait for one too many: "
           "compare the loops and conditions that lead to these calls";
  if (finding.mismatch && is_one_function(*finding.mismatch))
    return "compare the counts, types, operations and roots that the ranks pass; look for arguments that depend on "
           "the rank";
  return "compare the conditions under which the ranks reach these calls; all members of a communicator must "
         "make the same collective calls in the same order";
}

}  // namespace bestride::inline cli
