// SPDX-License-Identifier: Apache-2.0
#pragma once
// SiteTable: the places in the program that make MPI calls, by return address.
//
// The first call of a place unwinds the stack and stores its frames, as module and offset, so that they can be named
// after the process has ended. Later calls find the place by a table in private memory (2 ns). A place that is reached
// by several stacks keeps the first. A Fortran program calls a layer of the MPI library, which makes the call, so the
// return address is the same for all its calls. There the first call also finds how far up the stack the return address
// into the program lies; the frames of such a layer have a fixed size, and later calls read the address there.
// Alternative considered: unwinding in every call, 20 to 25 ns a frame with the fastest known unwinder (libunwind's
// unw_backtrace).
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

  /// Where a function was called.
  struct Caller {
    const void* return_address;
    const void* frame;  ///< its canonical frame address (__builtin_dwarf_cfa)
  };
  /// The index of the place, made at its first call by `function`; no_index if the table is full.
  [[gnu::always_inline]] std::uint32_t find(const Caller& caller, std::uint16_t function) noexcept {
    const auto address = reinterpret_cast<std::uint64_t>(caller.return_address);
    for (unsigned i = hash(address);; i = (i + 1) % slots) {
      const std::uint64_t key = table_[i].key.load(std::memory_order_acquire);
      if (key == address) [[likely]] {
        const std::uint32_t distance = table_[i].distance.load(std::memory_order_acquire);
        return distance == 0 ? table_[i].value : find_outer(caller, distance, function);
      }
      if (key == 0) return add(caller, function);
    }
  }
  /// The return address into the program, which identifies the place: that of the caller, or one further out if the
  /// caller is a layer of the MPI library. After find().
  std::uint64_t program_address(const Caller& caller) const noexcept;
  /// The record of a place; of no_index the one for all places that have none.
  SiteRecord& record_of(std::uint32_t site) noexcept {
    return site == no_index ? file_.other_sites : file_.sites[site];
  }
  /// Adds one call. Concurrent calls of several threads may be counted incompletely.
  [[gnu::always_inline]] static void count(SiteRecord& record, std::uint64_t bytes) noexcept {
    record.calls.add(1);
    record.bytes.add(bytes);
  }
  /// Adds the time of a call. `ticks`: 0 if it was not timed.
  void add_time(SiteRecord& record, std::uint64_t ticks) noexcept;
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
  std::uint32_t add(const Caller& caller, std::uint16_t function) noexcept;
  /// The place of a call by a layer of the MPI library: its return address lies `distance` bytes above caller.frame.
  std::uint32_t find_outer(const Caller& caller, std::uint32_t distance, std::uint16_t function) noexcept;
  /// These are called with the mutex.
  std::uint32_t insert(std::uint64_t address, std::uint16_t function, std::uint32_t distance) noexcept;
  std::uint32_t give_up_outer(std::uint64_t address, std::uint16_t function) noexcept;
  std::uint32_t make_site(std::uint64_t address, std::uint16_t function) noexcept;
  std::uint32_t module_of(std::uint64_t address, std::uint64_t* load_address) noexcept;
  std::uint32_t frame_of_stack() noexcept;

  RecordFile& file_;
  const std::uint64_t skipped_;
  int bits_per_us_ = 10;
  unsigned entries_ = 0;
  std::mutex mutex_;
  struct Slot {
    std::atomic<std::uint64_t> key{0};       ///< return address; 0: vacant
    std::uint32_t value = 0;                 ///< index of the site, or no_index
    std::atomic<std::uint32_t> distance{0};  ///< of calls by a layer of the MPI library; else 0
  };
  Slot table_[slots];
};

}  // namespace bestride::inline telemetry
