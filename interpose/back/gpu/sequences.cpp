// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/gpu/sequences.hpp"

#include <algorithm>
#include <array>
#include <mutex>

#include "base/variables.hpp"
#include "interpose/back/gpu/launch.hpp"
#include "interpose/back/gpu/way.hpp"

namespace bestride {
namespace {

using cuda::Sequence;

/// Sets of messages that a program repeats: packs and unpacks of a few exchanges.
constexpr std::size_t most_kept = 16;

struct Sequences {
  std::mutex mutex;
  /// Their items hold their plans, so an address of one can't be another's.
  std::array<std::shared_ptr<Sequence>, most_kept> kept;
  std::size_t next = 0;
};
Sequences& sequences() {
  static Sequences* const all = new Sequences;  // never destroyed: requests may be completed during exit
  return *all;
}

bool wanted_as_graph(const Sequence& sequence) noexcept try {
  static const std::string& said = Settings::get().text("BESTRIDE_GPU_GRAPHS");
  if (said != "auto") return said == "always";
  return device_costs(*sequence.device()).graph_is_faster(sequence.items().operations());
} catch (...) {
  return false;
}

}  // namespace

Result<std::shared_ptr<Sequence>> find_sequence(const cuda::DevicePtr& device, cuda::SequenceItems items) noexcept try {
  static const cuda::KernelOptions options = cuda::KernelOptions::from_settings();
  // One copy is as soon enqueued as found.
  if (items.kernels.empty() && items.operations() == 1) return Sequence::make(device, std::move(items), options);
  Sequences& all = sequences();
  std::shared_ptr<Sequence> found;
  {
    const std::lock_guard lock(all.mutex);
    for (const auto& each : all.kept)
      if (each && each->device() == device && each->items() == items) found = each;
  }
  if (found) {
    // Where it can't be one, what is enqueued stays the same.
    if (wanted_as_graph(*found)) (void)found->keep_as_graph();
    return found;
  }
  Result<std::shared_ptr<Sequence>> made = Sequence::make(device, std::move(items), options);
  if (!made) return made;
  std::shared_ptr<Sequence> dropped = *made;  // frees what it holds outside the lock
  {
    const std::lock_guard lock(all.mutex);
    std::swap(all.kept[all.next++ % most_kept], dropped);
  }
  return made;
} catch (...) {
  return Error{"out of memory"};
}

void forget_sequences() noexcept {
  std::array<std::shared_ptr<Sequence>, most_kept> gone;
  const std::lock_guard lock(sequences().mutex);
  gone.swap(sequences().kept);
}

}  // namespace bestride
