// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state file of a calibration of collectives: one line for each value, flushed, so that an interrupted run
// continues where it stopped. A last line without a newline is ignored.
//
//   bestride-collectives 3 <nodes> <ranks> <most on a node> <least on a node> <ring entries> <configuration>
//   link <field> <ns>
//   piece link <bytes>
//   point <point id> <hierarchical ns> <library ns> [<noise> [<library's nonblocking form ns> <noise>]]
//
// A blocking point without the last two values is measured again.
#include <cstdio>
#include <set>
#include <string>

#include "base/result.hpp"
#include "perfmodel/calibrate/collective/plan.hpp"
#include "perfmodel/calibrate/common/paired_samples.hpp"

namespace bestride {

/// The id of LinkCosts::piece_bytes among the names of link fields.
inline constexpr const char* piece_id = "piece";

struct CollectiveState {
  CollectiveMeasurements values;  ///< with at most one setting
  std::set<std::string> done;     ///< ids of points, names of link fields, piece_id
};

/// Returns an empty state if the file is missing or damaged, is of another configuration or, if `place` is given, of
/// another number of nodes or ranks.
CollectiveState read_collective_state(const std::string& path, const std::string& configuration,
                                      const CollectiveSetting* place = nullptr);

class CollectiveStateWriter {
 public:
  /// Opens the file for appending. Writes the header if the file is empty or if `anew`. An error states cause and
  /// remedy.
  static Result<CollectiveStateWriter> open(const std::string& path, const std::string& configuration,
                                            const CollectiveSetting& place, bool anew);
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
