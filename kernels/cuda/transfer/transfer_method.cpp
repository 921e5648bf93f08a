// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/transfer/transfer_method.hpp"

#include <array>

namespace bestride::cuda {
namespace {

constexpr std::array<const char*, transfer_method_count> method_names{"oneshot", "staged", "pipelined", "copy-engine",
                                                                      "device"};

}  // namespace

const char* name(TransferMethod method) noexcept { return method_names[static_cast<std::size_t>(method)]; }

bool parse(std::string_view text, TransferMethod* method) noexcept {
  for (std::size_t i = 0; i < method_names.size(); ++i)
    if (text == method_names[i]) {
      *method = static_cast<TransferMethod>(i);
      return true;
    }
  return false;
}

}  // namespace bestride::cuda
