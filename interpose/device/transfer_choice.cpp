// SPDX-License-Identifier: Apache-2.0
#include "interpose/device/transfer_choice.hpp"

#include <array>
#include <atomic>
#include <optional>

#include "base/message.hpp"
#include "base/variables.hpp"
#include "interpose/mpi/services.hpp"
#include "interpose/objects/runtime.hpp"
#include "kernels/cuda/device/device_layout.hpp"
#include "kernels/cuda/kernels/work.hpp"
#include "kernels/cuda/transfer/transfer.hpp"
#include "perfmodel/profile/gpu_machine.hpp"

namespace bestride::inline interpose {
namespace {

/// True if the profile's GPU measurements are of another GPU or driver than this one; reported once. The driver is
/// queried once per device.
bool is_other_gpu(const cuda::Device& device) noexcept try {
  enum : std::uint8_t { unknown, same, other };
  static std::array<std::atomic<std::uint8_t>, 64> known{};
  std::atomic<std::uint8_t>& here = known[static_cast<std::size_t>(device.ordinal()) % known.size()];
  if (here.load(std::memory_order_relaxed) == unknown) {
    const std::string why = why_other_gpu(runtime().chooser().profile().fingerprint, device.driver(), device.ordinal());
    if (!why.empty()) warn_once("gpu.profile", "%s", why.c_str());
    here.store(why.empty() ? same : other, std::memory_order_relaxed);
  }
  return here.load(std::memory_order_relaxed) == other;
} catch (...) {
  return false;
}

bool ask_gpu_aware() noexcept try {
  const std::string& setting = Settings::get().text("BESTRIDE_GPU_AWARE");
  if (setting != "auto") return setting == "yes";
  if (!preload_services) return false;
  if (const auto ask = reinterpret_cast<int (*)()>(preload_services->library_symbol("MPIX_Query_cuda_support")))
    return ask() == 1;
  constexpr int cuda_kind = 0;  // the value of MPIX_GPU_SUPPORT_CUDA
  int supported = 0;
  const auto ask = reinterpret_cast<int (*)(int, int*)>(preload_services->library_symbol("MPIX_GPU_query_support"));
  return ask && ask(cuda_kind, &supported) == 0 && supported != 0;
} catch (...) {
  return false;
}

}  // namespace

bool gpu_aware() noexcept {
  static const bool aware = ask_gpu_aware();
  return aware;
}

const DeviceCosts& device_costs(const cuda::Device& device) noexcept {
  return is_other_gpu(device) ? DeviceCosts::built_in() : runtime().chooser().profile().device();
}

TransferChoice choose_transfer(const cuda::DeviceLayout& plan, cuda::Device& device, TransferPurpose purpose,
                               bool aware) noexcept try {
  static const std::optional<cuda::TransferMethod> forced = forced_device_method();
  const DeviceAllowed allowed{.aware = aware,
                              .copy_engine = cuda::can_move(plan, cuda::TransferMethod::copy_engine, device),
                              .kernels = static_cast<bool>(device.kernel(cuda::small_kernel)),
                              .other_gpu = is_other_gpu(device),
                              .forced = forced};
  const DeviceChoice choice =
      runtime().chooser().choose_device(Shape::of(*plan.layout()), purpose.kind, purpose.distance, allowed);
  return choice.possible() ? TransferChoice{choice.method, choice.chunk} : TransferChoice{};
} catch (...) {
  return {};
}

}  // namespace bestride::inline interpose
