// SPDX-License-Identifier: Apache-2.0
#pragma once
// SiteTable: the places in the program that make MPI calls, by return address.
//
// The first call of a place unwinds the stack and stores its frames, as module and offset, so that they can be named
// after the process has ended. Later calls find the place by a table in private memory (2 ns). A place that is reached
// by several stacks keeps the first. Alternative considered: unwinding in every call, 20 to 25 ns a frame with the
// fastest known unwinder (libunwind's unw_backtrace).
#include <atomic>
#include <bit>
#include <cstdint>
#include <mutex>

#include "telemetry/record/layout.hpp"

namespace bestride::inline telemetry {

class SiteTable {
 public:
  /// `skipped`: the load address of a module whose frames are left out: the backend's.
  SiteTable(RecordFile& file, std::uint64_t skipped) noexcept : file_(file), skipped_(skipped) {}

  /// The index of the place with this return address, made at its first call by `function`; no_index if the table is
  /// full.
  std::uint32_t find(const void* return_address, std::uint16_t function) noexcept {
    const auto address = reinterpret_cast<std::uint64_t>(return_address);
    for (unsigned i = hash(address);; i = (i + 1) % slots) {
      const std::uint64_t key = keys_[i].load(std::memory_order_acquire);
      if (key == address) return values_[i];
      if (key == 0) return add(address, function);
    }
  }
  /// Adds one call. `ticks`: 0 if it was not timed. Calls of several threads at one time may be missed.
  [[gnu::always_inline]] void count(std::uint32_t site, std::uint64_t bytes, std::uint64_t ticks) noexcept {
    if (site == no_index) return;
    SiteRecord& record = file_.sites[site];
    record.calls.add(1);
    record.bytes.add(bytes);
    if (ticks == 0) return;
    record.ticks.add(ticks);
    if (ticks > record.most_ticks.get()) record.most_ticks.set(ticks);
    record.histogram[duration_class(ticks)].add(1);
  }
  void set_ticks_per_second(double ticks) noexcept {
    bits_per_us_ = std::bit_width(static_cast<std::uint64_t>(ticks / 1e6));
  }

 private:
  static constexpr unsigned slots = 4 * max_sites;
  static constexpr int last_class = histogram_size - 1;
  static unsigned hash(std::uint64_t address) noexcept {
    return static_cast<unsigned>((address * 0x9E3779B97F4A7C15u) >> 40) % slots;
  }
  unsigned duration_class(std::uint64_t ticks) const noexcept {
    const int class_of_ticks = (std::bit_width(ticks) - bits_per_us_ + 2) / 2;
    return static_cast<unsigned>(class_of_ticks < 0 ? 0 : class_of_ticks < last_class ? class_of_ticks : last_class);
  }
  std::uint32_t add(std::uint64_t address, std::uint16_t function) noexcept;
  std::uint32_t module_of(std::uint64_t address, std::uint64_t* load_address) noexcept;
  std::uint32_t frame_of_stack() noexcept;

  RecordFile& file_;
  const std::uint64_t skipped_;
  int bits_per_us_ = 10;
  unsigned dropped_ = 0;
  std::mutex mutex_;
  std::atomic<std::uint64_t> keys_[slots] = {};
  std::uint32_t values_[slots] = {};
};

}  // namespace bestride::inline telemetry
