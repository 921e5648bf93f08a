// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state file of a calibration: the values of each point, appended and flushed after the point, so that an
// interrupted run continues where it stopped. A last line without a newline is ignored.
//
//   bestride-measure 2 <subject>  the part and the configuration that were measured; a file of another one is started
//                                 anew
//   <record>                      values of the next `done`, as messages/state.hpp and collective/state.hpp state
//   done <point id>               the records since the previous `done` or `start` belong to this point; records
//                                 without it are void
//   start                         an interrupted run continues: records since the last `done` are void
#include <cstdio>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace bestride::inline perfmodel {

struct StatePoint {
  std::string id;
  std::vector<std::string> records;
};

struct StateFile {
  std::string subject;             ///< "" if the file is missing or damaged
  std::vector<StatePoint> points;  ///< complete ones, in the order in which they were measured
};

StateFile read_state_file(const std::string& path);

class StateWriter {
 public:
  /// Opens the file for appending. Writes the header if the file is empty or if `anew`. An error states cause and
  /// remedy.
  static Result<StateWriter> open(const std::string& path, const std::string& subject, bool anew);
  StateWriter(StateWriter&& other) noexcept : file_(other.file_) { other.file_ = nullptr; }
  StateWriter& operator=(StateWriter&&) = delete;
  ~StateWriter() {
    if (file_) std::fclose(file_);
  }
  /// One line.
  [[gnu::format(printf, 2, 3)]] void record(const char* format, ...);
  /// Ends a point and flushes the file.
  void done(const std::string& id);

 private:
  explicit StateWriter(std::FILE* file) : file_(file) {}
  std::FILE* file_;
};

}  // namespace bestride::inline perfmodel
