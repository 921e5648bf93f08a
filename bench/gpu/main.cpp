// SPDX-License-Identifier: Apache-2.0
// bench_gpu [--json FILE] [--seconds S] [--all] [--sweep] [--only GOAL]...: packing and unpacking in device memory,
// compared for each goal with a reference that the same run measures. GOAL: limit, by-hand, floor, halo, copies. --all
// prints every case, --sweep measures thresholds instead. Exits with 1 if bytes were wrong, with 2 if it cannot run
// here. A missed goal is printed, but is not an error.
#include <algorithm>
#include <cstdio>
#include <string>

#include "apps/common/command_line.hpp"
#include "apps/common/text.hpp"
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
  bool all = false, sweep = false;
  std::vector<std::string> only;
};

/// Returns "" or an error message.
std::string parse(int count, char** arguments, Options* options) {
  const auto add_goal = [&](const std::string& name) {
    options->only.push_back(name);
    const bool known =
        std::any_of(std::begin(goals), std::end(goals), [&](const Goal& goal) { return name == goal.name; });
    return std::string(known ? "" : "one of limit, by-hand, floor, halo, copies");
  };
  return command_line::parse({arguments + 1, arguments + count},
                             {{"--json", command_line::file_name(options->json)},
                              {"--seconds", command_line::number(options->seconds, 0, 3600)},
                              {"--only", add_goal}},
                             {{"--all", [&] { options->all = true; }}, {"--sweep", [&] { options->sweep = true; }}});
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
  if (!options.json.empty() && !apps::write_text(options.json, results.json()))
    throw Failed("cannot write " + options.json);
  return results.all_right() ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  Options options;
  if (const std::string problem = parse(count, arguments, &options); !problem.empty()) {
    std::fprintf(
        stderr,
        "bench_gpu: %s\n"
        "bench_gpu [--json FILE] [--seconds S] [--all] [--sweep] [--only limit|by-hand|floor|halo|copies]...\n",
        problem.c_str());
    return 2;
  }
  try {
    return run(options);
  } catch (const Failed& failed) {
    std::fprintf(stderr, "bench_gpu: %s\n", failed.what());
    return 2;
  }
}
