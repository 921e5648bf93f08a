// SPDX-License-Identifier: Apache-2.0
// The thresholds of the automatic choice, one at a time: the block length from which the bulk engine is faster than
// words, the number of turns from which a transpose is faster, words per thread, and thread blocks per multiprocessor.
// A row has the time of the default over that of the variant.
#include "bench/gpu/bench.hpp"
#include "datatype/build.hpp"

namespace gpu {
namespace {

using bestride::cuda::GpuKernel;

void compare(const Bench& bench, const std::string& goal, const std::string& name, const LayoutPtr& layout,
             const KernelOptions& usual, const KernelOptions& variant, const LayoutPtr& small) {
  if (!bench.fits(layout->high(), layout->size()))
    return bench.results().leave_out(goal + ", " + name, "not enough device memory");
  const bool right = bench.right(small, variant);
  for (const Direction direction : {Direction::pack, Direction::unpack}) {
    const std::vector<double> took = bench.medians({bench.in_turn(bench.batches(layout, direction, usual)),
                                                    bench.in_turn(bench.batches(layout, direction, variant))});
    bench.results().add({"sweep: " + goal,
                         name + (direction == Direction::pack ? ", pack" : ", unpack"),
                         took[0] / took[1],
                         0,
                         true,
                         {{"usual_us", took[0] * 1e6}, {"variant_us", took[1] * 1e6}},
                         true,
                         right});
  }
}

LayoutPtr turned(std::int64_t inner, std::int64_t outer) {
  const std::int64_t pitch = (outer * 8 + 63) / 64 * 64;
  return bestride::intern(
      *bestride::make_repeat(*bestride::make_repeat(*bestride::make_block(0, 8), inner, pitch), outer, 8));
}

}  // namespace

void sweep_thresholds(const Bench& bench) {
  const std::int64_t size = bench.scale().large / 16;
  for (const std::int64_t block : {512, 1024, 2048, 4096, 8192, 16384, 65536})
    compare(bench, "bulk engine over words", "blocks of " + bytes_text(block), rows(size / block, block, 2 * block),
            {GpuKernel::words, 0}, {GpuKernel::bulk, 0}, rows(3, block, 2 * block));
  for (const std::int64_t turns : {2, 4, 8, 16, 32, 128}) {
    const std::int64_t others = size / 8 / turns;
    compare(bench, "transpose over words", std::to_string(turns) + " turns along the packed side",
            turned(turns, others), {GpuKernel::words, 0}, {GpuKernel::transpose, 0}, turned(turns, 70));
    compare(bench, "transpose over words", std::to_string(turns) + " turns along the user's side",
            turned(others, turns), {GpuKernel::words, 0}, {GpuKernel::transpose, 0}, turned(70, turns));
  }
  for (const std::int64_t block : {8, 64, 1024})
    for (const std::int64_t bytes : {size / 64, size / 8, size}) {
      const std::string shape = bytes_text(bytes) + ", blocks of " + bytes_text(block);
      const LayoutPtr layout = rows(bytes / block, block, std::max<std::int64_t>(64, 2 * block)),
                      small = rows(100, block, std::max<std::int64_t>(64, 2 * block));
      for (const int rounds : {1, 2}) {
        KernelOptions variant;
        variant.rounds = rounds;
        compare(bench, "words a thread", std::to_string(rounds) + ", " + shape, layout, {}, variant, small);
      }
      for (const int each : {1, 2, 6, 12})
        compare(bench, "thread blocks a multiprocessor", std::to_string(each) + ", " + shape, layout, {},
                {GpuKernel::automatic, each}, small);
    }
}

}  // namespace gpu
