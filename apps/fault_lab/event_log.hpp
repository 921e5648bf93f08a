// SPDX-License-Identifier: Apache-2.0
#pragma once
// The line that says when and where the fault happens. It is written with one write(2) before the fault, so it is there
// whatever the fault does to the process.
#include <string>

#include "plan.hpp"

namespace fault_lab {

class EventLog {
 public:
  /// Appends to `path`, or writes to standard error if `path` is empty. Throws std::runtime_error if it can't be
  /// opened.
  explicit EventLog(const std::string& path);

  /// "fault: KIND rank R step S phase P time T"; a clean kind writes "clean:". T: seconds of CLOCK_REALTIME.
  void write(const Plan& plan, int rank, int step, Phase phase) const;

 private:
  int file_ = 2;
};

}  // namespace fault_lab
