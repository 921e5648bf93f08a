// SPDX-License-Identifier: Apache-2.0
#include "interpose/report/tally.hpp"

namespace bestride::inline interpose {

namespace {
constexpr std::size_t sums_kept = 256;
}

void Tally::add(const CallRecord& call_record) noexcept {
  const std::lock_guard lock(mutex_);
  for (Sum& sum : sums_)
    if (sum.call_record.call == call_record.call && sum.call_record.strategy == call_record.strategy &&
        sum.call_record.reason == call_record.reason && sum.call_record.layout == call_record.layout) {
      ++sum.calls;
      sum.call_record.bytes += call_record.bytes;
      sum.call_record.seconds += call_record.seconds;
      sum.call_record.saved_seconds += call_record.saved_seconds;
      return;
    }
  try {
    if (sums_.size() >= sums_kept) write_out();
    sums_.push_back({call_record, 1});
  } catch (...) {
    // A missing line in the report is acceptable if there is no memory for it.
  }
}

void Tally::write_out() noexcept {
  for (const Sum& sum : sums_) try {
      ledger_.post({sum.call_record.call, sum.call_record.layout ? sum.call_record.layout->text() : "",
                    sum.call_record.strategy, sum.call_record.reason, sum.calls,
                    static_cast<std::uint64_t>(sum.call_record.bytes), sum.call_record.seconds,
                    sum.call_record.saved_seconds});
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
