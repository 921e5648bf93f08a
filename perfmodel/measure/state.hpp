// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a calibration has measured so far, on disk: one line a value, appended and flushed after each point, so that a run that
// was interrupted goes on where it ended. A last line without its newline is ignored.
//
//   bestride-measure 1 <configuration>            what was measured under; a file with another one is started anew
//   curve <lane> <wire> <bytes index> <ns>
//   grid <lane> <class> <engine> <spread> <leaf> <bytes index> <block index> <ns>
//   gpu <0|1: stand-in> <name>                    the GPU the device lines after it are about; another one makes those before void
//   device <point id> <ns>
//   start                                         a run that goes on: the values since the last `done` are void
//   done <point id>                               the values since the line before belong to this point; without it they are void
#include <cstdio>
#include <set>
#include <string>

#include "base/result.hpp"
#include "perfmodel/measure/device_plan.hpp"
#include "perfmodel/measure/plan.hpp"

namespace bestride {

struct MeasuredState {
  Measurements values;
  DeviceMeasurements device;
  std::string gpu;             ///< what `device` was measured on; "": nothing was
  std::set<std::string> done;  ///< ids of points
};

/// Reads a state file. A missing one, one of another configuration and a damaged one are all an empty state.
MeasuredState read_state(const std::string& path, const std::string& configuration);

class StateWriter {
 public:
  /// Opens for appending; writes the header if the file is empty or `anew`. Errors: cause and remedy.
  static Result<StateWriter> open(const std::string& path, const std::string& configuration, bool anew);
  StateWriter(StateWriter&& other) noexcept : file_(other.file_) { other.file_ = nullptr; }
  StateWriter& operator=(StateWriter&&) = delete;
  ~StateWriter() {
    if (file_) std::fclose(file_);
  }
  void curve(const Point& point, Wire wire, double seconds);
  void value(const Point& point, const Series& series, double seconds);
  /// Ends a point and flushes.
  void done(const Point& point);
  /// The GPU the device points that follow are about. Only where it differs from MeasuredState::gpu.
  void gpu(const std::string& name, bool stand_in);
  /// A whole device point; flushes.
  void device(const DevicePoint& point, double seconds);

 private:
  explicit StateWriter(std::FILE* file) : file_(file) {}
  std::FILE* file_;
};

}  // namespace bestride
