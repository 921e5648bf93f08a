// SPDX-License-Identifier: Apache-2.0
#pragma once
// DeltaCode: encodes pieces of an allgather as their difference from an older result that the arenas of both ends hold.
#include <vector>

#include "collectives/algorithms/allgather.hpp"

namespace bestride::inline collectives {

/// Reads `base` during the allgather; it must not change.
class DeltaCode final : public PieceCode {
 public:
  /// `base`: the older result, the node vectors one after the other. `begins`: where each node's vector begins in it.
  /// Both outlive this object.
  DeltaCode(const std::byte* base, const std::vector<std::int64_t>& begins) noexcept : base_(base), begins_(begins) {}

  std::int64_t encode(int node, Range range, const std::byte* piece, std::byte* out) noexcept override;
  bool decode(int node, Range range, const std::byte* encoded, std::int64_t bytes, std::byte* piece) noexcept override;

  /// Bytes saved by the encoded pieces.
  std::int64_t saved() const noexcept { return saved_; }

 private:
  const std::byte* base(int node, Range range) const noexcept {
    return base_ + begins_[static_cast<std::size_t>(node)] + range.first;
  }

  const std::byte* base_;
  const std::vector<std::int64_t>& begins_;
  std::int64_t saved_ = 0;
};

}  // namespace bestride::inline collectives
