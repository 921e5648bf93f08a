// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate_summary.hpp"

#include <cmath>
#include <cstdio>

#include "perfmodel/chooser.hpp"

namespace bestride {
namespace {

std::string time_text(double seconds) {
  char text[32];
  if (std::isinf(seconds)) return "-";
  if (seconds < 1e-6) std::snprintf(text, sizeof text, "%.0f ns", seconds * 1e9);
  else if (seconds < 1e-3) std::snprintf(text, sizeof text, "%.1f us", seconds * 1e6);
  else std::snprintf(text, sizeof text, "%.2f ms", seconds * 1e3);
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

}  // namespace

void print_summary(const MeasureRun& run, const MachineProfile& profile, const std::string& path) {
  std::printf("%s\n", run.configuration.c_str());
  std::printf("measured %d points in %.0f s", run.measured, run.seconds);
  if (run.known > 0) std::printf(", %d were known", run.known);
  if (run.left_out > 0) std::printf(", %d left out for time (interpolated; 'bestride calibrate' again measures them)", run.left_out);
  std::printf("\n");
  if (!run.two_hosts)
    std::printf("both ranks were on one host: for messages between hosts the curves are derived, cautiously (see docs/profile.md)\n");
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
    const Choice choice = chooser.choose(shape, example.call, Distance::node, {.respell = example.respell, .pack = true});
    std::printf("%-36s %10s %10s %10s  %s\n", example.what, time_text(choice.seconds[0]).c_str(), time_text(choice.seconds[1]).c_str(),
                time_text(choice.seconds[2]).c_str(), std::string(name(choice.strategy)).c_str());
  }
  std::printf("\nwritten to %s\n", path.c_str());
}

}  // namespace bestride
