// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <vector>

#include "datatype/build.hpp"
#include "interpose/device/staging.hpp"

namespace bestride::inline interpose {
namespace {

using cuda::Address;
using cuda::DevicePtr;

/// The copies of one message, on the devices that can access its blocks.
class BlockCopies {
 public:
  BlockCopies(const Staging& staging, Direction direction)
      : staging_(staging), packing_(direction == Direction::pack) {}
  ~BlockCopies() { (void)wait(); }

  /// Copies `bytes` at `user` to or from the packed bytes at `position`.
  Result<cuda::Done> copy(std::byte* user, std::int64_t position, std::int64_t bytes) {
    std::byte* packed = staging_.packed() + position;
    cuda::DevicePtr device = staging_.device();
    if (!device) {
      const cuda::Memory memory = cuda::where(user);
      if (memory.kind != cuda::MemoryKind::device) {
        // The packed bytes are host memory: a GPU-aware MPI gets device memory only if one device can access all
        // blocks.
        packing_ ? std::memcpy(packed, user, static_cast<std::size_t>(bytes))
                 : std::memcpy(user, packed, static_cast<std::size_t>(bytes));
        return cuda::Done{};
      }
      Result<cuda::DevicePtr> found = cuda::Device::of(memory);
      if (!found) return found.error();
      device = std::move(*found);
    }
    if (std::find(devices_.begin(), devices_.end(), device) == devices_.end()) {
      devices_.push_back(device);
      if (Result<cuda::Done> ordered = device->order(stream_of(*device)); !ordered) return ordered;
    }
    const cuda::Current current(*device);
    if (!current) return device->gone();
    const auto& driver = device->driver();
    const Address there = reinterpret_cast<Address>(user);
    const auto size = static_cast<std::size_t>(bytes);
    const cuda::StreamHandle stream = stream_of(*device);
    if (staging_.staging_buffer().on_device()) {
      const Address here = reinterpret_cast<Address>(packed);
      return device->check("cuMemcpyDtoDAsync", packing_ ? driver.cuMemcpyDtoDAsync(here, there, size, stream)
                                                         : driver.cuMemcpyDtoDAsync(there, here, size, stream));
    }
    return packing_ ? device->check("cuMemcpyDtoHAsync", driver.cuMemcpyDtoHAsync(packed, there, size, stream))
                    : device->check("cuMemcpyHtoDAsync", driver.cuMemcpyHtoDAsync(there, packed, size, stream));
  }

  Result<cuda::Done> wait() noexcept {
    Result<cuda::Done> all = cuda::Done{};
    for (const DevicePtr& device : devices_) {
      const cuda::Current current(*device);
      const Result<cuda::Done> one =
          current ? device->check("cuStreamSynchronize", device->driver().cuStreamSynchronize(stream_of(*device)))
                  : Result<cuda::Done>(device->gone());
      if (!one) all = one;
    }
    devices_.clear();
    return all;
  }

 private:
  /// One stream for all blocks, so that overlapping blocks are copied in order.
  static cuda::StreamHandle stream_of(const cuda::Device& device) noexcept { return device.stream(0); }

  const Staging& staging_;
  const bool packing_;
  std::vector<DevicePtr> devices_;
};

}  // namespace

Result<cuda::Done> move_blockwise(const Staging& staging, Direction direction, std::int64_t first,
                                  std::int64_t last) noexcept try {
  BlockCopies copies(staging, direction);
  auto* user = static_cast<std::byte*>(staging.user());
  std::int64_t position = 0;
  Result<cuda::Done> ok = cuda::Done{};
  for_each_block(*staging.layout().root(), staging.layout().offset(), [&](std::int64_t offset, std::int64_t length) {
    const std::int64_t from = std::max(first, position), to = std::min(last, position + length);
    if (from < to) ok = copies.copy(user + offset + (from - position), from, to - from);
    position += length;
    return ok && position < last;
  });
  const Result<cuda::Done> waited = copies.wait();
  return ok ? waited : ok;
} catch (...) {
  return Error{"out of memory"};
}

}  // namespace bestride::inline interpose
