// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernels on the CPU: the library's, from the source that the device runs, one thread block after the other; and those
// that a program exports for its own modules (control.h).
#include "tests/fake_cuda/control.h"
#include "tests/fake_cuda/state.hpp"

namespace fake {

struct Function {
  const char* name;
  std::size_t parameter_bytes;
  const fake_cuda_kernel* exported = nullptr;  ///< the program's; null: the library's own
};
/// `name` is null if there is none of that name.
Function function_named(const char* name);

/// `parameters`: parameter_bytes bytes. An error is what the hardware would report for the fault.
Code run_kernel(const Function& function, const void* parameters, unsigned grid, unsigned block, Context* context);

}  // namespace fake
