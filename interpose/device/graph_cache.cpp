// SPDX-License-Identifier: Apache-2.0
#include "interpose/device/graph_cache.hpp"

#include <algorithm>
#include <array>
#include <mutex>

#include "base/variables.hpp"
#include "interpose/device/batch_launch.hpp"
#include "interpose/device/transfer_choice.hpp"

namespace bestride::inline interpose {
namespace {

using cuda::Sequence;

/// Number of cached message sets: the packs and unpacks of a few exchanges that a program repeats.
constexpr std::size_t max_kept = 16;

struct Sequences {
  std::mutex mutex;
  /// The items keep their device layouts alive, so their addresses are not reused.
  std::array<std::shared_ptr<Sequence>, max_kept> kept;
  std::size_t next = 0;
};
Sequences& sequences() {
  static Sequences* const all = new Sequences;  // never destroyed: requests may be completed during exit
  return *all;
}

bool wanted_as_graph(const Sequence& sequence) noexcept try {
  static const std::string& setting = Settings::get().text("BESTRIDE_FORCE=gpu_graphs");
  if (setting != "auto") return setting == "always";
  return device_costs(*sequence.device()).graph_is_faster(sequence.items().operations());
} catch (...) {
  return false;
}

}  // namespace

Result<std::shared_ptr<Sequence>> find_or_make_graph(const cuda::DevicePtr& device, cuda::SequenceItems items) noexcept
    try {
  static const cuda::KernelOptions options = cuda::KernelOptions::from_settings();
  // A single copy is enqueued as fast as it is found in the cache.
  if (items.kernels.empty() && items.operations() == 1) return Sequence::make(device, std::move(items), options);
  Sequences& all = sequences();
  std::shared_ptr<Sequence> found;
  {
    const std::lock_guard lock(all.mutex);
    for (const auto& each : all.kept)
      if (each && each->device() == device && each->items() == items) found = each;
  }
  if (found) {
    // If it can't become a graph, the sequence stays as it is.
    if (wanted_as_graph(*found)) (void)found->keep_as_graph();
    return found;
  }
  Result<std::shared_ptr<Sequence>> made = Sequence::make(device, std::move(items), options);
  if (!made) return made;
  std::shared_ptr<Sequence> dropped = *made;  // destroyed outside of the lock
  {
    const std::lock_guard lock(all.mutex);
    std::swap(all.kept[all.next++ % max_kept], dropped);
  }
  return made;
} catch (...) {
  return Error{"out of memory"};
}

void clear_graphs() noexcept {
  std::array<std::shared_ptr<Sequence>, max_kept> gone;
  const std::lock_guard lock(sequences().mutex);
  gone.swap(sequences().kept);
}

}  // namespace bestride::inline interpose
