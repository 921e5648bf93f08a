// SPDX-License-Identifier: Apache-2.0
#pragma once
// The library's kernels, run on the CPU: the same source the device runs, one thread block after the other.
#include "tests/fake_cuda/state.hpp"

namespace fake {

struct Function {
  const char* name;
  std::size_t parameter_bytes;
};
/// Null if there is none of that name.
const Function* function_named(const char* name);

/// `parameters`: parameter_bytes bytes. An error is what the hardware would report for the fault.
Code run_kernel(const Function& function, const void* parameters, unsigned grid, Context* context);

}  // namespace fake
