// SPDX-License-Identifier: Apache-2.0
#pragma once
// The sum of a quantized reduction: numbers are added in full precision, and partial sums cross the network as codes.
#include "collectives/core/node_vectors.hpp"
#include "collectives/core/reduction.hpp"
#include "kernels/quantize/format.hpp"

namespace bestride::inline collectives {

/// Codes of the accumulator: float64, or float32, which also accumulates 16-bit numbers.
class QuantizedCoding final : public WireCoding {
 public:
  QuantizedCoding(NumberFormat accumulator, CodeBits bits) noexcept;
  std::int64_t coded_bytes(std::int64_t bytes) const noexcept override;
  void encode(const std::byte* piece, std::int64_t bytes, std::byte* coded) const noexcept override;
  void combine(const std::byte* coded, std::byte* inout, std::int64_t bytes) const noexcept override;

 private:
  const NumberFormat accumulator_;
  const CodeBits bits_;
};

class NumberSum final : public Reduction {
 public:
  /// `accumulator`: float32 or float64. `given` outlives this object.
  NumberSum(NumberFormat accumulator, const WireCoding& given) noexcept;
  void combine(const std::byte* in, std::byte* inout, std::int64_t bytes) const noexcept override;

 private:
  const bool doubles_;
};

/// Vectors of 16-bit numbers, presented as float32 with twice the length. Written numbers are rounded.
class WidenedVectors final : public NodeVectors {
 public:
  /// `inner` outlives this object.
  WidenedVectors(const NodeVectors& inner, NumberFormat format) noexcept : inner_(inner), format_(format) {}

  std::int64_t bytes(int node) const noexcept override { return 2 * inner_.bytes(node); }
  Range part(int node, int local_rank) const noexcept override {
    const Range part = inner_.part(node, local_rank);
    return {2 * part.first, 2 * part.last};
  }
  std::byte* at(int, Range) const noexcept override { return nullptr; }
  void read(int node, Range range, void* to) const noexcept override;
  void write(int node, Range range, const void* from) const noexcept override;

 private:
  const NodeVectors& inner_;
  const NumberFormat format_;
};

}  // namespace bestride::inline collectives
