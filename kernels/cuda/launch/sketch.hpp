// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sketch: describes what the GPU would do with a layout, without a GPU.
#include <string>

#include "base/result.hpp"
#include "datatype/layout.hpp"
#include "kernels/cuda/launch/batch.hpp"

namespace bestride::cuda {

struct Sketch {
  std::string kernels;  ///< "words 8", "words 16 x2, list 4": kernel, word size in bytes, number of pieces; "" for a
                        ///< layout without bytes
  bool box = false;     ///< a copy engine can move it, if the device supports its pitch
};

/// Assumes a buffer whose alignment does not limit the word size. Error: too irregular for the GPU.
Result<Sketch> sketch(const LayoutPtr& layout, Direction direction,
                      const KernelOptions& options = KernelOptions::from_settings());

}  // namespace bestride::cuda
