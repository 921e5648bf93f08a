// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/choose/device_choice.hpp"

#include <limits>

#include "base/variables.hpp"
#include "perfmodel/choose/chooser.hpp"

namespace bestride::inline perfmodel {

std::optional<cuda::TransferMethod> forced_device_method() {
  cuda::TransferMethod method;
  if (cuda::parse(Settings::get().text("BESTRIDE_STRATEGY"), &method)) return method;
  return {};
}

DeviceChoice Chooser::choose_device(const Shape& shape, CallKind kind, Distance distance,
                                    const DeviceAllowed& allowed) const noexcept {
  using enum cuda::TransferMethod;
  constexpr double never = std::numeric_limits<double>::infinity();
  const auto bytes = static_cast<double>(shape.bytes);
  const DeviceCosts& costs = allowed.other_gpu ? DeviceCosts::built_in() : profile_->device();
  const bool message = is_message(kind);
  // For MPI_Pack and MPI_Unpack the message is replaced by the copy between the library's buffer and the caller's;
  // there is no copy if the caller's buffer is device memory.
  const double host_message = profile_->contiguous_seconds(bytes, ContiguousForm::plain, call_class_of(kind, distance));
  const double device_message = !allowed.aware ? never
                                : message      ? costs.message_seconds(bytes, without_processors(distance))
                                               : 0;
  const bool packs = kind == CallKind::pack || is_sending(kind);
  const DevicePrediction predicted =
      costs.predict(shape, packs ? Direction::pack : Direction::unpack, host_message, device_message);

  DeviceChoice choice;
  choice.seconds = predicted.seconds;
  choice.chunk = predicted.chunk;
  const auto seconds = [&](cuda::TransferMethod method) noexcept -> double& {
    return choice.seconds[static_cast<std::size_t>(method)];
  };
  if (!allowed.copy_engine) seconds(copy_engine) = never;
  if (!allowed.kernels && shape.kind != Shape::Class::contiguous)
    seconds(oneshot) = seconds(staged) = seconds(pipelined) = seconds(device) = never;
  if (allowed.forced && std::isfinite(seconds(*allowed.forced))) {
    choice.method = *allowed.forced;
    return choice;
  }
  // If several methods are identical for a layout, the first one in this order, the simplest, is reported.
  for (cuda::TransferMethod method : {oneshot, pipelined, copy_engine, device})
    if (seconds(method) < seconds(choice.method)) choice.method = method;
  return choice;
}

}  // namespace bestride::inline perfmodel
