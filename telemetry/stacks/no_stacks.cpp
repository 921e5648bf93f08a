// SPDX-License-Identifier: Apache-2.0
// take_stacks() of a build without libdw.
#include "telemetry/stacks/process_stacks.hpp"

namespace bestride::inline telemetry {

Result<ProcessStacks> take_stacks(int, const StackOptions&) {
  return Error{"this build of bestride can't take stacks (libdw was not found when it was made)"};
}

Result<ProcessStacks> read_crash_stack(const std::string&, int) {
  return Error{"this build of bestride can't unwind stacks (libdw was not found when it was made)"};
}

bool stacks_available() noexcept { return false; }

}  // namespace bestride::inline telemetry
