// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/profile/built_in_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "perfmodel/profile/complete.hpp"

namespace bestride::inline perfmodel {
namespace {

constexpr double ns = 1e-9;
constexpr double KiB = 1024, MiB = 1024 * 1024;  // sizes are computed as doubles

struct Case {
  GridKey key;
  double bytes = 0;
  double block = 0;
  double blocks() const noexcept { return std::max(1.0, bytes / block); }
};

/// Moving the payload within a cache (25 ps per byte) or beyond it (100 ps per byte, above 1 MiB).
double move(double bytes) noexcept {
  return bytes <= MiB ? bytes * 0.025 * ns : (MiB * 0.025 + (bytes - MiB) * 0.1) * ns;
}

/// One cache miss for each block if the blocks are far apart; the same for every engine.
double misses(const Case& of) noexcept { return of.key.spread == Spread::wide ? of.blocks() * 1.5 * ns : 0; }

double kernel_pack(const Case& of) noexcept {
  return 10 * ns + 1.2 * move(of.bytes) + of.blocks() * 0.1 * ns + misses(of);
}

double mpi_pack(const Case& of) noexcept {
  const double elements = of.bytes / (of.key.leaf == Leaf::four ? 4 : 8);
  const double per_element = of.key.leaf == Leaf::four ? 0.6 * ns : 0.25 * ns;
  const bool one_call_a_block = of.key.leaf == Leaf::mixed || of.key.kind == Shape::Class::record;
  return 95 * ns + 1.2 * move(of.bytes) + misses(of) +
         (one_call_a_block ? of.blocks() * 13 * ns : elements * per_element);
}

double contiguous(CallClass call_class, double bytes) noexcept {
  if (!is_message(kind_of(call_class))) return 5 * ns + move(bytes);
  return distance_of(call_class) == Distance::self ? 300 * ns + move(bytes) : 700 * ns + bytes * 0.11 * ns;
}

double seconds(const Case& of) noexcept {
  const bool message = is_message(kind_of(of.key.call_class));
  if (!message) return of.key.engine == Engine::kernel ? kernel_pack(of) : mpi_pack(of);
  const double transfer = contiguous(of.key.call_class, of.bytes);
  switch (of.key.engine) {
    case Engine::kernel: return transfer + 2 * kernel_pack(of) + std::max(0.0, of.bytes - 512 * KiB) * 0.085 * ns;
    case Engine::unsplit:
      return transfer + (of.key.leaf == Leaf::mixed ? of.blocks() * 13 * ns : 100 * ns + move(of.bytes)) + misses(of);
    case Engine::split: return transfer + (of.bytes <= 8 * KiB ? mpi_pack(of) : of.blocks() * 13 * ns + misses(of));
  }
  return transfer;
}

/// The cases in which a strategy other than `forward` gained clearly on all measured machines.
struct Region {
  bool respell = false;
  bool kernel = false;
};

Region gains(const Case& of) noexcept {
  const CallKind call = kind_of(of.key.call_class);
  if (!is_message(call)) return {false, true};  // long blocks are copied by memcpy in both, and ours has less overhead
  if (distance_of(of.key.call_class) != Distance::node || of.block > 64) return {};
  const bool fits = of.bytes <= (of.block < 64 ? 4 * MiB : 256 * KiB);
  switch (of.key.kind) {
    case Shape::Class::vector:
      return {of.bytes >= 8 * KiB && of.key.spread == Spread::dense,
              of.bytes >= 8 * KiB && fits && of.key.spread == Spread::dense};
    case Shape::Class::record: return {false, of.bytes >= 256 && fits};
    case Shape::Class::list: return {false, of.bytes >= (of.key.leaf == Leaf::mixed ? 256 : 8 * KiB) && fits};
    case Shape::Class::nest:
      return {false, is_exchange(of.key.call_class) && of.block <= 32 && of.bytes >= 32 * KiB && fits};
    default: return {};
  }
}

/// The costs of the three engines for one case, such that nothing is faster than `forward` outside the region.
struct Costs {
  double split, unsplit, kernel;
};
Costs costs(Case of) noexcept {
  const auto with = [&](Engine engine) noexcept {
    of.key.engine = engine;
    return seconds(of);
  };
  Costs result{with(Engine::split), with(Engine::unsplit), with(Engine::kernel)};
  const Region region = gains(of);
  if (!region.respell && !region.kernel) result.split = std::min({result.split, result.unsplit, result.kernel});
  if (!region.respell) result.unsplit = result.split;
  if (!region.kernel) result.kernel = std::max({result.kernel, result.split, result.unsplit});
  if (is_message(kind_of(of.key.call_class))) result.kernel -= contiguous(of.key.call_class, of.bytes);
  return result;
}

}  // namespace

void fill_built_in(Measurements* curves) noexcept {
  for (int index = 0; index < grid_count; ++index) {
    const GridKey key = grid_key(index);
    if (key.engine != Engine::split) continue;
    // The three grids of a case are leaf_count apart (grid_index).
    CostGrid* const split = &curves->grids[static_cast<std::size_t>(index)];
    CostGrid *const unsplit = split + leaf_count, *const kernel = unsplit + leaf_count;
    for (int i = 0; i < bytes_points; ++i)
      for (int k = 0; k < block_points; ++k) {
        const Costs all = costs({key, static_cast<double>(bytes_at(i)), static_cast<double>(block_lengths[k])});
        split->set(i, k, all.split);
        unsplit->set(i, k, all.unsplit);
        kernel->set(i, k, all.kernel);
      }
  }
  for (ContiguousForm form :
       {ContiguousForm::plain,
        ContiguousForm::respelled})  // no gain from respelling contiguous bytes, because it depends on the machine
    for (int l = 0; l < call_class_count; ++l)
      for (int i = 0; i < curve_points; ++i) {
        const CallClass call_class = static_cast<CallClass>(l);
        curves->curve(form, call_class).set(i, contiguous(call_class, static_cast<double>(curve_bytes_at(i))));
      }
  for (auto& classes : curves->built_in) classes.fill(true);
  derive_network(curves);
}

}  // namespace bestride::inline perfmodel
