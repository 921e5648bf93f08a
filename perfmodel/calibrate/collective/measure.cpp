// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/collective/measure.hpp"

#include <mpi.h>

#include <stdexcept>

#include "perfmodel/calibrate/collective/link_point.hpp"
#include "perfmodel/calibrate/collective/piece_point.hpp"
#include "perfmodel/calibrate/collective/point.hpp"
#include "perfmodel/calibrate/collective/preload.hpp"
#include "perfmodel/calibrate/collective/rail_point.hpp"
#include "perfmodel/calibrate/collective/state.hpp"
#include "perfmodel/calibrate/common/events.hpp"
#include "perfmodel/calibrate/common/joint_points.hpp"

#include "base/profiling_names.hpp"  // after mpi.h

namespace bestride::inline perfmodel {
namespace {

CollectiveSetting setting_of(const JobTopology& place) {
  const CollectiveShape shape = shape_of(Collective::allgather, 1, true, place.topology);
  CollectiveSetting setting;
  setting.nodes = shape.nodes, setting.ranks = shape.ranks, setting.max_ranks_per_node = shape.max_ranks_per_node;
  setting.min_ranks_per_node = shape.min_ranks_per_node, setting.ring_entries = shape.ring_entries;
  return setting;
}

/// The links, and the message size that is best for them. They are always measured, because collectives can't be
/// measured without them.
class LinkPoints : public PointSet {
 public:
  LinkPoints(const JobTopology& place, double limit, int piece_rounds)
      : place_(place), limit_(limit), piece_rounds_(piece_rounds) {}
  std::size_t size() const override { return link_fields.size() + 1; }
  std::string id(std::size_t i) const override {
    return i < link_fields.size() ? std::string(link_fields[i].name) : piece_id;
  }
  bool required(std::size_t) const override { return true; }
  Result<bool> measure(std::size_t i, StateWriter* state) override {
    if (i == link_fields.size()) {
      const std::int64_t bytes = measure_piece(place_, piece_rounds_);
      if (state) write_piece(*state, bytes);
      return true;
    }
    const double seconds = measure_link(link_fields[i], place_, limit_);
    if (state && seconds > 0) write_link(*state, link_fields[i], seconds);
    return true;
  }

 private:
  const JobTopology& place_;
  const double limit_;
  const int piece_rounds_;
};

class CollectivePoints : public PointSet {
 public:
  CollectivePoints(std::vector<CollectivePoint> plan, double limit) : plan_(std::move(plan)), limit_(limit) {}
  std::size_t size() const override { return plan_.size(); }
  std::string id(std::size_t i) const override { return plan_[i].id(); }
  Result<bool> measure(std::size_t i, StateWriter* state) override {
    const VariantTimes times = measurer_.measure(plan_[i], limit_);
    if (state) write_point(*state, plan_[i], times);
    return true;
  }

 private:
  const std::vector<CollectivePoint> plan_;
  const double limit_;
  CollectiveMeasurer measurer_;
};

void measure_points(PointSet& points, const MeasureOptions& options, const JobTopology& place,
                    const std::string& configuration) {
  if (place.rank != 0) return measure_together(points, nullptr);
  const CollectiveSetting setting = setting_of(place);
  CollectivesState before =
      options.restart ? CollectivesState{} : read_collectives_state(options.state, configuration, &setting);
  auto state = StateWriter::open(options.state, collectives_subject(configuration, setting), before.done.empty());
  if (!state) throw std::runtime_error(state.error().text);
  PointRun run({&points}, std::move(before.done), std::move(*state), options.budget_s);
  measure_together(points, &run);
  run.end();
}

/// False if there are no rails to compare; the reason is printed.
bool has_rails(const MeasureOptions& options, const JobTopology& place) {
  const bool prints = place.rank == 0;
  if (options.rails == "off") {
    const Result<Rails> found = rails_of_all_hosts(options.candidates, place);
    if (prints && found) print_event("rails %s", list_of(*found).c_str());
    if (prints && !found) print_event("no-rails %s", found.error().text.c_str());
    return static_cast<bool>(found);
  }
  const Result<Rails> rails = rails_of_list(options.rails);
  const Result<bool> taken = rails ? all_ranks_have(*rails, place) : Result<bool>(rails.error());
  if (prints && !taken) print_event("no-rails %s", taken.error().text.c_str());
  return static_cast<bool>(taken);
}

void print_nothing_measured(const JobTopology& place) {
  if (place.rank == 0) print_event("end 0 0 0");
}

}  // namespace

void measure_collectives(const MeasureOptions& options, const JobTopology& place, const std::string& configuration) {
  const bool links = options.part == MeasuredPart::links;
  int possible = links || preloaded();
  PMPI_Allreduce(MPI_IN_PLACE, &possible, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (place.rank == 0) print_event("preload %s", preloaded() ? "yes" : "no");
  if (place.topology.nodes() < 2 || !possible) return print_nothing_measured(place);
  const double limit = options.quick() ? 0.1 : 0.5;  // of a point, in seconds
  if (links) {
    LinkPoints points(place, limit, options.quick() ? 3 : 7);
    return measure_points(points, options, place, configuration);
  }
  CollectivePoints points(make_collective_plan(options.quick()), limit);
  measure_points(points, options, place, configuration);
}

void measure_exchange(const MeasureOptions& options, const JobTopology& place) {
  if (place.topology.nodes() < 2 || !has_rails(options, place)) return print_nothing_measured(place);
  const int rounds = options.quick() ? 3 : 5;
  const double start = PMPI_Wtime();
  reach_all(place);
  NodeExchange exchange(place);
  const std::int64_t bytes = options.bytes > 0 ? options.bytes : exchange.enough_bytes();
  if (place.rank == 0) print_event("bytes %lld", static_cast<long long>(bytes));
  exchange.seconds(bytes);
  for (int round = 0; round < rounds; ++round) {
    std::string line = "exchange";
    for (double seconds : exchange.seconds(bytes)) line += " " + std::to_string(seconds);
    if (place.rank == 0) print_event("%s", line.c_str());
  }
  if (place.rank == 0) print_event("end %d 0 %.1f", rounds, PMPI_Wtime() - start);
}

}  // namespace bestride::inline perfmodel
