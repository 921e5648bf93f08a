// SPDX-License-Identifier: Apache-2.0
#include "interpose/report/tally.hpp"

#include <string_view>

#include "telemetry/record/recorder.hpp"

namespace bestride::inline interpose {

namespace {

constexpr std::size_t sums_kept = 256;

std::uint16_t served_by(std::string_view strategy) noexcept {
  return strategy == name(Strategy::forward)                     ? served_by_mpi
         : strategy == name(Strategy::pack)                      ? served_packed
         : strategy == name(Strategy::respell)                   ? served_respelled
         : strategy == "engine"                                  ? served_by_engine
         : strategy == "one node"                                ? served_in_one_node
         : strategy == "hierarchical" || strategy == "quantized" ? served_hierarchically
                                                                 : served_from_device;
}

}  // namespace

/// Adds to the call site of the call that this thread is in, if this call is recorded. The caller holds the lock.
void Tally::add_to_site(std::uint16_t served, double saved_seconds) noexcept {
  RecordFile* const file = Recorder::get().file();
  const ThreadRecorder* const thread = thread_recorder;
  if (!file || !thread || !thread->call || thread->call->left.get() != 0) return;
  const std::uint32_t site = thread->call->site.get();
  if (site >= max_sites) return;
  SiteEffects& effects = file->effects;
  effects.served[site].set(static_cast<std::uint16_t>(effects.served[site].get() | served));
  saved_at_site_[site] += saved_seconds;
  effects.saved_seconds[site].set(static_cast<float>(saved_at_site_[site]));
}

void Tally::add(const TalliedCall& tallied) noexcept {
  const std::lock_guard lock(mutex_);
  const FloatEnvironment floats;
  for (Sum& sum : sums_)
    if (sum.tallied.call == tallied.call && sum.tallied.strategy == tallied.strategy &&
        sum.tallied.reason == tallied.reason && sum.tallied.layout == tallied.layout) {
      ++sum.calls;
      sum.tallied.bytes += tallied.bytes;
      sum.tallied.seconds += tallied.seconds;
      sum.tallied.saved_seconds += tallied.saved_seconds;
      sum.tallied.engine_seconds += tallied.engine_seconds;
      return add_to_site(sum.served, tallied.saved_seconds);
    }
  const std::uint16_t served = served_by(tallied.strategy);
  add_to_site(served, tallied.saved_seconds);
  try {
    if (sums_.size() >= sums_kept) write_out();
    sums_.push_back({tallied, 1, served});
  } catch (...) {
    // A missing line in the report is acceptable if there is no memory for it.
  }
}

void Tally::write_out() noexcept {
  for (const Sum& sum : sums_) try {
      ledger_.post({sum.tallied.call, sum.tallied.layout ? sum.tallied.layout->text() : "", sum.tallied.strategy,
                    sum.tallied.reason, sum.calls, static_cast<std::uint64_t>(sum.tallied.bytes), sum.tallied.seconds,
                    sum.tallied.saved_seconds, sum.tallied.engine_seconds});
    } catch (...) {
    }
  sums_.clear();
}

Ledger& Tally::ledger() noexcept {
  const std::lock_guard lock(mutex_);
  write_out();
  return ledger_;
}

}  // namespace bestride::inline interpose
