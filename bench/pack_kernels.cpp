// SPDX-License-Identifier: Apache-2.0
// Every kernel family on every case that it supports, the automatic choice, and memcpy of the payload as the limit.
// Interleave them:
//   bench_kernels --benchmark_enable_random_interleaving=true --benchmark_repetitions=7 --benchmark_min_time=0.01
//                 --benchmark_format=json --benchmark_out=kernels.json
// and print the ratios with bench/pack_kernels_table.py. Only ratios within one run are meaningful.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <cstring>
#include <map>

#include "bench/pack_cases.hpp"
#include "kernels/packer.hpp"

namespace {

using namespace bestride;

struct Prepared {
  LayoutPtr layout;
  char* user = nullptr;
  char* packed = nullptr;
};

/// Only one case at a time is in memory, because interleaved runs have a random order and 512^3 arrays need a gigabyte
/// of address space. Mapped lazily: only pages that a layout touches are allocated.
const Prepared& prepare(const bench::Case& which) {
  static std::map<std::string, Prepared> all;
  Prepared& one = all[which.name];
  if (one.layout) return one;
  one.layout = intern(which.build());
  const auto reserve = [](std::int64_t size) {
    return static_cast<char*>(mmap(nullptr, static_cast<std::size_t>(size) + 8192, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  };
  one.user = reserve(one.layout->high() - one.layout->low()) - one.layout->low();
  one.packed = reserve(one.layout->size());
  std::memset(one.packed, 1, static_cast<std::size_t>(one.layout->size()));
  Packer(one.layout, {Isa::scalar, KernelFamily::reference, 0}).unpack(one.user, one.packed);
  return one;
}

void run(benchmark::State& state, const bench::Case& which, bool packing, const PackerOptions& options) {
  const Prepared& prepared = prepare(which);
  const Packer packer(prepared.layout, options);
  if (packing)
    for (auto _ : state) packer.pack(prepared.packed, prepared.user);
  else
    for (auto _ : state) packer.unpack(prepared.user, prepared.packed);
  state.SetLabel(packer.text());
}

void run_memcpy(benchmark::State& state, const bench::Case& which) {
  const Prepared& prepared = prepare(which);
  static std::map<std::string, std::vector<char>> targets;
  const std::size_t size = static_cast<std::size_t>(prepared.layout->size());
  std::vector<char>& target = targets[which.name];
  target.resize(size);
  for (auto _ : state) {
    std::memcpy(target.data(), prepared.packed, size);
    benchmark::ClobberMemory();
  }
}

void register_case(const bench::Case& which, Isa isa) {
  const LayoutPtr layout = intern(which.build());
  for (const bool packing : {true, false}) {
    const std::string start = which.name + (packing ? "/pack/" : "/unpack/");
    for (int family = 0; family <= static_cast<int>(KernelFamily::streaming); ++family) {
      PackerOptions options{isa, static_cast<KernelFamily>(family), -1};
      const std::string label(name(options.family));
      if (!packing && options.family == KernelFamily::streaming) continue;
      if (options.family == KernelFamily::reference && layout->blocks() > 100000) continue;
      if (options.family != KernelFamily::automatic && Packer(layout, options).text().find(label) == std::string::npos)
        continue;
      benchmark::RegisterBenchmark((start + label).c_str(),
                                   [=](benchmark::State& state) { run(state, which, packing, options); });
      if (options.family == KernelFamily::automatic || options.family == KernelFamily::streaming) continue;
      // The same without streaming stores, to separate the two decisions.
      if (packing && layout->size() >= (1 << 20)) {
        options.streaming_from = 0;
        benchmark::RegisterBenchmark((start + label + ".cached").c_str(),
                                     [=](benchmark::State& state) { run(state, which, packing, options); });
      }
    }
    benchmark::RegisterBenchmark((start + "memcpy").c_str(),
                                 [=](benchmark::State& state) { run_memcpy(state, which); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (const bench::Case& which : bench::cases()) register_case(which, PackerOptions::from_settings().isa);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
