// SPDX-License-Identifier: Apache-2.0
// How much slower than the best strategy the chosen one is, on shapes that were not calibrated. Two ranks:
//   mpiexec -n 2 chooser_regret [--profile FILE] [--shapes N] [--seed S] [--table FILE]
// All strategies are measured in the same run, interleaved; the baseline "always forward" and the built-in profile are
// evaluated on the same samples. Prints regret = time(chosen) / least time - 1, and the cost of a choice; writes the
// same to FILE, in the format of bench/summary.py.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "apps/common/text.hpp"
#include "base/median.hpp"
#include "bench/chooser_shapes.hpp"
#include "bench/options.hpp"
#include "datatype/decode.hpp"
#include "datatype/respell.hpp"
#include "kernels/packer.hpp"
#include "perfmodel/calibrate/messages/pair.hpp"
#include "perfmodel/calibrate/messages/types.hpp"
#include "perfmodel/choose/chooser.hpp"

namespace {

using namespace bestride;
constexpr double never = std::numeric_limits<double>::infinity();

struct Measured {
  Measured() { seconds.fill(never); }
  std::array<double, strategy_count> seconds;
  Shape shape;
  Allowed allowed;
};

struct Buffers {
  Arena user, packed, other;
};

Measured measure(const RandomType& type, CallKind kind, Distance distance, const Chooser& chooser, Buffers& buffers) {
  const DatatypeCalls calls = linked_calls();
  const auto decoded = decode(type.type, calls);
  if (!decoded) throw std::runtime_error("could not decode " + type.text);
  const LayoutPtr layout = counted(*decoded, type.count);
  int leaf_size = 0;
  if (decoded->leaf != MPI_DATATYPE_NULL) MPI_Type_size(decoded->leaf, &leaf_size);
  Measured result;
  result.shape = Shape::of(*layout, {decoded->unit_bytes, TypeRepresentation::leaf_of(leaf_size)});
  const int bytes = static_cast<int>(layout->size());
  const bool message = is_message(kind);
  result.allowed = {message && !layout->contiguous() && can_respell(*layout, decoded->leaf, leaf_size),
                    !layout->contiguous()};

  char* const base = buffers.user.at_least(static_cast<std::size_t>(layout->high() + 64));
  char* const packed = buffers.packed.at_least(static_cast<std::size_t>(bytes));
  const OneWay one_way(MPI_COMM_WORLD, kind, distance, bytes, buffers.other.at_least(static_cast<std::size_t>(bytes)));
  const Packer packer(layout);
  const bool wire_respelled = message && chooser.contiguous_strategy(bytes, kind, distance) == Strategy::respell;
  const CountedType wire = make_respelled_bytes(bytes);
  std::optional<Respelled> respelled;
  if (result.allowed.respell) respelled = respell(*layout, decoded->leaf, leaf_size, calls);

  std::vector<Strategy> strategies{Strategy::forward};
  if (respelled) strategies.push_back(Strategy::respell);
  if (result.allowed.pack) strategies.push_back(Strategy::pack);
  // Between two ranks both sides use the same strategy, as in a halo exchange: their work overlaps only within the MPI
  // library.
  const bool both = message && distance == Distance::node;
  const CallKind role = !both ? kind : one_way.rank() == 0 ? CallKind::send : CallKind::receive;
  std::vector<std::function<void()>> actions;
  for (Strategy strategy : strategies)
    actions.push_back([=, &one_way, &packer, &wire] {
      if (!both && !one_way.works()) return one_way.idle();
      int position = 0;
      if (strategy == Strategy::pack) {
        if (role == CallKind::pack || role == CallKind::send) packer.pack(packed, base);
        if (message && wire_respelled)
          one_way.transfer(packed, wire.count(), wire.type());
        else if (message)
          one_way.transfer(packed, bytes, MPI_BYTE);
        if (role == CallKind::unpack || role == CallKind::receive) packer.unpack(base, packed);
      } else if (kind == CallKind::pack) {
        MPI_Pack(base, type.count, type.type, packed, bytes, &position, MPI_COMM_SELF);
      } else if (kind == CallKind::unpack) {
        MPI_Unpack(packed, bytes, &position, base, type.count, type.type, MPI_COMM_SELF);
      } else if (strategy == Strategy::respell) {
        one_way.transfer(base + layout->offset(), static_cast<int>(respelled->count), respelled->type);
      } else {
        one_way.transfer(base, type.count, type.type);
      }
      one_way.answer();
    });
  const std::vector<double> seconds = time_actions(MPI_COMM_WORLD, std::move(actions), one_way.answered(), 4e-3);
  for (std::size_t s = 0; s < strategies.size(); ++s)
    result.seconds[static_cast<std::size_t>(strategies[s])] =
        seconds[s] > 0 ? seconds[s] + overhead_seconds(strategies[s], kind) : never;
  if (respelled) MPI_Type_free(&respelled->type);
  return result;
}

/// The regrets of one group of samples, in percent.
struct Regrets {
  std::vector<double> values;
  void add(double value) { values.push_back(100 * value); }

