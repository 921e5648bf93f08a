// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/launch/batch.hpp"

#include <algorithm>
#include <map>

#include "kernels/cuda/launch/encode.hpp"

namespace bestride::cuda {
namespace {

constexpr std::uint64_t max_tiles = std::uint64_t{1} << 31;

}  // namespace

Batch::Batch(Batch&& other) noexcept { *this = std::move(other); }

Batch& Batch::operator=(Batch&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(device_layouts_, other.device_layouts_);
  std::swap(parameters_, other.parameters_);
  std::swap(description_, other.description_);
  std::swap(kernel_, other.kernel_);
  std::swap(grid_, other.grid_);
  std::swap(pieces_, other.pieces_);
  std::swap(bytes_, other.bytes_);
  std::swap(far_, other.far_);
  return *this;
}

Result<Batch> Batch::make(DevicePtr device, std::span<const BatchItem> items, const KernelOptions& options) try {
  Batch batch;
  std::vector<EncodedPiece> pieces;
  for (const BatchItem& item : items) {
    batch.bytes_ += (item.last < 0 ? item.device_layout->size() : item.last) - item.first;
    if (std::find(batch.device_layouts_.begin(), batch.device_layouts_.end(), item.device_layout) ==
        batch.device_layouts_.end())
      batch.device_layouts_.push_back(item.device_layout);
    const Result<Done> encoded = encode(item, options, pieces);
    if (!encoded) return encoded.error();
  }
  batch.device_ = std::move(device);
  batch.pieces_ = static_cast<int>(pieces.size());
  if (pieces.empty()) return batch;
  std::uint64_t tiles = 0;
  batch.parameters_ = assemble(pieces, batch.device_->multiprocessors(), options, &tiles);
  if (tiles >= max_tiles) return Error{"too much for one GPU launch"};
  const Number each = options.blocks_per_multiprocessor > 0 ? static_cast<Number>(options.blocks_per_multiprocessor)
                                                            : blocks_per_multiprocessor;
  batch.grid_ = static_cast<unsigned>(std::min<std::uint64_t>(
      tiles, std::uint64_t{each} * static_cast<std::uint64_t>(batch.device_->multiprocessors())));

  const std::size_t words = batch.parameters_.size();
  const bool small = words <= sizeof(SmallWork) / 8, large = words <= sizeof(LargeWork) / 8;
  const Result<FunctionHandle> kernel = batch.device_->kernel(small ? small_kernel : large ? large_kernel : far_kernel);
  if (!kernel) return kernel.error();
  batch.kernel_ = *kernel;
  if (large) {
    batch.parameters_.resize((small ? sizeof(SmallWork) : sizeof(LargeWork)) / 8);
    return batch;
  }
  const std::int64_t size = static_cast<std::int64_t>(words * 8);
  Result<Buffer> memory = batch.device_->scratch(size);
  if (!memory) return memory.error();
  batch.description_ = std::move(*memory);
  const Result<Done> sent = batch.device_->upload(batch.description_.address(), batch.parameters_.data(), size);
  if (!sent) return sent.error();
  batch.far_ = batch.description_.address();
  return batch;
} catch (...) {
  return Error{"out of memory"};
}

Result<Done> Batch::launch(StreamHandle stream) const noexcept {
  if (grid_ == 0) return Done{};
  const Current current(*device_);
  if (!current) return device_->gone();
  const Driver& driver = device_->driver();
  // The driver copies the parameters before the launch call returns.
  void* parameter =
      far_ != 0 ? const_cast<Address*>(&far_) : static_cast<void*>(const_cast<std::uint64_t*>(parameters_.data()));
  void* parameters[] = {parameter};
  return device_->check("cuLaunchKernel", driver.cuLaunchKernel(kernel_, grid_, 1, 1, threads_per_block, 1, 1, 0,
                                                                stream, parameters, nullptr));
}

std::string Batch::text() const {
  std::map<std::string, int> kinds;
  for (int i = 0; i < pieces_; ++i)
    ++kinds[kernel_text(*reinterpret_cast<const WorkPiece*>(parameters_.data() +
                                                            (parameters_[1 + static_cast<std::size_t>(i)] >> 32)))];
  std::string line = std::to_string(pieces_) + " pieces, " + std::to_string(bytes_) + " B:";
  for (const auto& [kind, count] : kinds) line += " " + kind + (count > 1 ? " x" + std::to_string(count) : "") + ",";
  return line + " grid " + std::to_string(grid_);
}

}  // namespace bestride::cuda
