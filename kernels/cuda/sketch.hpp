// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sketch: what the GPU would do with a layout, said without a GPU.
#include <string>

#include "base/result.hpp"
#include "datatype/layout.hpp"
#include "kernels/cuda/batch.hpp"

namespace bestride::cuda {

struct Sketch {
  std::string kernels;  ///< "words 8", "words 16 x2, list 4": kernel, bytes of its word, pieces; "" for a layout without bytes
  bool box = false;     ///< a copy engine can move it, if its pitch is one the device takes
};

/// Of a buffer whose alignment does not narrow the words. Error: too irregular for the GPU.
Result<Sketch> sketch(const LayoutPtr& layout, Direction direction, const KernelOptions& options = KernelOptions::from_settings());

}  // namespace bestride::cuda
