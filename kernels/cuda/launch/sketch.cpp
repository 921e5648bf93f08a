// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/launch/sketch.hpp"

#include <limits>
#include <map>

#include "kernels/cuda/device/geometry.hpp"
#include "kernels/cuda/launch/encode.hpp"

namespace bestride::cuda {

Result<Sketch> sketch(const LayoutPtr& layout, Direction direction, const KernelOptions& options) {
  const Result<DeviceLayoutPtr> device_layout = DeviceLayout::sketch(layout);
  if (!device_layout) return device_layout.error();
  std::vector<EncodedPiece> pieces;
  const Result<Done> encoded = encode({*device_layout, 0, 0, direction, 0, -1}, options, pieces);
  if (!encoded) return encoded.error();
  std::map<std::string, int> kinds;
  for (const EncodedPiece& one : pieces) ++kinds[kernel_text(one.piece)];
  Sketch result;
  for (const auto& [kind, count] : kinds)
    result.kernels += (result.kernels.empty() ? "" : ", ") + kind + (count > 1 ? " x" + std::to_string(count) : "");
  result.box = box_of(**device_layout, std::numeric_limits<std::int32_t>::max()).has_value();
  return result;
}

}  // namespace bestride::cuda
