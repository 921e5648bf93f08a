// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/transfer/way.hpp"

#include <array>

namespace bestride::cuda {
namespace {

constexpr std::array<const char*, transfer_way_count> method_names{"oneshot", "staged", "pipelined", "copy-engine",
                                                                   "device"};

}  // namespace

const char* name(TransferMethod way) noexcept { return method_names[static_cast<std::size_t>(way)]; }

bool parse(std::string_view text, TransferMethod* way) noexcept {
  for (std::size_t i = 0; i < method_names.size(); ++i)
    if (text == method_names[i]) {
      *way = static_cast<TransferMethod>(i);
      return true;
    }
  return false;
}

}  // namespace bestride::cuda
