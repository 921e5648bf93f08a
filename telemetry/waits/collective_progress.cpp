// SPDX-License-Identifier: Apache-2.0
#include "telemetry/waits/collective_progress.hpp"

#include <algorithm>

namespace bestride::inline telemetry {
namespace {

enum class Begun { yes, no, unknown };

Begun has_begun(const Members::Member& member, const CommunicatorSnapshot& communicator, std::uint32_t ordinal) {
  // Both counters wrap at 32 bits.
  if (member.record)
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(member.record->collectives) - ordinal) >= 0 ? Begun::yes
                                                                                                            : Begun::no;
  // A member in a collective call of the parent has not created the communicator yet; others may have freed it already.
  for (const ThreadSnapshot& thread : member.rank->threads)
    if (thread.current && thread.current->ordinal != 0)
      if (const auto* parent = member.rank->communicator(thread.current->communicator);
          parent && parent->uid != 0 && parent->uid == communicator.parent_uid)
        return Begun::no;
  return Begun::unknown;
}

}  // namespace

const std::vector<Members::Member>& CollectiveProgress::members(const CommunicatorSnapshot& communicator) {
  static const std::vector<Members::Member> none;
  if (communicator.uid == 0) return none;
  const auto [at, is_new] = by_uid_.try_emplace(communicator.uid);
  if (is_new) at->second = members_.seen(communicator);
  return at->second;
}

const CollectiveProgress::Call& CollectiveProgress::call(const CommunicatorSnapshot& communicator,
                                                         std::uint32_t ordinal) {
  const auto [at, is_new] = calls_.try_emplace({communicator.uid, ordinal});
  Call& call = at->second;
  if (!is_new) return call;
  const std::vector<Members::Member>& seen = members(communicator);
  call.unseen = std::max(0, member_count(communicator) - static_cast<std::int32_t>(seen.size()));
  std::vector<std::int32_t> missing;
  for (const Members::Member& member : seen) switch (has_begun(member, communicator, ordinal)) {
      case Begun::yes: break;
      case Begun::unknown: ++call.unseen; break;
      case Begun::no: missing.push_back(member.world_rank); call.missing_members.push_back(member);
    }
  call.missing = std::move(missing);
  return call;
}

const RankSet& CollectiveProgress::not_finalizing() {
  if (!not_finalizing_) {
    std::vector<std::int32_t> ranks;
    for (const auto& [number, rank] : members_.ranks())
      if (rank->state < ProcessState::finalizing) ranks.push_back(number);
    not_finalizing_ = std::move(ranks);
  }
  return *not_finalizing_;
}

}  // namespace bestride::inline telemetry
