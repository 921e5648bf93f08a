// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operands and placements for the tests of collectives/.
#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "collectives/core/operand.hpp"
#include "collectives/core/relays.hpp"
#include "datatype/build.hpp"
#include "datatype/expression.hpp"
#include "model/topology.hpp"

namespace bestride::inline collectives {

/// 1 to 5 nodes of 1 to 4 ranks, in block, cyclic or random order.
inline std::vector<int> random_placement(std::mt19937_64& random) {
  std::vector<int> nodes;
  const int count = static_cast<int>(1 + random() % 5);
  const int each = static_cast<int>(1 + random() % 4);
  switch (random() % 4) {
    case 0:
      for (int i = 0; i < count * each; ++i) nodes.push_back(i / each);
      break;
    case 1:
      for (int i = 0; i < count * each; ++i) nodes.push_back(i % count);
      break;
    default:  // unequal
      for (int i = 0, n = static_cast<int>(1 + random() % 12); i < n; ++i)
        nodes.push_back(static_cast<int>(random() % static_cast<std::uint64_t>(count)));
  }
  return nodes;
}

/// 2 to 5 nodes of 1 to 8 ranks each, in block order or random order.
inline std::vector<int> random_unequal_placement(std::mt19937_64& random) {
  std::vector<int> nodes;
  for (int node = 0, count = static_cast<int>(2 + random() % 4); node < count; ++node)
    nodes.insert(nodes.end(), 1 + random() % (random() % 2 ? 8 : 2), node);
  if (random() % 2) std::shuffle(nodes.begin(), nodes.end(), random);
  return nodes;
}

/// Sizes up to `most`, multiples of `unit`: all equal; some of them zero; one huge; or each at random.
inline std::vector<std::int64_t> random_unequal_sizes(std::mt19937_64& random, std::size_t ranks, std::int64_t most,
                                                      std::int64_t unit) {
  std::vector<std::int64_t> sizes(ranks, most / 2);
  const auto kind = random() % 4;
  for (auto& size : sizes) {
    if (kind == 1 && random() % 2) size = 0;
    if (kind == 2) size = static_cast<std::int64_t>(random() % 200);
    if (kind == 3) size = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1));
  }
  if (kind == 2) sizes[random() % ranks] = most * 2;
  for (auto& size : sizes) size = size / unit * unit;
  return sizes;
}

/// A size for each rank: all equal, or each at random; at most one of `most`.
inline std::vector<std::int64_t> random_sizes(std::mt19937_64& random, std::size_t ranks,
                                              const std::vector<std::int64_t>& most) {
  std::vector<std::int64_t> sizes(ranks, most[random() % most.size()]);
  if (random() % 2)
    for (auto& size : sizes) size = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(size + 1));
  return sizes;
}

/// A block of bytes for each rank, contiguous or every second byte of its place, without alignment.
class TestBlocks final : public Operands {
 public:
  TestBlocks(const std::vector<std::int64_t>& bytes, bool gaps) : bytes_(bytes), gaps_(gaps) {
    for (const std::int64_t b : bytes_) {
      begins_.push_back(static_cast<std::int64_t>(memory_.size()));
      memory_.resize(memory_.size() + static_cast<std::size_t>(gaps ? 2 * b + 1 : b), std::byte{0xEE});
      if (!gaps) continue;
      auto parsed = parse_type(("vector(" + std::to_string(b) + ",1,2,byte)").c_str());
      packers_.push_back(b ? std::make_unique<Packer>(intern(evaluate(*parsed)->bytes)) : nullptr);
    }
  }
  Operand of(int rank) const noexcept override {
    const std::size_t i = static_cast<std::size_t>(rank);
    std::byte* place = const_cast<std::byte*>(memory_.data()) + begins_[i];
    return gaps_ && packers_[i] ? Operand(place, *packers_[i]) : Operand(place, bytes_[i]);
  }
  std::int64_t bytes(int rank) const noexcept override { return bytes_[static_cast<std::size_t>(rank)]; }

  static std::byte content(int rank, std::int64_t i) { return static_cast<std::byte>(rank * 37 + i * 7 + i / 256); }
  static std::vector<std::byte> content(int rank, std::size_t bytes) {
    std::vector<std::byte> all(bytes);
    for (std::size_t i = 0; i < bytes; ++i) all[i] = content(rank, static_cast<std::int64_t>(i));
    return all;
  }
  void fill(int rank) { fill(rank, rank); }
  /// With the content of another rank number.
  void fill(int rank, int as) { fill(rank, content(as, static_cast<std::size_t>(bytes(rank)))); }
  void fill(int rank, const std::vector<std::byte>& content) { of(rank).write(content.data(), 0, bytes(rank)); }
  /// True if the rank's block has its content and no gap was written.
  bool holds(int rank) const { return holds(rank, rank); }
  bool holds(int rank, int as) const { return holds(rank, content(as, static_cast<std::size_t>(bytes(rank)))); }
  bool holds(int rank, const std::vector<std::byte>& content) const {
    const std::size_t bytes = content.size();
    if (bytes != static_cast<std::size_t>(bytes_[static_cast<std::size_t>(rank)])) return false;
    const std::byte* block = memory_.data() + begins_[static_cast<std::size_t>(rank)];
    if (!gaps_) return bytes == 0 || std::memcmp(block, content.data(), bytes) == 0;
    for (std::size_t i = 0; i < bytes; ++i)
      if (block[2 * i] != content[i] || block[2 * i + 1] != std::byte{0xEE}) return false;
    return true;
  }

 private:
  std::vector<std::int64_t> bytes_;
  bool gaps_;
  std::vector<std::int64_t> begins_;
  std::vector<std::byte> memory_;
  std::vector<std::unique_ptr<Packer>> packers_;
};

/// The bytes that each node contributes if blocks have these sizes.
inline std::vector<std::int64_t> node_bytes(const Topology& topology, const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(topology.nodes()));
  for (int rank = 0; rank < topology.ranks(); ++rank)
    bytes[static_cast<std::size_t>(topology.node_of(rank))] += sizes[static_cast<std::size_t>(rank)];
  return bytes;
}

/// Bytes that a node sends if all nodes receive all vectors.
inline std::int64_t sent_by(const RelayPlan& plan, int nodes, int node) {
  const std::int64_t others = nodes - 1;
  std::int64_t sent = 0;
  for (const RelayedRange& relayed_range : plan.of(node))
    sent += relayed_range.range.length() * (relayed_range.relay == RelayedRange::direct ? others : 1);
  for (const RelayedRange& relayed_range : plan.through(node)) sent += relayed_range.range.length() * (others - 1);
  return sent;
}

/// The blocks of a gather or a scatter on a rank that is not the root: all sizes, its own block, and no memory for the
/// others.
class OnlyOwn final : public Operands {
 public:
  OnlyOwn(const Operands& blocks, int rank) : blocks_(blocks), rank_(rank) {}
  Operand of(int rank) const noexcept override {
    return rank == rank_ ? blocks_.of(rank) : Operand(nullptr, bytes(rank));
  }
  std::int64_t bytes(int rank) const noexcept override { return blocks_.bytes(rank); }

 private:
  const Operands& blocks_;
  int rank_;
};

}  // namespace bestride::inline collectives
