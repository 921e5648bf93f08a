// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/gpu/way.hpp"

#include "base/variables.hpp"
#include "interpose/back/services.hpp"
#include "kernels/cuda/plan.hpp"

namespace bestride {
namespace {

/// Up to here one launch that writes host memory is all; from there the bus is used better by a copy engine.
constexpr std::int64_t oneshot_up_to = std::int64_t{64} << 10;
/// From here on packing and copying overlap by more than the further launches cost.
constexpr std::int64_t pipelined_from = std::int64_t{4} << 20;

bool ask_gpu_aware() noexcept try {
  const std::string& said = Settings::get().text("BESTRIDE_GPU_AWARE");
  if (said != "auto") return said == "yes";
  if (!front_services) return false;
  if (const auto ask = reinterpret_cast<int (*)()>(front_services->library_symbol("MPIX_Query_cuda_support"))) return ask() == 1;
  constexpr int cuda_kind = 0;  // MPIX_GPU_SUPPORT_CUDA
  int supported = 0;
  const auto ask = reinterpret_cast<int (*)(int, int*)>(front_services->library_symbol("MPIX_GPU_query_support"));
  return ask && ask(cuda_kind, &supported) == 0 && supported != 0;
} catch (...) {
  return false;
}

}  // namespace

bool gpu_aware() noexcept {
  static const bool aware = ask_gpu_aware();
  return aware;
}

Way transfer_way(const cuda::Plan& plan, cuda::Direction, const cuda::Memory&) noexcept {
  if (gpu_aware()) return {cuda::TransferWay::device};
  if (plan.size() <= oneshot_up_to) return {cuda::TransferWay::oneshot};
  return {plan.size() < pipelined_from ? cuda::TransferWay::staged : cuda::TransferWay::pipelined};
}

}  // namespace bestride
