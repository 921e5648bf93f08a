// SPDX-License-Identifier: Apache-2.0
// Packing and unpacking compared with the limit of the memory: the bytes of the touched 32-byte sectors and the packed
// bytes, at the bandwidth of a copy within the device in the same rounds.
#include <algorithm>

#include "bench/gpu/bench.hpp"

namespace gpu {

void measure_limit(const Bench& bench) {
  const std::int64_t large = std::min(bench.packed_bytes(), bench.scale().large);
  for (const std::int64_t size : bench.scale().sizes)
    for (const std::int64_t block : {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096}) {
      // A gap of at least a sector, so that no two blocks share a sector.
      const std::int64_t stride = std::max<std::int64_t>(64, 2 * block), count = size / block;
      const std::string name = bytes_text(size) + ", blocks of " + bytes_text(block);
      const LayoutPtr sample = rows(std::min<std::int64_t>(count, 4096), block, stride),
                      all = rows(count, block, stride);
      if (!bench.fits(all->high(), size)) {
        bench.results().leave_out(name, "not enough device memory");
        continue;
      }
      const bool right = bench.right(sample);
      const std::int64_t moved = count * ((block + 31) / 32 * 32) + size;
      const std::vector<double> took = bench.medians(
          {bench.in_turn(bench.batches(all, Direction::pack)), bench.in_turn(bench.batches(all, Direction::unpack)),
           bench.copy_in_turn(large), bench.copy_in_turn(std::min(large, moved / 2))});
      const double bandwidth = 2 * static_cast<double>(large) / took[2], limit = static_cast<double>(moved) / bandwidth;
      const double wanted = block >= 32 ? 0.9 : 0.8;
      for (const int direction : {0, 1}) {
        const double time = took[static_cast<std::size_t>(direction)];
        bench.results().add({std::string(direction ? "unpack" : "pack") + " of the limit, " +
                                 (block >= 32 ? "32 B and more" : "1 to 16 B"),
                             name,
                             limit / time,
                             wanted,
                             true,
                             {{"us", time * 1e6},
                              {"limit_us", limit * 1e6},
                              {"copy_gb_s", bandwidth * 1e-9},
                              {"of_a_copy_of_the_same_traffic", took[3] / time}},
                             true,
                             right});
      }
    }
}

}  // namespace gpu
