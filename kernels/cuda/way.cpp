// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/way.hpp"

#include <array>

namespace bestride::cuda {
namespace {

constexpr std::array<const char*, transfer_way_count> names{"oneshot", "staged", "pipelined", "copy-engine", "device"};

}  // namespace

const char* name(TransferWay way) noexcept { return names[static_cast<std::size_t>(way)]; }

bool parse(std::string_view text, TransferWay* way) noexcept {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (text == names[i]) {
      *way = static_cast<TransferWay>(i);
      return true;
    }
  return false;
}

}  // namespace bestride::cuda
