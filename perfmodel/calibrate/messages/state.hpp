// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state file of a calibration: one line for each value, appended and flushed after each point, so that an
// interrupted run continues where it stopped. A last line without a newline is ignored.
//
//   bestride-measure 1 <configuration>  the configuration measured; a file with another one is started anew
//   curve <lane> <wire> <bytes index> <ns>
//   grid <lane> <class> <engine> <spread> <leaf> <bytes index> <block index> <ns>
//   gpu <0|1: stand-in> <name>          the GPU of the device lines that follow; another GPU makes earlier ones void
//   device <point id> <ns>
//   start                               an interrupted run continues: values since the last `done` are void
//   done <point id>                     the values since the previous `done` or `start` belong to this point; values
//                                       without it are void
#include <cstdio>
#include <set>
#include <string>

#include "base/result.hpp"
#include "perfmodel/calibrate/common/sample_plan.hpp"
#include "perfmodel/calibrate/device/device_plan.hpp"

namespace bestride {

struct MeasuredState {
  Measurements values;
  DeviceMeasurements device;
  std::string gpu;             ///< what `device` was measured on; "" if it was not measured
  std::set<std::string> done;  ///< ids of points
};

/// Reads a state file. Returns an empty state if the file is missing, damaged, or of another configuration.
MeasuredState read_state(const std::string& path, const std::string& configuration);

class StateWriter {
 public:
  /// Opens the file for appending. Writes the header if the file is empty or if `anew`. An error states cause and
  /// remedy.
  static Result<StateWriter> open(const std::string& path, const std::string& configuration, bool anew);
  StateWriter(StateWriter&& other) noexcept : file_(other.file_) { other.file_ = nullptr; }
  StateWriter& operator=(StateWriter&&) = delete;
  ~StateWriter() {
    if (file_) std::fclose(file_);
  }
  void curve(const Point& point, Wire wire, double seconds);
  void value(const Point& point, const Series& series, double seconds);
  /// Ends a point and flushes the file.
  void done(const Point& point);
  /// Names the GPU of the device points that follow. Call it only if it differs from MeasuredState::gpu.
  void gpu(const std::string& name, bool stand_in);
  /// Writes a complete device point and flushes the file.
  void device(const DevicePoint& point, double seconds);

 private:
  explicit StateWriter(std::FILE* file) : file_(file) {}
  std::FILE* file_;
};

}  // namespace bestride
