// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/device_coding.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/message.hpp"
#include "kernels/quantise/quantise.hpp"

namespace bestride {
namespace {

/// Codes of a run begin at multiples of this, as the kernel requires.
constexpr std::int64_t alignment = 8;
/// What a part can need beyond its size among other numbers: a scale, half a byte, and the alignment of its beginning.
constexpr std::int64_t part_extra = 8 + 1 + alignment;

}  // namespace

std::int64_t DeviceCodes::coded(std::int64_t numbers) const noexcept {
  return quantised_bytes(numbers, coding_.format, coding_.bits);
}

const std::byte* DeviceCodes::plain_at(std::int64_t number) const noexcept {
  return plain_->packed() + number * number_bytes(coding_.format);
}

std::unique_ptr<DeviceCodes> DeviceCodes::make(const BufferLocation& place, void* user, MPI_Comm comm,
                                               std::span<const std::int64_t> blocks, Access access, int own,
                                               Coding coding) noexcept try {
  const bool plain_is_read = coding.parts > 0 && access == Access::both;
  const Result<cuda::DevicePtr> device = cuda::Device::of(place.memory);
  if (!device) return nullptr;
  std::shared_ptr<StagingBuffer> staging_buffer =
      StagingBuffer::make(plain_is_read ? *device : nullptr, place.layout->size(), false);
  if (!staging_buffer) return nullptr;
  Result<StagingPtr> plain =
      Staging::make(place, user, comm, {access == Access::read ? CallKind::isend : CallKind::irecv, Distance::node},
                    std::move(staging_buffer));
  if (!plain) return nullptr;
  auto made =
      std::make_unique<DeviceCodes>(std::move(*plain), coding, access == Access::both && coding.parts == 0 ? own : 0);
  std::vector<Range> ranges;
  for (const std::int64_t bytes : blocks)
    ranges.push_back({ranges.empty() ? 0 : ranges.back().last, (ranges.empty() ? 0 : ranges.back().last) + bytes});
  made->arrange(ranges);
  const Direction direction = access == Access::read ? Direction::pack : Direction::unpack;
  if (!codes_pay(*made->plain_, direction, made->used_, std::max(coding.parts, static_cast<int>(made->runs_.size()))))
    return nullptr;
  made->codes_ = StagingBuffer::make(*device, made->used_ + coding.parts * part_extra, false);
  return made->codes_ ? std::move(made) : nullptr;
} catch (...) {
  return nullptr;
}

void DeviceCodes::arrange(std::span<const Range> blocks) {
  const std::int64_t number = number_bytes(coding_.format), together = quantised_block_size(coding_.bits);
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return blocks[a].first < blocks[b].first; });
  blocks_.resize(blocks.size());
  runs_.clear();
  used_ = 0;
  for (const std::size_t i : order) {
    const Range numbers{blocks[i].first / number, blocks[i].last / number};
    // After whole code blocks, the codes of the next block continue the run.
    const bool goes_on = !runs_.empty() && runs_.back().count % together == 0;
    if (!goes_on) used_ = (used_ + alignment - 1) / alignment * alignment;
    blocks_[i] = {numbers, used_};
    if (numbers.length() == 0) continue;
    if (goes_on)
      runs_.back().count += numbers.length();
    else
      runs_.push_back({numbers.first, numbers.length(), used_});
    used_ += coded(numbers.length());
  }
}

void DeviceCodes::say(const Error& why) const noexcept {
  if (plain_->device()->alive())
    say_once("gpu.codes", "%s: numbers in device memory are copied and coded by the CPU", why.text.c_str());
}

bool DeviceCodes::copy_in() noexcept {
  made_ = false;
  if (coding_.parts > 0) return false;
  const Block& own = blocks_[own_];
  const NumberRun run{own.numbers.first, own.numbers.length(), 0};
  const auto done =
      move_codes(*plain_, Direction::pack, coding_.format, coding_.bits, {&run, 1}, codes_of(own, 0), coded(run.count));
  if (!done) return say(done.error()), false;
  plain_->set_failed(false);
  return made_ = true;
}

bool DeviceCodes::copy_out() noexcept {
  const auto done = move_codes(*plain_, Direction::unpack, coding_.format, coding_.bits, runs_, codes_->data(), used_);
  if (done) {
    plain_->set_failed(false);
    return true;
  }
  say(done.error());
  for (const NumberRun& run : runs_)
    dequantise(codes_->data() + run.codes, coding_.bits, run.count, coding_.format,
               const_cast<std::byte*>(plain_at(run.first)));
  return false;
}

void DeviceCodes::encode(Range numbers, std::byte* codes) const noexcept {
  const Block& own = blocks_[own_];
  if (made_)
    std::memcpy(codes, codes_of(own, numbers.first), static_cast<std::size_t>(coded(numbers.length())));
  else
    quantise(plain_at(own.numbers.first + numbers.first), coding_.format, numbers.length(), coding_.bits, codes);
}

void DeviceCodes::decode(int rank, Range numbers, const std::byte* codes) const noexcept {
  std::memcpy(codes_of(blocks_[static_cast<std::size_t>(rank)], numbers.first), codes,
              static_cast<std::size_t>(coded(numbers.length())));
}

}  // namespace bestride
