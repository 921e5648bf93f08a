// SPDX-License-Identifier: Apache-2.0
#pragma once
// Moves: copy one block, writing exactly its own bytes. Compiled once per target (see cpu/kernel_table.hpp). They use
// GCC vector types, not intrinsics: the same line compiles to two ymm moves, four xmm or four NEON moves.
#include "base/copy.hpp"
#include "kernels/cpu/piece.hpp"

namespace bestride::inline kernels::BESTRIDE_TARGET {

using Int = std::int64_t;

// Not 64 with AVX-512: such a move crosses a cache line unless it is aligned, which the fragments of a message are not
// (Intel, messages of 128-byte blocks in the cache: 1.98 us with moves of 64 bytes, 1.70 with 32; nowhere slower).
#if defined(__AVX2__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

template <int W, bool in_register = (W <= vector_bytes)>
struct Bytes;
template <>
struct Bytes<1, true> {
  std::uint8_t v;
};
template <>
struct Bytes<2, true> {
  std::uint16_t v;
};
template <>
struct Bytes<4, true> {
  std::uint32_t v;
};
template <>
struct Bytes<8, true> {
  std::uint64_t v;
};
template <int W>
struct Bytes<W, true> {
  unsigned char v __attribute__((vector_size(W)));
};
/// Bytes of the first of two parts: half of the width, except 192 = 128 + 64.
constexpr int first_part(int w) { return w == 192 ? 128 : w / 2; }
template <int W>
struct Bytes<W, false> {
  Bytes<first_part(W)> low;
  Bytes<W - first_part(W)> high;
};

template <int W>
[[gnu::always_inline]] inline Bytes<W> load(const Byte* from) {
  Bytes<W> value;
  if constexpr (W <= vector_bytes) {
    __builtin_memcpy(&value.v, from, W);
  } else {
    value.low = load<first_part(W)>(from);
    value.high = load<W - first_part(W)>(from + first_part(W));
  }
  return value;
}

template <int W>
[[gnu::always_inline]] inline void store(Byte* to, const Bytes<W>& value) {
  if constexpr (W <= vector_bytes) {
    __builtin_memcpy(to, &value.v, W);
  } else {
    store<first_part(W)>(to, value.low);
    store<W - first_part(W)>(to + first_part(W), value.high);
  }
}

/// Exactly W bytes.
template <int W>
struct WordMove {
  static constexpr Int width(Int) { return W; }
  [[gnu::always_inline]] static void move(Byte* to, const Byte* from, Int) { store<W>(to, load<W>(from)); }
};

/// H < width < 2 H: two moves of H bytes that overlap.
template <int H>
struct OverlapMove {
  static constexpr Int width(Int w) { return w; }
  [[gnu::always_inline]] static void move(Byte* to, const Byte* from, Int w) {
    const Bytes<H> first = load<H>(from);
    const Bytes<H> last = load<H>(from + w - H);
    store<H>(to, first);
    store<H>(to + w - H, last);
  }
};

/// A Move that repeats its stores K times. For blocks that each are in their own cache line, at strides that map to few
/// sets of the L1 cache. The stores in the store queue prefetch their lines; if there are more such lines than ways,
/// the lines evict each other before they are written. With more stores per line, fewer lines are in the queue (see
/// Choose::paced).
template <class Move, int K>
struct PacedMove {
  static constexpr Int width(Int w) { return Move::width(w); }
  [[gnu::always_inline]] static void move(Byte* to, const Byte* from, Int w) {
    for (int i = 0; i < K; ++i) {
      Move::move(to, from, w);
      asm volatile("" : : : "memory");
    }
  }
};

/// width > 64: full vectors; the last one overlaps the one before it.
struct WideMove {
  static constexpr int step = vector_bytes;
  static constexpr Int width(Int w) { return w; }
  [[gnu::always_inline]] static void move(Byte* to, const Byte* from, Int w) {
    Int i = 0;
    for (; i + 4 * step <= w; i += 4 * step) {
      const Bytes<step> a = load<step>(from + i);
      const Bytes<step> b = load<step>(from + i + step);
      const Bytes<step> c = load<step>(from + i + 2 * step);
      const Bytes<step> d = load<step>(from + i + 3 * step);
      store<step>(to + i, a);
      store<step>(to + i + step, b);
      store<step>(to + i + 2 * step, c);
      store<step>(to + i + 3 * step, d);
    }
    for (; i + step <= w; i += step) store<step>(to + i, load<step>(from + i));
    if (i < w) store<step>(to + w - step, load<step>(from + w - step));
  }
};

/// Any width, by memcpy.
struct CopyMove {
  static constexpr Int width(Int w) { return w; }
  [[gnu::always_inline]] static void move(Byte* to, const Byte* from, Int w) {
    copy_bytes(to, from, static_cast<std::size_t>(w));
  }
};

/// Any width > 0, without a function call below 256 bytes. Used for lists of mixed lengths.
struct AnyMove {
  static constexpr Int width(Int w) { return w; }
  [[gnu::always_inline]] static void move(Byte* to, const Byte* from, Int w) {
    if (w > 16) {
      if (w <= 32) return pair<16>(to, from, w);
      if (w <= 64) return pair<32>(to, from, w);
      if (w <= 256) return WideMove::move(to, from, w);
      return CopyMove::move(to, from, w);
    }
    if (w >= 8) return pair<8>(to, from, w);
    if (w >= 4) return pair<4>(to, from, w);
    if (w >= 2) return pair<2>(to, from, w);
    *to = *from;
  }

 private:
  /// H <= width <= 2 H.
  template <int H>
  [[gnu::always_inline]] static void pair(Byte* to, const Byte* from, Int w) {
    OverlapMove<H>::move(to, from, w);
  }
};

}  // namespace bestride::inline kernels::BESTRIDE_TARGET
