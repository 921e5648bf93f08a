// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate/summary.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "model/processors.hpp"
#include "perfmodel/choose/chooser.hpp"

namespace bestride::inline cli {
namespace {

std::string measured_time_text(double seconds) {
  char text[32];
  if (std::isinf(seconds)) return "-";
  if (seconds < 1e-6)
    std::snprintf(text, sizeof text, "%.0f ns", seconds * 1e9);
  else if (seconds < 1e-3)
    std::snprintf(text, sizeof text, "%.1f us", seconds * 1e6);
  else
    std::snprintf(text, sizeof text, "%.2f ms", seconds * 1e3);
  return text;
}

struct Example {
  const char* what;
  Shape::Class kind;
  Leaf leaf;
  std::int64_t bytes, block;
  CallKind call;
  bool respell;
};
constexpr Example examples[] = {
    {"MPI_Pack, doubles of every second", Shape::Class::vector, Leaf::eight, 65536, 8, CallKind::pack, false},
    {"send, doubles of every second", Shape::Class::vector, Leaf::eight, 65536, 8, CallKind::send, true},
    {"send, structs of three members", Shape::Class::record, Leaf::mixed, 65536, 16, CallKind::send, false},
    {"send, indexed doubles", Shape::Class::list, Leaf::eight, 65536, 8, CallKind::send, false},
    {"send, contiguous", Shape::Class::contiguous, Leaf::eight, 65536, 65536, CallKind::send, true},
    {"receive, doubles of every second", Shape::Class::vector, Leaf::eight, 65536, 8, CallKind::receive, true},
};

struct DeviceExample {
  const char* what;
  std::int64_t bytes, block;
};
constexpr DeviceExample device_examples[] = {{"doubles of every second, 64 KiB", 65536, 8},
                                             {"doubles of every second, 16 MiB", 16 << 20, 8},
                                             {"rows of 4 KiB, 1 MiB", 1 << 20, 4096}};

/// False if all times of the example are those of the built-in profile.
bool is_measured(const MachineProfile& profile, const Example& example) {
  if (example.kind != Shape::Class::contiguous)
    return !profile.predicts_by_built_in(example.kind, example.call, Distance::node);
  const auto& points =
      profile.measured().curve(ContiguousForm::plain, call_class_of(example.call, Distance::node)).log_seconds;
  return std::any_of(points.begin(), points.end(), [](float point) { return !std::isnan(point); });
}

/// A line for each near distance that was measured: from which size on contiguous messages gain, and how much.
void print_near(const MachineProfile& profile) {
  const Chooser chooser(profile);
  for (const Distance distance : near_distances) {
    const auto measured = [&profile, distance](CallKind kind) {
      const auto& values =
          profile.measured().curve(ContiguousForm::respelled, call_class_of(kind, distance)).log_seconds;
      return std::any_of(values.begin(), values.end(), [](float value) { return !std::isnan(value); });
    };
    if (!measured(CallKind::send) && !measured(CallKind::isend)) continue;
    std::printf("contiguous messages between ranks bound to one %s: ", std::string(name(distance)).c_str());
    const std::int64_t from = chooser.respell_contiguous_from({distance});
    if (from == 0) {
      std::printf("left to MPI, an equivalent datatype gains less than %.0f %%\n", 100 * Chooser::default_margin);
      continue;
    }
    double best = 0;
    for (int i = 0; i < curve_points; ++i)
      for (const CallKind kind : {CallKind::send, CallKind::isend}) {
        const auto bytes = static_cast<double>(curve_bytes_at(i));
        const CallClass of = call_class_of(kind, distance);
        if (chooser.contiguous_strategy(curve_bytes_at(i), kind, distance) == Strategy::respell)
          best = std::max(best, profile.contiguous_seconds(bytes, ContiguousForm::plain, of) /
                                    profile.contiguous_seconds(bytes, ContiguousForm::respelled, of));
      }
    std::printf("respelled from %lld B on, at best %.1f times as fast\n", static_cast<long long>(from), best);
    if (in_virtual_machine())
      std::printf("  only with BESTRIDE_FORCE=contiguous=near: the processors of this virtual machine may move\n");
  }
}

void print_gpu(const MeasureRun& run, const MachineProfile& profile) {
  if (!run.gpu_problem.empty()) std::printf("GPU: %s\n", run.gpu_problem.c_str());
  const DeviceCosts& costs = profile.device();
  if (!costs.measured().any()) return;
  std::printf("GPU: %s\n", profile.fingerprint.gpu.c_str());
  if (costs.measured().stand_in)
    std::printf("GPU: this is a stand-in driver: its curves are for tests and are not used\n");
  if (!costs.calibrated()) return;
  std::printf("\n%-36s", "send from device memory, this host");
  for (int method = 0; method < cuda::transfer_method_count; ++method)
    std::printf(" %11s", cuda::name(static_cast<cuda::TransferMethod>(method)));
  std::printf("  chosen\n");
  for (const DeviceExample& example : device_examples) {
    Shape shape;
    shape.kind = Shape::Class::vector;
    shape.bytes = shape.unit_bytes = example.bytes;
    shape.block_bytes = example.block;
    shape.blocks = shape.inner_count = shape.outer_count = example.bytes / example.block;
    shape.jump = 2 * example.block;
    const DeviceChoice choice =
        Chooser(profile).choose_device(shape, CallKind::send, Distance::node, {.copy_engine = true});
    std::printf("%-36s", example.what);
    for (double seconds : choice.seconds) std::printf(" %11s", measured_time_text(seconds).c_str());
    std::printf("  %s\n", cuda::name(choice.method));
  }
  for (Direction direction : {Direction::pack, Direction::unpack}) {
    const std::int64_t from = costs.bulk_from(direction);
    std::printf(
        "bulk copies to %s: %s\n", std::string(name(direction)).c_str(),
        from == 0 ? "not measured to be faster" : ("blocks of " + std::to_string(from) + " B and more").c_str());
  }
  std::printf("CUDA graphs: of one launch %s, of one launch and %d copies %s\n",
              costs.graph_is_faster(1) ? "faster" : "not faster", many_copies,
              costs.graph_is_faster(1 + many_copies) ? "faster" : "not faster");
}

}  // namespace

void print_summary(const MeasureRun& run, const MachineProfile& profile) {
  std::printf("%s\n", run.configuration.c_str());
  std::printf("measured %d points in %.0f s", run.measured, run.seconds);
  if (run.known > 0) std::printf(", %d were known", run.known);
  if (run.left_out > 0)
    std::printf(", %d left out for time (interpolated; 'bestride calibrate' again measures them)", run.left_out);
  std::printf("\n");
  if (!run.two_hosts)
    std::printf(
        "both ranks were on one host: for messages between hosts the curves are derived, cautiously (see "
        "docs/profile.md)\n");
  std::printf("\n%-36s %10s %10s %10s  chosen\n", "64 KiB on this host", "forward", "respell", "pack");
  const Chooser chooser(profile);
  for (const Example& example : examples) {
    Shape shape;
    shape.kind = example.kind;
    shape.leaf = example.leaf;
    shape.bytes = shape.unit_bytes = example.bytes;
    shape.block_bytes = example.block;
    shape.blocks = shape.inner_count = shape.outer_count = example.bytes / example.block;
    shape.jump = 2 * example.block;
    const Choice choice =
        chooser.choose(shape, example.call, Distance::node, {.respell = example.respell, .pack = true});
    std::printf("%-36s %10s %10s %10s  %s%s\n", example.what, measured_time_text(choice.seconds[0]).c_str(),
                measured_time_text(choice.seconds[1]).c_str(), measured_time_text(choice.seconds[2]).c_str(),
                std::string(name(choice.strategy)).c_str(),
                is_measured(profile, example) ? "" : " (built-in, not measured)");
  }
  print_near(profile);
  print_gpu(run, profile);
}

}  // namespace bestride::inline cli
