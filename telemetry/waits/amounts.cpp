// SPDX-License-Identifier: Apache-2.0
#include "telemetry/waits/amounts.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "telemetry/waits/call_kind.hpp"
#include "telemetry/waits/collective_call.hpp"

namespace bestride::inline telemetry {
namespace {

struct Amounts {
  std::int32_t rank = -1;                   ///< in MPI_COMM_WORLD
  const AmountsSnapshot* arrays = nullptr;  ///< null: it has given only one amount
  std::uint64_t bytes = unknown_amount;     ///< that amount, or that of the root's own part
};
using ByMember = std::map<std::int32_t, Amounts>;  ///< by rank in the communicator

struct Call {
  std::uint16_t function = no_function;
  std::uint64_t bytes = unknown_amount;
  bool pending = false;  ///< the rank is in it, or waits for it by a request
};
/// The collective call `ordinal` of a rank on a communicator; without a function if the rank does not remember it.
Call call_of(const RankSnapshot& rank, std::uint32_t communicator, std::uint32_t ordinal) {
  Call found;
  const auto look = [&](const auto& call, bool pending) {
    if (call.communicator == communicator && call.ordinal == ordinal) found = {call.function, call.bytes, pending};
  };
  for (const ThreadSnapshot& thread : rank.threads) {
    for (const CallSnapshot& call : thread.finished) look(call, false);
    if (thread.current) look(*thread.current, true);
  }
  for (const RequestSnapshot& request : rank.requests) look(request, true);
  return found;
}

std::uint32_t value(const std::vector<std::uint32_t>& values, std::int32_t member) {
  return static_cast<std::size_t>(member) < values.size() ? values[static_cast<std::size_t>(member)] : unknown_amount;
}
std::uint32_t value(const AmountsSnapshot* arrays, std::vector<std::uint32_t> AmountsSnapshot::*list,
                    std::int32_t member) {
  return arrays ? value(arrays->*list, member) : unknown_amount;
}
std::uint32_t only(const Amounts& amounts) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(amounts.bytes, unknown_amount));
}
bool differ(std::uint32_t a, std::uint32_t b) { return a != b && a != unknown_amount && b != unknown_amount; }

bool is(std::uint16_t function, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* name) { return function_name(function) == name; });
}

class Comparison {
 public:
  explicit Comparison(const ByMember& members) : members_(members) {}

  /// Every pair.
  void alltoall() {
    for (const auto& [i, from] : members_)
      for (const auto& [j, to] : members_)
        compare(from, to, value(from.arrays, &AmountsSnapshot::sent, j),
                value(to.arrays, &AmountsSnapshot::received, i));
  }
  /// Between the root, which has an amount for each other rank, and the others.
  void rooted(bool from_root) {
    for (const auto& [j, root] : members_) {
      if (!root.arrays) continue;
      for (const auto& [i, one] : members_) {
        if (i == j) continue;  // it may do that in place
        if (from_root)
          compare(root, one, value(root.arrays, &AmountsSnapshot::sent, i), only(one));
        else
          compare(one, root, only(one), value(root.arrays, &AmountsSnapshot::received, i));
      }
    }
  }
  /// Every rank has the same amounts for all ranks. The ranks of the minority of each amount are to blame.
  void shared() {
    for (const auto& [i, owner] : members_) {
      std::map<std::uint32_t, std::vector<const Amounts*>> votes;
      for (const auto& [j, each] : members_) {
        const std::uint32_t amount = value(each.arrays, &AmountsSnapshot::received, i);
        if (amount != unknown_amount) votes[amount].push_back(&each);
      }
      if (votes.size() < 2) continue;
      const auto most = std::max_element(
          votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
      for (const auto& [amount, voters] : votes)
        if (amount != most->first)
          for (const Amounts* voter : voters) {
            culprits.insert(voter->rank);
            pairs.push_back({owner.rank, voter->rank, most->first, amount});
          }
    }
  }

  std::vector<CollectiveMismatch::Pair> pairs;
  std::set<std::int32_t> culprits;  ///< empty: those of the pairs

 private:
  void compare(const Amounts& from, const Amounts& to, std::uint32_t sent, std::uint32_t expected) {
    if (differ(sent, expected)) pairs.push_back({from.rank, to.rank, sent, expected});
  }

  const ByMember& members_;
};

/// The rank that occurs in all pairs, if there is only one; else both ranks of each pair.
std::vector<std::int32_t> ranks_of(const std::vector<CollectiveMismatch::Pair>& pairs) {
  std::map<std::int32_t, std::size_t> times;
  for (const auto& pair : pairs) {
    ++times[pair.from];
    if (pair.to != pair.from) ++times[pair.to];
  }
  std::vector<std::int32_t> in_all, all;
  for (const auto& [rank, count] : times) {
    all.push_back(rank);
    if (count == pairs.size()) in_all.push_back(rank);
  }
  return pairs.size() > 1 && in_all.size() == 1 ? in_all : all;
}

}  // namespace

