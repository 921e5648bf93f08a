// SPDX-License-Identifier: Apache-2.0
#pragma once
// For tests: a window, an intercommunicator and amounts in a job made by hand.
#include <string>
#include <vector>

#include "telemetry/waits/sample_job.hpp"

namespace bestride::inline telemetry {

inline constexpr std::uint32_t sample_window = 1, sample_inter = 2;  ///< indices of their entries

/// A window of all ranks.
inline void add_window(SampleJob& job) {
  for (RankSnapshot& rank : job.ranks)
    rank.communicators.push_back(
        {sample_window, 77, 1, 0, rank.world_size, rank.world_rank, 0, 1, CommunicatorKind::window, "halo"});
}
/// What a rank has done with another one on the window.
inline EpochSnapshot& epoch(SampleJob& job, int rank, int other) {
  std::vector<EpochSnapshot>& epochs = job.ranks[static_cast<std::size_t>(rank)].epochs;
  for (EpochSnapshot& known : epochs)
    if (known.rank == other) return known;
  epochs.reserve(16);  // references stay valid
  return epochs.emplace_back(EpochSnapshot{sample_window, other});
}
/// A call on the window.
inline void finished(SampleJob& job, int rank, const std::string& function, std::int32_t target) {
  CallSnapshot call;
  call.function = number_of(function);
  call.communicator = sample_window;
  call.peer = target;
  job.ranks[static_cast<std::size_t>(rank)].threads[0].finished.push_back(call);
}
/// An intercommunicator of the first `first` ranks and the others.
inline void add_inter(SampleJob& job, int first) {
  for (RankSnapshot& rank : job.ranks) {
    const bool lower = rank.world_rank < first;
    const std::int32_t others = rank.world_size - first;
    CommunicatorSnapshot inter{sample_inter,
                               88,
                               0,
                               0,
                               lower ? others : first,
                               lower ? rank.world_rank : rank.world_rank - first,
                               lower ? first : 0,
                               1,
                               CommunicatorKind::inter,
                               ""};
    inter.local_size = lower ? first : others;
    inter.side = lower ? 0 : 1;
    rank.communicators.push_back(inter);
  }
}
/// What a rank gives in the collective call in which it is, as its only amounts.
inline void amounts(SampleJob& job, int rank, std::vector<std::uint32_t> sent, std::vector<std::uint32_t> received) {
  RankSnapshot& of = job.ranks[static_cast<std::size_t>(rank)];
  of.amounts = {
      {of.threads[0].current->communicator, of.threads[0].current->ordinal, std::move(sent), std::move(received)}};
}

}  // namespace bestride::inline telemetry
