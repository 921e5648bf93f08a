// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/bench.hpp"

#include <algorithm>

#include "base/median.hpp"
#include "datatype/build.hpp"
#include "kernels/cuda/testing/test_bytes.hpp"

namespace gpu {
namespace {

constexpr std::int64_t page = 4096;
/// Several times the size of any device's second-level cache.
constexpr std::int64_t beyond_caches = std::int64_t{512} << 20;
constexpr int max_places = 16;

std::int64_t in_pages(std::int64_t bytes) { return (bytes + page - 1) / page * page; }

/// Median seconds of one call of each variant. `sample(i, n)`: seconds of n calls of variant i.
template <class Sample>
std::vector<double> take_turns(std::size_t variants, double seconds, const Sample& sample) {
  constexpr double wanted_s = 1e-3;
  constexpr int max_calls = 64, min_rounds = 5, max_rounds = 51;
  std::vector<int> calls(variants);
  double round_s = 0;
  for (std::size_t i = 0; i < variants; ++i) {
    sample(i, 1);
    const double once = std::max(sample(i, 2) / 2, 1e-7);
    calls[i] = static_cast<int>(std::clamp(wanted_s / once, 1.0, double{max_calls}));
    round_s += once * calls[i];
  }
  const int rounds = static_cast<int>(std::clamp(seconds / round_s, double{min_rounds}, double{max_rounds}));
  std::vector<std::vector<double>> times(variants);
  for (int round = 0; round < rounds; ++round)
    for (std::size_t turn = 0; turn < variants; ++turn) {
      const std::size_t i = (turn + static_cast<std::size_t>(round)) % variants;
      times[i].push_back(sample(i, calls[i]) / calls[i]);
    }
  std::vector<double> medians;
  for (std::vector<double>& of_one : times) medians.push_back(bestride::median_of(of_one));
  return medians;
}

}  // namespace

Bench::Bench(Gpu& gpu, Results& results, const Scale& scale) : gpu_(gpu), results_(results), scale_(scale) {
  const std::int64_t available = static_cast<std::int64_t>(gpu.available());
  constexpr std::int64_t gib = std::int64_t{1} << 30;
  // 256 MiB in blocks of one byte every 64 bytes take 16 GiB.
  user_bytes_ = gpu.stand_in() ? 16 << 20 : std::min(available * 6 / 10, 17 * gib) / page * page;
  packed_bytes_ = gpu.stand_in() ? 4 << 20 : std::min(available * 2 / 10, 2 * gib) / page * page;
  user_ = gpu.allocate(static_cast<std::size_t>(user_bytes_));
  packed_ = gpu.allocate(static_cast<std::size_t>(packed_bytes_));
  gpu.fill(user_, 0x5A, static_cast<std::size_t>(user_bytes_));
  gpu.fill(packed_, 0xA5, static_cast<std::size_t>(packed_bytes_));
  auto device = bestride::cuda::Device::of(bestride::cuda::where(reinterpret_cast<void*>(user_)));
  if (!device) throw Failed(device.error().text);
  device_ = *device;
}

DeviceLayoutPtr Bench::device_layout(const LayoutPtr& layout) const {
  auto device_layout = device_->device_layout(layout);
  if (!device_layout) throw Failed(device_layout.error().text);
  return *device_layout;
}

int Bench::places(std::int64_t span, std::int64_t size) const {
  const std::int64_t have = std::min(user_bytes_ / in_pages(span), packed_bytes_ / in_pages(size));
  return static_cast<int>(
      std::clamp(beyond_caches / (span + size) + 1, std::int64_t{1}, std::min<std::int64_t>(max_places, have)));
}

Batch Bench::batch(std::span<const BatchItem> items, const KernelOptions& options) const {
  auto made = Batch::make(device_, items, options);
  if (!made) throw Failed(made.error().text);
  return std::move(*made);
}

void Bench::launch(const Batch& batch) const {
  const auto launched = batch.launch(gpu_.stream());
  if (!launched) throw Failed(launched.error().text);
}

std::vector<Batch> Bench::batches(const LayoutPtr& layout, Direction direction, const KernelOptions& options) const {
  const std::int64_t span = layout->high(), size = layout->size();
  const DeviceLayoutPtr device_layout = this->device_layout(layout);
  std::vector<Batch> all;
  for (int i = 0; i < places(span, size); ++i) {
    const BatchItem item{device_layout,
                         user_ + static_cast<Address>(i * in_pages(span)),
                         packed_ + static_cast<Address>(i * in_pages(size)),
                         direction,
                         0,
                         -1};
    all.push_back(batch({&item, 1}, options));
  }
  return all;
}

std::function<void()> Bench::in_turn(std::vector<Batch> batches) const {
  auto all = std::make_shared<std::vector<Batch>>(std::move(batches));
  return [this, all, next = std::size_t{0}]() mutable { launch((*all)[next++ % all->size()]); };
}

std::function<void()> Bench::copy_in_turn(std::int64_t bytes) const {
  const int all = places(bytes, bytes);
  return [this, bytes, all, next = 0]() mutable {
    const Address at = static_cast<Address>(next++ % all * in_pages(bytes));
    gpu_.copy(packed_ + at, user_ + at, static_cast<std::size_t>(bytes));
  };
}

std::vector<double> Bench::medians(const std::vector<std::function<void()>>& variants) const {
  return take_turns(variants.size(), scale_.seconds, [&](std::size_t i, int calls) {
    return gpu_.device_seconds([&] {
      for (int call = 0; call < calls; ++call) variants[i]();
    });
  });
}

std::vector<double> Bench::host_medians(const std::vector<std::function<void()>>& variants) const {
  return take_turns(variants.size(), scale_.seconds, [&](std::size_t i, int calls) {
    return Gpu::host_seconds([&] {
      for (int call = 0; call < calls; ++call) variants[i]();
    });
  });
}

bool Bench::right(const LayoutPtr& layout, const KernelOptions& options) const {
  namespace test = bestride::cuda::test;
  const std::size_t span = static_cast<std::size_t>(layout->high()), size = static_cast<std::size_t>(layout->size());
  const test::Bytes before = test::noise(span, 1), other = test::noise(size, 2);
  test::Bytes packed(size), user(span);
  const DeviceLayoutPtr device_layout = this->device_layout(layout);
  const BatchItem packing{device_layout, user_, packed_, Direction::pack, 0, -1},
      unpacking{device_layout, user_, packed_, Direction::unpack, 0, -1};
  gpu_.write(user_, before.data(), span);
  gpu_.fill(packed_, 0, size);
  const Batch pack = batch({&packing, 1}, options), unpack = batch({&unpacking, 1}, options);
  launch(pack);
  gpu_.synchronize();
  gpu_.read(packed.data(), packed_, size);
  gpu_.write(packed_, other.data(), size);
  launch(unpack);
  gpu_.synchronize();
  gpu_.read(user.data(), user_, span);
  return packed == test::packed_by_reference(layout, before, 0, layout->size()) &&
         user == test::unpacked_by_reference(layout, before, other, 0, layout->size());
}

std::int64_t sector_bytes(const LayoutPtr& layout) {
  constexpr std::int64_t sector = 32;
  std::int64_t last = -1, count = 0;
  bestride::for_each_block(*layout->root(), layout->offset(), [&](std::int64_t offset, std::int64_t length) {
    const std::int64_t first = std::max(offset / sector, last + 1), end = (offset + length - 1) / sector;
    if (end >= first) count += end - first + 1;
    last = std::max(last, end);
    return true;
  });
  return count * sector;
}

LayoutPtr rows(std::int64_t count, std::int64_t block, std::int64_t stride) {
  const auto built = bestride::make_repeat(*bestride::make_block(0, block), count, stride);
  if (!built) throw Failed("no such layout");
  return bestride::intern(*built);
}

std::string bytes_text(std::int64_t bytes) {
  if (bytes >= 1 << 20 && bytes % (1 << 20) == 0) return std::to_string(bytes >> 20) + " MiB";
  if (bytes >= 1 << 10 && bytes % (1 << 10) == 0) return std::to_string(bytes >> 10) + " KiB";
  return std::to_string(bytes) + " B";
}

}  // namespace gpu