std::vector<CollectiveMismatch> find_different_amounts(const Members& members, CollectiveProgress& progress,
                                                       bool also_ended) {
  std::map<CollectiveInstance, const CommunicatorSnapshot*> recorded;
  for (const auto& [number, rank] : members.ranks())
    for (const AmountsSnapshot& amounts : rank->amounts)
      if (const CommunicatorSnapshot* const communicator = rank->communicator(amounts.communicator);
          communicator && communicator->uid != 0)
        recorded.try_emplace({communicator->uid, amounts.ordinal}, communicator);
  std::vector<CollectiveMismatch> result;
  for (const auto& [instance, communicator] : recorded) {
    if (!progress.call(*communicator, instance.ordinal).missing.empty()) continue;
    ByMember known;
    Call call;
    for (const Members::Member& member : progress.members(*communicator)) {
      if (!member.record) continue;
      const Call made = call_of(*member.rank, member.record->index, instance.ordinal);
      if (made.function == no_function) continue;
      call.function = made.function;
      call.pending = call.pending || made.pending;
      const AmountsSnapshot* arrays = nullptr;
      for (const AmountsSnapshot& amounts : member.rank->amounts)
        if (amounts.communicator == member.record->index && amounts.ordinal == instance.ordinal) arrays = &amounts;
      known.emplace(member.member, Amounts{member.world_rank, arrays, made.bytes});
    }
    if (!call.pending && !also_ended) continue;
    Comparison comparison(known);
    if (is(call.function, {"MPI_Alltoallv", "MPI_Ialltoallv", "MPI_Alltoallw", "MPI_Ialltoallw"}))
      comparison.alltoall();
    else if (is(call.function, {"MPI_Gatherv", "MPI_Igatherv"}))
      comparison.rooted(false);
    else if (is(call.function, {"MPI_Scatterv", "MPI_Iscatterv"}))
      comparison.rooted(true);
    else
      comparison.shared();
    if (comparison.pairs.empty()) continue;
    CollectiveMismatch mismatch;
    mismatch.communicator = instance.communicator;
    mismatch.name = communicator->name;
    mismatch.ordinal = instance.ordinal;
    mismatch.variants.push_back({call.function, no_rank, 0, 0, {}});
    for (const auto& [member, each] : known) mismatch.variants[0].ranks.push_back(each.rank);
    std::sort(mismatch.variants[0].ranks.begin(), mismatch.variants[0].ranks.end());
    mismatch.culprits = comparison.culprits.empty()
                            ? ranks_of(comparison.pairs)
                            : std::vector<std::int32_t>(comparison.culprits.begin(), comparison.culprits.end());
    mismatch.pairs = std::move(comparison.pairs);
    result.push_back(std::move(mismatch));
  }
  return result;
}

}  // namespace bestride::inline telemetry
