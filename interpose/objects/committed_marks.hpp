// SPDX-License-Identifier: Apache-2.0
#pragma once
// CommittedMarks: derived types that are committed and have not been used since, one word for each handle: the context
// with which the library has registered the type (ServedTypes).
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
  /// False: a type with this handle can't have a mark. `context`: nullptr if the library registered nothing; a context
  /// that is known stays then, since a type may be committed again.
  bool set(MPI_Datatype type, void* context) noexcept {
    const std::uint32_t at = place(type);
    if (at >= places) return false;
    if (context || !marks_[at].load(std::memory_order_relaxed))
      marks_[at].store(context ? context : &no_context, std::memory_order_release);
    return true;
  }
  /// True if it had a mark; *context as given to set().
  bool clear(MPI_Datatype type, void** context) noexcept {
    const std::uint32_t at = place(type);
    void* const mark = at < places ? marks_[at].load(std::memory_order_relaxed) : nullptr;
    if (!mark) return false;
    marks_[at].store(nullptr, std::memory_order_release);
    *context = mark == &no_context ? nullptr : mark;
    return true;
  }
  /// The context that was given to set() for a type that has a mark.
  void* context(MPI_Datatype type) const noexcept {
    void* const mark = marks_[place(type)].load(std::memory_order_acquire);
    return mark == &no_context ? nullptr : mark;
  }
  void clear() noexcept {
    for (auto& mark : marks_) mark.store(nullptr, std::memory_order_relaxed);
  }
  std::size_t count() const noexcept {
    std::size_t marked = 0;
    for (const auto& mark : marks_) marked += mark.load(std::memory_order_relaxed) != nullptr;
    return marked;
  }

 private:
  static inline char no_context;
  static constexpr std::uint32_t handles = 2048, places = 2 * handles;
  /// `places`: none. MPICH's handles: 2 bits 2 (the first types) or 3, 4 bits 3 for a datatype, 26 bits: a number.
  [[gnu::always_inline]] static std::uint32_t place(auto type) noexcept {  // a template: handles may be pointers
    if constexpr (std::is_integral_v<decltype(type)>) {
      const auto handle = static_cast<std::uint32_t>(type), number = handle & 0x3ffffff;
      if ((handle & 0xbc000000) == 0x8c000000 && number < handles) return number + (handle >> 30 & 1) * handles;
    }
    return places;
  }
  std::array<std::atomic<void*>, places> marks_{};
};

}  // namespace bestride::inline interpose
