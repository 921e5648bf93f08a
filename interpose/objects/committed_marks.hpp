// SPDX-License-Identifier: Apache-2.0
#pragma once
// CommittedMarks: derived types that are committed and have not been used since, one byte for each handle.
//
// Programs that make a type for each message use many of them once, and some never. A type with a mark costs a store
// at its commit and one at its end; its entry is made at its first use. Only for MPI libraries whose handles are
// numbered (MPICH and its family), and for the first handles.
#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <type_traits>

namespace bestride::inline interpose {

class CommittedMarks {
 public:
  [[gnu::always_inline]] bool has(MPI_Datatype type) const noexcept {
    const std::uint32_t at = place(type);
    return at < places && marks_[at].load(std::memory_order_acquire);
  }
  /// False: a type with this handle can't have a mark.
  bool set(MPI_Datatype type) noexcept {
    const std::uint32_t at = place(type);
    if (at >= places) return false;
    marks_[at].store(true, std::memory_order_release);
    return true;
  }
  /// True if it had a mark.
  bool clear(MPI_Datatype type) noexcept {
    const std::uint32_t at = place(type);
    if (at >= places || !marks_[at].load(std::memory_order_relaxed)) return false;
    marks_[at].store(false, std::memory_order_release);
    return true;
  }
  void clear() noexcept {
    for (auto& mark : marks_) mark.store(false, std::memory_order_relaxed);
  }
  std::size_t count() const noexcept {
    std::size_t marked = 0;
    for (const auto& mark : marks_) marked += mark.load(std::memory_order_relaxed);
    return marked;
  }

 private:
  static constexpr std::uint32_t handles = 2048, places = 2 * handles;
  /// `places`: none. MPICH's handles: 2 bits 2 (the first types) or 3, 4 bits 3 for a datatype, 26 bits: a number.
  [[gnu::always_inline]] static std::uint32_t place(MPI_Datatype type) noexcept {
    if constexpr (std::is_integral_v<MPI_Datatype>) {
      const auto handle = static_cast<std::uint32_t>(type), number = handle & 0x3ffffff;
      if ((handle & 0xbc000000) == 0x8c000000 && number < handles) return number + (handle >> 30 & 1) * handles;
    }
    return places;
  }
  std::array<std::atomic<bool>, places> marks_{};
};

}  // namespace bestride::inline interpose
