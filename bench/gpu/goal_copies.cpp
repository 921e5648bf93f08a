// SPDX-License-Identifier: Apache-2.0
// Compared with one asynchronous copy per block, which MPI libraries use for derived datatypes in device memory.
#include "bench/gpu/bench.hpp"

namespace gpu {

void measure_copies(const Bench& bench) {
  constexpr std::int64_t block = 8, stride = 512;
  for (const std::int64_t size :
       {std::int64_t{1} << 10, bench.gpu().stand_in() ? std::int64_t{1} << 13 : std::int64_t{1} << 22}) {
    const LayoutPtr layout = rows(size / block, block, stride);
    const std::string name = bytes_text(size) + " in blocks of 8 B, 512 apart";
    if (!bench.fits(layout->high(), size)) {
      bench.results().leave_out(name, "not enough device memory");
      continue;
    }
    const bool right = bench.right(rows(128, block, stride));
    const BatchItem item{bench.device_layout(layout), bench.user(), bench.packed(), Direction::pack, 0, -1};
    const Batch batch = bench.batch({&item, 1});
    const std::vector<double> took =
        bench.host_medians({[&] {
                              bench.launch(batch);
                              bench.gpu().synchronize();
                            },
                            [&] {
                              for (std::int64_t i = 0; i < size / block; ++i)
                                bench.gpu().copy(bench.packed() + static_cast<Address>(i * block),
                                                 bench.user() + static_cast<Address>(i * stride), block);
                              bench.gpu().synchronize();
                            }});
    bench.results().add({"a copy for each block over ours",
                         name,
                         took[1] / took[0],
                         0,
                         true,
                         {{"us", took[0] * 1e6}, {"copies_us", took[1] * 1e6}},
                         true,
                         right});
  }
}

}  // namespace gpu
