// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a calibration has measured of collectives so far, on disk: a line a value, flushed, so that a run that was interrupted goes on
// where it ended. A last line without its newline is ignored.
//
//   bestride-collectives 3 <nodes> <ranks> <most on a node> <least on a node> <ring entries> <configuration>
//   link <field> <ns>
//   piece link <bytes>
//   point <point id> <hierarchical ns> <library ns> [<noise> [<library's nonblocking form ns> <noise>]]
// A blocking point without the last two is measured again.
#include <cstdio>
#include <set>
#include <string>

#include "base/result.hpp"
#include "perfmodel/measure/both_ways.hpp"
#include "perfmodel/measure/collective_plan.hpp"

namespace bestride {

/// Of LinkCosts::piece_bytes, among the names of link fields.
inline constexpr const char* piece_id = "piece";

struct CollectiveState {
  CollectiveMeasurements values;  ///< with at most one setting
  std::set<std::string> done;     ///< ids of points, names of link fields, piece_id
};

/// A missing file, one of another configuration or (if `place` is given) of other nodes and ranks, and a damaged one: an empty state.
CollectiveState read_collective_state(const std::string& path, const std::string& configuration, const CollectiveSetting* place = nullptr);

class CollectiveStateWriter {
 public:
  /// Opens for appending; writes the header if the file is empty or `anew`. Errors: cause and remedy.
  static Result<CollectiveStateWriter> open(const std::string& path, const std::string& configuration, const CollectiveSetting& place, bool anew);
  CollectiveStateWriter(CollectiveStateWriter&& other) noexcept : file_(other.file_) { other.file_ = nullptr; }
  CollectiveStateWriter& operator=(CollectiveStateWriter&&) = delete;
  ~CollectiveStateWriter() {
    if (file_) std::fclose(file_);
  }
  void link(const LinkField& field, double seconds);
  void piece(std::int64_t bytes);
  void point(const CollectivePoint& point, const BothWays& both);

 private:
  explicit CollectiveStateWriter(std::FILE* file) : file_(file) {}
  std::FILE* file_;
};

}  // namespace bestride
