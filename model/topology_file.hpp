// SPDX-License-Identifier: Apache-2.0
#pragma once
// TopologyFile: a file in which the user states which ranks share a node and which nodes are close to each other
// (docs/topology.md has the format).
//
// The file may divide what the MPI library treats as one node, and may put nodes into groups. It may not join ranks
// that share no memory. Parsing and applying depend only on their arguments, so ranks with the same text and the same
// table get the same result or error.
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/topology.hpp"

namespace bestride::inline model {

class TopologyFile {
 public:
  static constexpr std::size_t max_bytes = 64 << 10;
  /// The text of the file at `path`: at most max_bytes. May throw std::bad_alloc.
  static Result<std::string> read(const std::string& path);
  /// `name`: the name of the file in error messages. An error states the line, its cause and the remedy. May throw
  /// std::bad_alloc.
  static Result<TopologyFile> parse(std::string_view text, std::string_view name);

  /// True if a line names hosts; apply() then needs them.
  bool names_hosts() const noexcept;

  /// Applies the file to the places `found`, one for each rank. `hosts[rank]` is the rank's host name; may be empty if
  /// !names_hosts(). Error: the file contradicts `found` or itself. May throw std::bad_alloc.
  Result<std::vector<RankLocation>> apply(std::span<const RankLocation> found,
                                          std::span<const std::string> hosts) const;

 private:
  struct Ranks {
    int first, last, step;
  };
  struct Line {
    int number = 0;
    bool group = false;  ///< else a node
    std::vector<Ranks> ranks;
    std::vector<std::string> hosts;  ///< patterns
  };

  Error error(const Line& line, const std::string& text) const;
  static bool parse_ranks(std::string_view word, std::vector<Ranks>& ranks);
  /// The ranks that the line names, ascending, each once.
  Result<std::vector<int>> members(const Line& line, int ranks, std::span<const std::string> hosts) const;
  Result<bool> apply_nodes(std::span<const std::string> hosts, std::vector<RankLocation>& places) const;
  Result<bool> apply_groups(std::span<const std::string> hosts, std::vector<RankLocation>& places) const;

  std::string name_;
  std::vector<Line> lines_;
};

}  // namespace bestride::inline model
