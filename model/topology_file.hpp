// SPDX-License-Identifier: Apache-2.0
#pragma once
// TopologyFile: the user's word on which ranks share a node and which nodes are near each other (docs/topology.md has the format).
//
// It may divide what the MPI library calls a node, and put nodes into groups. It may not join what shares no memory. Parsing and
// applying depend on their arguments alone, so ranks that hold the same text and the same table come to the same result or error.
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/topology.hpp"

namespace bestride {

class TopologyFile {
 public:
  static constexpr std::size_t most_bytes = 64 << 10;
  /// The text of the file at `path`: at most most_bytes. May throw std::bad_alloc.
  static Result<std::string> read(const std::string& path);
  /// `name` is what errors call the file. An error names the line, its cause and the remedy. May throw std::bad_alloc.
  static Result<TopologyFile> parse(std::string_view text, std::string_view name);

  /// Some line names hosts, so apply() has to be given them.
  bool names_hosts() const noexcept;

  /// The places `found`, one a rank, as the file changes them. `hosts[rank]` is the rank's host name; may be empty if !names_hosts().
  /// An error is a contradiction to `found`, or within the file. May throw std::bad_alloc.
  Result<std::vector<RankPlace>> apply(std::span<const RankPlace> found, std::span<const std::string> hosts) const;

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
  /// The ranks the line names, ascending, each once.
  Result<std::vector<int>> members(const Line& line, int ranks, std::span<const std::string> hosts) const;
  Result<bool> apply_nodes(std::span<const std::string> hosts, std::vector<RankPlace>& places) const;
  Result<bool> apply_groups(std::span<const std::string> hosts, std::vector<RankPlace>& places) const;

  std::string name_;
  std::vector<Line> lines_;
};

}  // namespace bestride
