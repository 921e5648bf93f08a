// SPDX-License-Identifier: Apache-2.0
#include "telemetry/report/ledger.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace bestride::inline telemetry {
namespace {

std::string key_of(const LedgerLine& line) {
  std::string key;
  key.reserve(line.call.size() + line.layout.size() + line.strategy.size() + line.reason.size() + 3);
  for (const std::string* part : {&line.call, &line.layout, &line.strategy, &line.reason}) {
    key += *part;
    key += '\0';
  }
  return key;
}

std::uint64_t saturating(std::uint64_t a, std::uint64_t b) noexcept {
  return a > std::numeric_limits<std::uint64_t>::max() - b ? std::numeric_limits<std::uint64_t>::max() : a + b;
}

void add(LedgerLine& sum, const LedgerLine& line) noexcept {
  sum.calls = saturating(sum.calls, line.calls);
  sum.bytes = saturating(sum.bytes, line.bytes);
  sum.seconds += line.seconds;
  sum.saved_seconds += line.saved_seconds;
  sum.engine_seconds += line.engine_seconds;
}

}  // namespace

void Ledger::post(const LedgerLine& line) noexcept try {
  const std::string key = key_of(line);
  const std::lock_guard lock(mutex_);
  if (const auto found = lines_.find(key); found != lines_.end()) return add(found->second, line);
  if (lines_.size() < capacity_) {
    lines_.emplace(key, line);
    return;
  }
  LedgerLine others;
  others.call = "(others)";
  add(lines_.try_emplace(key_of(others), others).first->second, line);
} catch (...) {
  // Out of memory, or a broken mutex: the report lacks this sum, and the job continues.
}

void Ledger::post(const CacheSums& sums) noexcept try {
  const std::lock_guard lock(mutex_);
  for (std::uint64_t CacheSums::*const sum : cache_sums) cache_.*sum = saturating(cache_.*sum, sums.*sum);
} catch (...) {
}

CacheSums Ledger::cache() const noexcept try {
  const std::lock_guard lock(mutex_);
  return cache_;
} catch (...) {
  return {};
}

std::vector<LedgerLine> Ledger::lines() const {
  std::vector<LedgerLine> all;
  {
    const std::lock_guard lock(mutex_);
    all.reserve(lines_.size());
    for (const auto& [key, line] : lines_) all.push_back(line);
  }
  // Lines of equal bytes are sorted by name, so that equal jobs print equal reports.
  std::sort(all.begin(), all.end(), [](const LedgerLine& a, const LedgerLine& b) {
    return std::tie(b.bytes, a.call, a.layout, a.strategy, a.reason) <
           std::tie(a.bytes, b.call, b.layout, b.strategy, b.reason);
  });
  return all;
}

}  // namespace bestride::inline telemetry
