// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device/device_layout.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/cuda/kernels/index.hpp"

namespace bestride::cuda {
namespace {

/// Tables one after the other, as they are stored in device memory. Addresses are relative until the device address is
/// known.
class Tables {
 public:
  UploadedList add(const BlockList& list, bool mixed, bool with_granules) {
    UploadedList out;
    out.entries = static_cast<std::uint32_t>(list.offsets.size());
    out.wide = std::any_of(list.offsets.begin(), list.offsets.end(), [](std::int64_t o) {
      return o < std::numeric_limits<std::int32_t>::min() || o > std::numeric_limits<std::int32_t>::max();
    });
    out.offsets = bytes_.size();
    for (const std::int64_t offset : list.offsets) out.wide ? put(offset) : put(static_cast<std::int32_t>(offset));
    align();
    if (mixed) {
      out.starts = bytes_.size();
      for (const std::int64_t start : list.starts) put(static_cast<std::uint32_t>(start));
      align();
    }
    if (with_granules) {
      out.granules = bytes_.size();
      std::uint32_t entry = 0;
      const std::int64_t end = list.starts.back();
      for (std::int64_t position = 0; position < end; position += std::int64_t{1} << granule_shift) {
        while (list.starts[entry + 1] <= position) ++entry;
        put(entry);
      }
      put(out.entries - 1);
      align();
    }
    return out;
  }

  const std::vector<unsigned char>& bytes() const { return bytes_; }

 private:
  template <class T>
  void put(T value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  void align() { bytes_.resize((bytes_.size() + 255) / 256 * 256); }

  std::vector<unsigned char> bytes_;
};

std::uint64_t bits_of(const BlockList& list) {
  std::uint64_t bits = 0;
  for (const std::int64_t offset : list.offsets) bits |= static_cast<std::uint64_t>(offset);
  for (const std::int64_t start : list.starts) bits |= static_cast<std::uint64_t>(start);
  return bits;
}

void place(UploadedList& list, Address base) {
  list.offsets += base;
  list.starts += base;
  list.granules += base;
}

}  // namespace

Result<DeviceLayoutPtr> DeviceLayout::build(Device* device, LayoutPtr layout) noexcept try {
  std::shared_ptr<DeviceLayout> device_layout(new DeviceLayout);
  Result<Pieces> pieces = pieces_of(*layout);
  if (!pieces) return pieces.error();
  device_layout->layout_ = std::move(layout);
  device_layout->pieces_ = std::move(*pieces);
  Tables tables;
  for (const BlockList& list : device_layout->pieces_.lists) {
    device_layout->lists_.push_back(tables.add(list, list.uniform == 0, list.uniform == 0));
    device_layout->bits_.push_back(bits_of(list));
  }
  if (!device_layout->pieces_.ordered.offsets.empty()) {
    device_layout->ordered_ = tables.add(device_layout->pieces_.ordered, true, false);
    device_layout->ordered_bits_ = bits_of(device_layout->pieces_.ordered);
    device_layout->pieces_.ordered = {};
  }
  if (device && !tables.bytes().empty()) {
    const std::int64_t size = static_cast<std::int64_t>(tables.bytes().size());
    Result<Buffer> memory = device->scratch(size);
    if (!memory) return memory.error();
    device_layout->memory_ = std::move(*memory);
    const Result<Done> sent = device->upload(device_layout->memory_.address(), tables.bytes().data(), size);
    if (!sent) return sent.error();
    for (UploadedList& list : device_layout->lists_) place(list, device_layout->memory_.address());
    place(device_layout->ordered_, device_layout->memory_.address());
  }
  for (BlockList& list : device_layout->pieces_.lists)
    list.offsets = list.starts = {};  // the device has the tables now
  return DeviceLayoutPtr(std::move(device_layout));
} catch (...) {
  return Error{"out of memory"};
}

}  // namespace bestride::cuda
