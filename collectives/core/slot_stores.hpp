// SPDX-License-Identifier: Apache-2.0
#pragma once
// SlotStores: how a rank writes to its slots, which other ranks read: with ordinary stores, or past the caches.
//
// An ordinary store to a line that a reader still has in its cache first takes the line away from it. Between
// processors that share a cache that is fast. Between others a core waits for it longer than a store past the caches
// takes to reach memory, from which the reader then fetches the line. Messages of 1 MiB between two processors of an
// EPYC: 11 GB/s with ordinary stores and 14 past the caches if they share a cache, else 3 and 20. Which it is, neither
// the topology that a virtual machine shows nor the place of an unbound rank tells, so some of the stores are timed
// (docs/decisions/slot_stores.md).
#include <cstddef>
#include <cstdint>
#include <memory>

#include "collectives/core/lanes.hpp"
#include "collectives/core/node_vectors.hpp"
#include "collectives/core/operand.hpp"

namespace bestride::inline collectives {

/// The decision, from samples of ordinary stores. Three samples in a row have to contradict it before it changes,
/// because a rank that loses its processor during a sample seems slow.
class StoreChoice {
 public:
  /// Pieces until the next sample.
  static constexpr int ordinary_interval = 16, bypassing_interval = 256, samples_to_change = 3;

  bool bypasses() const noexcept { return bypasses_; }
  /// Counts a piece. True: it is to be sampled.
  bool samples() noexcept { return --left_ <= 0; }
  /// The result of a sample. `slow`: below the speed of stores past the caches.
  void sampled(bool slow) noexcept;

 private:
  int left_ = ordinary_interval, contradictions_ = 0;
  bool bypasses_ = false;
};

/// Only for bytes that another rank reads: otherwise the samples say nothing. Used by one thread at a time.
class SlotStores {
 public:
  /// Shorter pieces are written with ordinary stores: between distant processors both take as long.
  static constexpr std::int64_t least_bytes = 2048;
  static constexpr std::int64_t strip_bytes = 8 * 1024;

  /// `streaming_from`: as PackerOptions::streaming_from. -1: decide by samples; 0: always ordinary stores; else pieces
  /// of at least this size are written past the caches. May throw std::bad_alloc.
  /// `choice`: the first one.
  explicit SlotStores(std::int64_t streaming_from = PackerOptions::from_settings().streaming_from,
                      StoreChoice choice = {});

  /// Writes bytes `range` of `from`, or of a node's vector, or `bytes` bytes to `slot`.
  void fill(std::byte* slot, const Operand& from, Range range) noexcept;
  void fill(std::byte* slot, const NodeVectors& from, int node, Range range) noexcept;
  void fill(std::byte* slot, const std::byte* data, std::int64_t bytes) noexcept;
  /// Where `bytes` <= strip_bytes of a result are to be computed that go to `slot`: there, or nullptr for elsewhere.
  std::byte* place(std::byte* slot, std::int64_t bytes) const noexcept { return bypasses(bytes) ? nullptr : slot; }
  /// Writes a result that was computed elsewhere than at `slot`. Does nothing if it was computed there.
  void keep(std::byte* slot, const std::byte* data, std::int64_t bytes) noexcept;
  /// Orders all that was written before later stores.
  void flush() noexcept;

 private:
  bool bypasses(std::int64_t bytes) const noexcept {
    return bytes >= least_bytes && (from_ < 0 ? choice_.bypasses() : from_ > 0 && bytes >= from_);
  }
  /// from.at(range): the address of the bytes if they are contiguous, else nullptr. from.read(range, to) copies them.
  template <class Source>
  void fill(std::byte* slot, Range range, const Source& from) noexcept;
  /// Writes `bytes` bytes of strip_ and times that.
  void sample(std::byte* slot, std::int64_t bytes) noexcept;

  const std::int64_t from_;
  StoreChoice choice_;
  bool unordered_ = false;  ///< bytes were written past the caches since the last flush()
  std::unique_ptr<std::byte[]> strip_;
};

}  // namespace bestride::inline collectives
