// SPDX-License-Identifier: Apache-2.0
// The cost of the smallest pack, including the wait, relative to an empty kernel; and of a repeated sequence call by
// call, relative to a graph.
#include "bench/gpu/bench.hpp"
#include "bench/gpu/by_hand.hpp"
#include "kernels/cuda/launch/sequence.hpp"

namespace gpu {

namespace {

using bestride::cuda::CopyKind;
using bestride::cuda::Sequence;
using bestride::cuda::SequenceItems;

std::shared_ptr<Sequence> sequence(const Bench& bench, const SequenceItems& items, bool graph) {
  const auto made = Sequence::make(bench.device(), items, {});
  if (!made) throw Failed(made.error().text);
  if (graph && !(*made)->keep_as_graph()) throw Failed("no CUDA graph");
  return *made;
}

/// One launch, and a copy to the host for each message of a halo exchange.
void measure_repeats(const Bench& bench) {
  const LayoutPtr layout = rows(128, 8, 64);
  const bool right = bench.right(layout);
  auto host = bench.device()->pinned(layout->size());
  if (!host) throw Failed(host.error().text);
  for (const int copies : {0, 1, 6, 26}) {
    SequenceItems items;
    items.kernels.push_back({bench.device_layout(layout), bench.user(), bench.packed()});
    for (int i = 0; i < copies; ++i)
      items.after.push_back({bench.packed(), host->address(), layout->size(), CopyKind::to_host});
    const auto calls = sequence(bench, items, false), graph = sequence(bench, items, true);
    const auto once = [&](const std::shared_ptr<Sequence>& of) {
      return [&bench, of] {
        if (const auto enqueued = of->enqueue(bench.gpu().stream()); !enqueued) throw Failed(enqueued.error().text);
        bench.gpu().synchronize();
      };
    };
    const std::vector<double> took = bench.host_medians({once(calls), once(graph)});
    bench.results().add({"repeated, call by call over a graph",
                         "a launch and " + std::to_string(copies) + " copies",
                         took[0] / took[1],
                         0,
                         true,
                         {{"us", took[0] * 1e6}, {"as_a_graph_us", took[1] * 1e6}},
                         true,
                         right});
  }
}

}  // namespace

void measure_floor(const Bench& bench) {
  const FunctionHandle empty = bench.gpu().function(by_hand::image(), by_hand::empty_kernel);
  by_hand::Move nothing{};
  for (const std::int64_t size : {64, 1024, 16384}) {
    const LayoutPtr layout = rows(size / 8, 8, 64);
    const bool right = bench.right(layout);
    const BatchItem item{bench.device_layout(layout), bench.user(), bench.packed(), Direction::pack, 0, -1};
    const Batch batch = bench.batch({&item, 1});
    const std::vector<double> took = bench.host_medians({[&] {
                                                           bench.gpu().launch(empty, 1, &nothing);
                                                           bench.gpu().synchronize();
                                                         },
                                                         [&] {
                                                           bench.launch(batch);
                                                           bench.gpu().synchronize();
                                                         }});
    bench.results().add({"pack and wait over an empty kernel",
                         bytes_text(size) + " in blocks of 8 B",
                         took[1] / took[0],
                         1.2,
                         false,
                         {{"us", took[1] * 1e6}, {"empty_us", took[0] * 1e6}},
                         true,
                         right});
  }
  measure_repeats(bench);
}

}  // namespace gpu
