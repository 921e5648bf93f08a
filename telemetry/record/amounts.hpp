// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes the record of what a rank sends to and expects of each other one in a collective call.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "telemetry/record/layout.hpp"

namespace bestride::inline telemetry {

/// While it exists, the amounts are being written. Values that do not fit leave the record without a call.
class AmountsWriter {
 public:
  AmountsWriter(RecordFile& file, std::uint32_t communicator, std::uint32_t ordinal) noexcept
      : amounts_(older_of(file.amounts)), version_(amounts_.version.get()) {
    // Another thread writes: its call is the one that is recorded.
    good_ = version_ % 2 == 0 && amounts_.version.atomic().compare_exchange_strong(version_, version_ + 1);
    if (!good_) return;
    std::atomic_thread_fence(std::memory_order_release);
    amounts_.communicator.set(communicator);
    amounts_.ordinal.set(ordinal);
    amounts_.sent.set(0);
    amounts_.received.set(0);
  }
  AmountsWriter(const AmountsWriter&) = delete;
  AmountsWriter& operator=(const AmountsWriter&) = delete;
  ~AmountsWriter() {
    if (good_) amounts_.version.atomic().store(version_ + 2, std::memory_order_release);
  }

  /// All amounts of one direction, first those that are sent. `bytes_of(i)`: of value i.
  template <class BytesOf>
  void add(bool sent, std::size_t count, BytesOf bytes_of) noexcept {
    if (!good_) return;
    if (used_ + count > max_amounts) return amounts_.ordinal.set(0);
    for (std::size_t i = 0; i < count; ++i)
      amounts_.values[used_ + i].set(static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes_of(i), unknown_amount)));
    used_ += count;
    (sent ? amounts_.sent : amounts_.received).set(static_cast<std::uint16_t>(count));
  }

 private:
  static AmountsRecord& older_of(AmountsRecord (&kept)[amounts_kept]) noexcept {
    return *std::min_element(std::begin(kept), std::end(kept), [](const auto& a, const auto& b) {
      return static_cast<std::int32_t>(a.version.get() - b.version.get()) < 0;
    });
  }

  AmountsRecord& amounts_;
  std::uint32_t version_;
  bool good_;
  std::size_t used_ = 0;
};

}  // namespace bestride::inline telemetry
