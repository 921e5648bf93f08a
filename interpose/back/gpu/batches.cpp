// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/gpu/batches.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

#include "interpose/back/gpu/launch.hpp"

namespace bestride {
namespace {

/// Sets of messages that a program repeats: packs and unpacks of a few exchanges.
constexpr std::size_t most_kept = 16;

struct Kept {
  cuda::DevicePtr device;
  std::vector<cuda::BatchItem> items;  ///< their plans are held, so an address of one can't be another's
  std::shared_ptr<const cuda::Batch> batch;
};
struct Batches {
  std::mutex mutex;
  std::array<Kept, most_kept> kept;
  std::size_t next = 0;
};
Batches& batches() {
  static Batches* const all = new Batches;  // never destroyed: requests may be completed during exit
  return *all;
}

bool equal(const cuda::BatchItem& a, const cuda::BatchItem& b) {
  return a.plan == b.plan && a.user == b.user && a.packed == b.packed && a.direction == b.direction && a.first == b.first && a.last == b.last;
}

}  // namespace

Result<std::shared_ptr<const cuda::Batch>> find_batch(const cuda::DevicePtr& device, std::span<const cuda::BatchItem> items) noexcept try {
  static const cuda::KernelOptions options = cuda::KernelOptions::from_settings();
  Batches& all = batches();
  {
    const std::lock_guard lock(all.mutex);
    for (const Kept& each : all.kept)
      if (each.device == device && each.items.size() == items.size() && std::equal(items.begin(), items.end(), each.items.begin(), equal)) return each.batch;
  }
  Result<cuda::Batch> made = cuda::Batch::make(device, items, options);
  if (!made) return made.error();
  Kept kept{device, {items.begin(), items.end()}, std::make_shared<const cuda::Batch>(std::move(*made))};
  const std::shared_ptr<const cuda::Batch> batch = kept.batch;
  {
    const std::lock_guard lock(all.mutex);
    std::swap(all.kept[all.next++ % most_kept], kept);
  }
  return batch;
} catch (...) {
  return Error{"out of memory"};
}

void forget_batches() noexcept {
  std::array<Kept, most_kept> gone;
  const std::lock_guard lock(batches().mutex);
  gone.swap(batches().kept);
}

}  // namespace bestride
