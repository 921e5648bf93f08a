// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "telemetry/mpi_time/job_time.hpp"
#include "telemetry/waits/call_kind.hpp"
#include "telemetry/waits/members.hpp"

namespace bestride::inline telemetry {
namespace {

/// One collective call of all members.
struct Instance {
  std::string host;
  std::int32_t size = 0;
  std::vector<std::pair<double, double>> calls;  ///< entry and return, seconds
  bool usable = true;
};

}  // namespace

CollectiveWait measure_collective_wait(std::span<const RankSnapshot> job) {
  std::map<std::pair<std::uint64_t, std::uint32_t>, Instance> instances;
  const Members members(job);
  const HostClocks clocks(job);
  for (const auto& [number, rank] : members.ranks())
    for (const ThreadSnapshot& thread : rank->threads)
      for (const CallSnapshot& call : thread.finished) {
        // left 1: not timed. Then the time of entry is that of an earlier call, too.
        if (call.ordinal == 0 || call.left <= call.entered || !may_block(call.function, true) ||
            kind_of(call.function, true) != CallKind::from_all)
          continue;
        const CommunicatorSnapshot* const communicator = rank->communicator(call.communicator);
        if (!communicator || communicator->uid == 0 || communicator->kind == CommunicatorKind::inter) continue;
        Instance& instance = instances[{communicator->uid, call.ordinal}];
        if (instance.calls.empty()) instance.host = rank->host, instance.size = communicator->size;
        instance.usable = instance.usable && instance.host == rank->host && instance.size == communicator->size;
        instance.calls.emplace_back(clocks.realtime(*rank, call.entered), clocks.realtime(*rank, call.left));
      }
  CollectiveWait result;
  for (const auto& [key, instance] : instances) {
    if (!instance.usable || instance.calls.size() != static_cast<std::size_t>(instance.size)) continue;
    ++result.instances;
    const double last = std::max_element(instance.calls.begin(), instance.calls.end())->first;
    for (const auto& [entered, left] : instance.calls) {
      result.seconds += left - entered;
      result.waited += std::max(0.0, std::min(last, left) - entered);
    }
  }
  return result;
}

}  // namespace bestride::inline telemetry
