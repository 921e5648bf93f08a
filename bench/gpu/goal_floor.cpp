// SPDX-License-Identifier: Apache-2.0
// What the smallest pack costs, waiting included, over a kernel that does nothing.
#include "bench/gpu/bench.hpp"
#include "bench/gpu/by_hand.hpp"

namespace gpu {

void measure_floor(const Bench& bench) {
  const FunctionHandle empty = bench.gpu().function(by_hand::image(), by_hand::empty_kernel);
  by_hand::Move nothing{};
  for (const std::int64_t size : {64, 1024, 16384}) {
    const LayoutPtr layout = rows(size / 8, 8, 64);
    const bool right = bench.right(layout);
    const BatchItem item{bench.plan(layout), bench.user(), bench.packed(), Direction::pack, 0, -1};
    const Batch batch = bench.batch({&item, 1});
    Batch graph = bench.batch({&item, 1});
    if (!graph.keep_as_graph()) throw Failed("no CUDA graph");
    const std::vector<double> took = bench.host_medians({[&] {
                                                           bench.gpu().launch(empty, 1, &nothing);
                                                           bench.gpu().synchronise();
                                                         },
                                                         [&] {
                                                           bench.launch(batch);
                                                           bench.gpu().synchronise();
                                                         },
                                                         [&] {
                                                           bench.launch(graph);
                                                           bench.gpu().synchronise();
                                                         }});
    bench.results().add({"pack and wait over an empty kernel",
                         bytes_text(size) + " in blocks of 8 B",
                         took[1] / took[0],
                         1.2,
                         false,
                         {{"us", took[1] * 1e6}, {"as_a_graph_us", took[2] * 1e6}, {"empty_us", took[0] * 1e6}},
                         true,
                         right});
  }
}

}  // namespace gpu
