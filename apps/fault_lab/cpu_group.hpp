// SPDX-License-Identifier: Apache-2.0
#pragma once
// A control group that limits the CPU time of one process, version 1 or 2. Making one needs rights that most users do
// not have; then limit() changes nothing and returns false.

namespace fault_lab {

class CpuGroup {
 public:
  /// Moves `process` into a new group that may use `percent` of one CPU, in periods of 100 ms.
  bool limit(int process, int percent);
  /// Moves the process back, if it has not ended, and removes the group. Takes up to a second while the process ends.
  void remove();

 private:
  char parent_[384] = "", folder_[512] = "", process_[16] = "";
};

}  // namespace fault_lab
