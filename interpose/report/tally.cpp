// SPDX-License-Identifier: Apache-2.0
#include "interpose/report/tally.hpp"

namespace bestride::inline interpose {

namespace {
constexpr std::size_t sums_kept = 256;
}

void Tally::add(const TalliedCall& tallied) noexcept {
  const std::lock_guard lock(mutex_);
  for (Sum& sum : sums_)
    if (sum.tallied.call == tallied.call && sum.tallied.strategy == tallied.strategy &&
        sum.tallied.reason == tallied.reason && sum.tallied.layout == tallied.layout) {
      ++sum.calls;
      sum.tallied.bytes += tallied.bytes;
      sum.tallied.seconds += tallied.seconds;
      sum.tallied.saved_seconds += tallied.saved_seconds;
      return;
    }
  try {
    if (sums_.size() >= sums_kept) write_out();
    sums_.push_back({tallied, 1});
  } catch (...) {
    // A missing line in the report is acceptable if there is no memory for it.
  }
}

void Tally::write_out() noexcept {
  for (const Sum& sum : sums_) try {
      ledger_.post({sum.tallied.call, sum.tallied.layout ? sum.tallied.layout->text() : "", sum.tallied.strategy,
                    sum.tallied.reason, sum.calls, static_cast<std::uint64_t>(sum.tallied.bytes), sum.tallied.seconds,
                    sum.tallied.saved_seconds});
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
