// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/tally.hpp"

namespace bestride {

namespace {
constexpr std::size_t sums_kept = 256;
}

void Tally::add(const Deed& deed) noexcept {
  const std::lock_guard lock(mutex_);
  for (Sum& sum : sums_)
    if (sum.deed.call == deed.call && sum.deed.strategy == deed.strategy && sum.deed.reason == deed.reason &&
        sum.deed.layout == deed.layout) {
      ++sum.calls;
      sum.deed.bytes += deed.bytes;
      sum.deed.seconds += deed.seconds;
      sum.deed.saved_seconds += deed.saved_seconds;
      return;
    }
  try {
    if (sums_.size() >= sums_kept) write_out();
    sums_.push_back({deed, 1});
  } catch (...) {
    // A report with a missing line is better than a job without memory.
  }
}

void Tally::write_out() noexcept {
  for (const Sum& sum : sums_) try {
      ledger_.post({sum.deed.call, sum.deed.layout ? sum.deed.layout->text() : "", sum.deed.strategy,
                    sum.deed.reason, sum.calls, static_cast<std::uint64_t>(sum.deed.bytes), sum.deed.seconds,
                    sum.deed.saved_seconds});
    } catch (...) {
    }
  sums_.clear();
}

Ledger& Tally::ledger() noexcept {
  const std::lock_guard lock(mutex_);
  write_out();
  return ledger_;
}

}  // namespace bestride
