// SPDX-License-Identifier: Apache-2.0
// The workload of figure 12 of the TEMPI paper (Pearson et al., HPDC'21): a cube of 256^3 points with 8 quantities of 8
// bytes, one array each, radius 3. The boxes for 26 neighbors, 208 in total, are packed in one launch. The paper's
// code launches and waits 208 times.
#include <algorithm>

#include "bench/gpu/bench.hpp"
#include "datatype/build.hpp"
#include "kernels/cuda/device/device_layout.hpp"
#include "kernels/cuda/testing/test_bytes.hpp"

namespace gpu {
namespace {

constexpr std::int64_t radius = 3, quantities = 8, element = 8;

/// The box of cells that is sent to a neighbor or received from it, in one array that includes the halo.
LayoutPtr box(std::int64_t edge, const int (&step)[3], bool outgoing) {
  std::int64_t start[3], size[3];
  for (int d = 0; d < 3; ++d) {
    size[d] = step[d] == 0 ? edge : radius;
    const std::int64_t high = outgoing ? edge : edge + radius, low = outgoing ? radius : 0;
    start[d] = step[d] > 0 ? high : step[d] < 0 ? low : radius;
  }
  const std::int64_t row = (edge + 2 * radius) * element, plane = row * (edge + 2 * radius);
  const auto rows = bestride::make_repeat(
      *bestride::make_block(start[0] * plane + start[1] * row + start[2] * element, size[2] * element), size[1], row);
  return bestride::intern(*bestride::make_repeat(*rows, size[0], plane));
}

struct Halo {
  std::vector<BatchItem> items;
  std::int64_t packed = 0;
  std::int64_t traffic = 0;
};

Halo halo(const Bench& bench, std::int64_t edge, Direction direction) {
  const std::int64_t array = (edge + 2 * radius) * (edge + 2 * radius) * (edge + 2 * radius) * element;
  const std::int64_t array_step = (array + 255) / 256 * 256;
  if (!bench.fits(quantities * array_step, quantities * array)) throw Failed("not enough device memory for the halo");
  Halo all;
  for (int z = -1; z <= 1; ++z)
    for (int y = -1; y <= 1; ++y)
      for (int x = -1; x <= 1; ++x) {
        if (x == 0 && y == 0 && z == 0) continue;
        const LayoutPtr layout = box(edge, {z, y, x}, direction == Direction::pack);
        const DeviceLayoutPtr device_layout = bench.device_layout(layout);
        const std::int64_t each = traffic(layout);
        for (std::int64_t q = 0; q < quantities; ++q) {
          all.items.push_back({device_layout, bench.user() + static_cast<Address>(q * array_step),
                               bench.packed() + static_cast<Address>(all.packed), direction, 0, -1});
          all.packed += layout->size();
          all.traffic += each;
        }
      }
  return all;
}

/// Compares every byte of a smaller halo with the CPU's reference.
bool right(const Bench& bench, std::int64_t edge) {
  namespace test = bestride::cuda::test;
  const Halo all = halo(bench, edge, Direction::pack);
  const std::size_t span = static_cast<std::size_t>(
      all.items.back().user - bench.user() + static_cast<Address>(all.items.back().device_layout->layout()->high()));
  const test::Bytes user = test::noise(span + 4096, 5);
  test::Bytes packed(static_cast<std::size_t>(all.packed));
  bench.gpu().write(bench.user(), user.data(), user.size());
  const Batch batch = bench.batch(all.items);
  bench.launch(batch);
  bench.gpu().synchronize();
  bench.gpu().read(packed.data(), bench.packed(), packed.size());
  for (const BatchItem& item : all.items) {
    const LayoutPtr& layout = item.device_layout->layout();
    const test::Bytes from(user.begin() + static_cast<std::ptrdiff_t>(item.user - bench.user()), user.end());
    test::Bytes expected(static_cast<std::size_t>(layout->size()));
    const bestride::Packer oracle(layout, {bestride::Isa::scalar, bestride::KernelFamily::reference, 0});
    oracle.pack_range(expected.data(), from.data(), 0, layout->size());
    if (!std::equal(expected.begin(), expected.end(),
                    packed.begin() + static_cast<std::ptrdiff_t>(item.packed - bench.packed())))
      return false;
  }
  return true;
}

}  // namespace

void measure_halo(const Bench& bench) {
  const std::int64_t edge = bench.scale().edge, large = std::min(bench.packed_bytes(), bench.scale().large);
  const bool good = right(bench, std::min<std::int64_t>(edge, 20));
  for (const Direction direction : {Direction::pack, Direction::unpack}) {
    const Halo all = halo(bench, edge, direction);
    const Batch together = bench.batch(all.items);
    std::vector<Batch> single;
    for (const BatchItem& item : all.items) single.push_back(bench.batch({&item, 1}));
    const std::vector<double> took = bench.medians({[&] { bench.launch(together); }, bench.copy_in_turn(large)});
    const std::vector<double> waited = bench.host_medians({[&] {
                                                             bench.launch(together);
                                                             bench.gpu().synchronize();
                                                           },
                                                           [&] {
                                                             for (const Batch& one : single) {
                                                               bench.launch(one);
                                                               bench.gpu().synchronize();
                                                             }
                                                           }});
    const double limit = static_cast<double>(all.traffic) * took[1] / (2 * static_cast<double>(large));
    const std::string name = std::string(direction == Direction::pack ? "pack " : "unpack ") + std::to_string(edge) +
                             "^3, 208 boxes, " + std::to_string(all.packed >> 10) + " KiB";
    bench.results().add({"halo in one launch over the limit",
                         name,
                         took[0] / limit,
                         1.5,
                         false,
                         {{"us", took[0] * 1e6}, {"limit_us", limit * 1e6}, {"launch_and_wait_us", waited[0] * 1e6}},
                         true,
                         good});
    bench.results().add({"208 launches over one",
                         name,
                         waited[1] / waited[0],
                         0,
                         true,
                         {{"us", waited[0] * 1e6}, {"one_by_one_us", waited[1] * 1e6}},
                         true,
                         good});
  }
}

}  // namespace gpu
