// SPDX-License-Identifier: Apache-2.0
// bench_gpu [--json FILE] [--seconds S] [--all] [--sweep] [--only GOAL]...: packing and unpacking in device memory,
// compared for each goal with a reference that the same run measures. GOAL: limit, by-hand, floor, halo, copies. --all
// prints every case, --sweep measures thresholds instead. Exits with 1 if bytes were wrong, with 2 if it cannot run
// here. A missed goal is printed, but is not an error.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "bench/gpu/bench.hpp"

namespace {

using namespace gpu;

struct Goal {
  const char* name;
  void (*measure)(const Bench&);
};
constexpr Goal goals[] = {{"limit", measure_limit},
                          {"by-hand", measure_by_hand},
                          {"floor", measure_floor},
                          {"halo", measure_halo},
                          {"copies", measure_copies}};

struct Options {
  std::string json;
  double seconds = 0.05;
  bool all = false, sweep = false, understood = true;
  std::vector<std::string> only;
};

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string one = arguments[i];
    const bool valued = i + 1 < count;
    if (one == "--all")
      options.all = true;
    else if (one == "--sweep")
      options.sweep = true;
    else if (one == "--json" && valued)
      options.json = arguments[++i];
    else if (one == "--seconds" && valued)
      options.seconds = std::atof(arguments[++i]);
    else if (one == "--only" && valued)
      options.only.push_back(arguments[++i]);
    else
      options.understood = false;
  }
  for (const std::string& one : options.only)
    if (std::none_of(std::begin(goals), std::end(goals), [&](const Goal& goal) { return one == goal.name; }))
      options.understood = false;
  return options;
}

Scale scale_of(const Gpu& gpu, double seconds) {
  constexpr std::int64_t mib = 1 << 20;
  if (gpu.stand_in()) return {{16384}, mib, 12, 0};
  return {{4 * mib, 16 * mib, 64 * mib, 256 * mib}, 1024 * mib, 256, seconds};
}

int run(const Options& options) {
  Gpu gpu(0);
  Results results(gpu);
  const Bench bench(gpu, results, scale_of(gpu, options.seconds));
  if (options.sweep) sweep_thresholds(bench);
  for (const Goal& goal : goals) {
    const bool wanted =
        options.only.empty() || std::find(options.only.begin(), options.only.end(), goal.name) != options.only.end();
    if (!options.sweep && wanted) goal.measure(bench);
  }
  std::fputs(results.table(options.all || options.sweep).c_str(), stdout);
  if (!options.json.empty()) {
    std::FILE* file = std::fopen(options.json.c_str(), "w");
    if (!file || std::fputs(results.json().c_str(), file) < 0 || std::fclose(file) != 0)
      throw Failed("cannot write " + options.json);
  }
  return results.all_right() ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  const Options options = parse(count, arguments);
  if (!options.understood) {
    std::fputs("bench_gpu [--json FILE] [--seconds S] [--all] [--sweep] [--only limit|by-hand|floor|halo|copies]...\n",
               stderr);
    return 2;
  }
  try {
    return run(options);
  } catch (const Failed& failed) {
    std::fprintf(stderr, "bench_gpu: %s\n", failed.what());
    return 2;
  }
}