  /// Prints them, and returns their line of the table.
  std::string print(const char* group) {
    std::sort(values.begin(), values.end());
    double mean = 0;
    for (double value : values) mean += value / static_cast<double>(values.size());
    const double median = median_of(values), p90 = values[values.size() * 9 / 10];
    std::printf("%-34s n %4zu  mean %6.1f %%  median %6.1f %%  p90 %6.1f %%  max %6.0f %%\n", group, values.size(),
                mean, median, p90, values.back());
    return apps::format("%s\t%zu\t%.4g\t%.4g\t%.4g\t%.4g\n", group, values.size(), mean, median, p90, values.back());
  }
};

double nanoseconds_a_choice(const Chooser& chooser, const std::vector<Shape>& shapes) {
  double best = never, sink = 0;
  for (int round = 0; round < 20; ++round) {
    const double start = MPI_Wtime();
    for (int i = 0; i < 1000; ++i)
      sink +=
          chooser
              .choose(shapes[static_cast<std::size_t>(i) % shapes.size()], CallKind::send, Distance::node, {true, true})
              .seconds[0];
    best = std::min(best, (MPI_Wtime() - start) * 1e6);
  }
  return sink > 0 ? best : 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  std::string path = find_profile_path(), table_path;
  int shape_count = 100, seed = 1, rank = 0;
  bench::apply_or_exit(argc, argv,
                       {{"--profile", command_line::file_name(path)},
                        {"--shapes", command_line::whole(shape_count, 1, 1 << 20)},
                        {"--seed", command_line::whole(seed, 0, 1 << 30)},
                        {"--table", command_line::file_name(table_path)}});
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  auto loaded = path.empty() ? Result<MachineProfile>(Error{}) : MachineProfile::load(path);
  if (!loaded && !path.empty() && rank == 0) std::printf("%s\n", loaded.error().text.c_str());
  const MachineProfile& profile = loaded ? *loaded : MachineProfile::built_in();
  const Chooser chooser(profile), cautious(MachineProfile::built_in());
  std::mt19937 random(static_cast<unsigned>(seed));
  Buffers buffers;
  std::map<std::string, Regrets> regrets;
  std::vector<Shape> shapes;
  for (int n = 0; n < shape_count; ++n) {
    RandomType type = make_random_type(random);
    for (CallKind kind : {CallKind::pack, CallKind::unpack, CallKind::send, CallKind::receive}) {
      const Measured measured = measure(type, kind, Distance::node, chooser, buffers);
      if (rank != 0) continue;
      shapes.push_back(measured.shape);
      const Choice choice = chooser.choose(measured.shape, kind, Distance::node, measured.allowed);
      const Choice careful = cautious.choose(measured.shape, kind, Distance::node, measured.allowed);
      const double least = *std::min_element(measured.seconds.begin(), measured.seconds.end());
      const auto regret = [&](Strategy s) { return measured.seconds[static_cast<std::size_t>(s)] / least - 1; };
      if (least == never || measured.seconds[0] == never || regret(choice.strategy) == never ||
          regret(careful.strategy) == never)
        continue;  // the machine was too busy
      const std::string call(name(kind));
      for (const std::string& group : {std::string("calibrated, all"), "calibrated, " + call,
                                       "calibrated, " + std::string(name(measured.shape.kind))})
        regrets[group].add(regret(choice.strategy));
      regrets["built-in, " + call].add(regret(careful.strategy));
      regrets["always forward, " + call].add(regret(Strategy::forward));
    }
    MPI_Type_free(&type.type);
  }
  if (rank == 0) {
    std::printf("profile: %s\n", profile.path.empty() ? "built-in" : profile.path.c_str());
    std::string lines;
    for (auto& [group, values] : regrets) lines += values.print(group.c_str());
    const double ns = shapes.empty() ? 0 : nanoseconds_a_choice(chooser, shapes);
    std::printf("one choice: %.0f ns\n", ns);
    const std::string head = apps::format(
        "# SPDX-License-Identifier: Apache-2.0\n# chooser_regret --shapes %d --seed %d; one choice: %.4g ns\n"
        "group\tsamples\tmean_percent\tmedian_percent\tp90_percent\tmost_percent\n",
        shape_count, seed, ns);
    if (!table_path.empty() && !apps::write_text(table_path, head + lines))
      std::fprintf(stderr, "chooser_regret: cannot write %s\n", table_path.c_str());
  }
  MPI_Finalize();
  return 0;
}
