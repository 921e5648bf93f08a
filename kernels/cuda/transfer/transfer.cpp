// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/transfer/transfer.hpp"

#include "kernels/cuda/transfer/flow.hpp"

namespace bestride::cuda {

struct PackTransfer::State : Flow {
  using Flow::Flow;
};
struct UnpackTransfer::State : Flow {
  using Flow::Flow;
};

bool can_move(const DeviceLayout& device_layout, TransferMethod method, const Device& device) noexcept {
  return method != TransferMethod::copy_engine || box_of(device_layout, device.max_pitch());
}

PackTransfer::PackTransfer() = default;
PackTransfer::~PackTransfer() = default;

Result<std::unique_ptr<PackTransfer>> PackTransfer::start(DevicePtr device, DeviceLayoutPtr device_layout,
                                                          const void* user, const TransferOptions& options) try {
  std::unique_ptr<PackTransfer> transfer(new PackTransfer);
  const std::int64_t size = device_layout->size();
  transfer->state_ = std::make_unique<State>(std::move(device), std::move(device_layout),
                                             reinterpret_cast<std::uintptr_t>(user), Direction::pack, options);
  Result<Done> ok = transfer->state_->prepare();
  if (ok) ok = transfer->state_->allow(size, true);
  if (!ok) return ok.error();
  return transfer;
} catch (...) {
  return Error{"out of memory"};
}

Progress PackTransfer::poll() noexcept { return state_->poll(); }
std::int64_t PackTransfer::ready() const noexcept { return state_->finished(); }
void* PackTransfer::data() const noexcept { return state_->data(); }
std::int64_t PackTransfer::size() const noexcept { return state_->size(); }
const Error& PackTransfer::error() const noexcept { return state_->error(); }

UnpackTransfer::UnpackTransfer() = default;
UnpackTransfer::~UnpackTransfer() = default;

Result<std::unique_ptr<UnpackTransfer>> UnpackTransfer::prepare(DevicePtr device, DeviceLayoutPtr device_layout,
                                                                void* user, const TransferOptions& options) try {
  if (device_layout->overlaps() && !device_layout->ordered())
    return Error{"unpacking a datatype of more than 4194304 blocks that overlap, or may; left to the MPI library"};
  std::unique_ptr<UnpackTransfer> transfer(new UnpackTransfer);
  transfer->state_ = std::make_unique<State>(std::move(device), std::move(device_layout),
                                             reinterpret_cast<std::uintptr_t>(user), Direction::unpack, options);
  const Result<Done> ok = transfer->state_->prepare();
  if (!ok) return ok.error();
  return transfer;
} catch (...) {
  return Error{"out of memory"};
}

Result<Done> UnpackTransfer::deliver(std::int64_t bytes, bool last) noexcept { return state_->allow(bytes, last); }
Progress UnpackTransfer::poll() noexcept { return state_->poll(); }
void* UnpackTransfer::data() const noexcept { return state_->data(); }
std::int64_t UnpackTransfer::size() const noexcept { return state_->size(); }
const Error& UnpackTransfer::error() const noexcept { return state_->error(); }

}  // namespace bestride::cuda
