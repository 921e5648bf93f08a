// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/common/point_run.hpp"

#include "perfmodel/calibrate/common/events.hpp"

namespace bestride::inline perfmodel {
namespace {

constexpr int max_attempts = 3;

}  // namespace

PointRun::PointRun(const std::vector<const PointSet*>& plan, std::set<std::string> done, StateWriter state,
                   double budget_s)
    : done_(std::move(done)), state_(std::move(state)), budget_s_(budget_s) {
  std::size_t points = 0;
  for (const PointSet* set : plan) {
    points += set->size();
    for (std::size_t i = 0; i < set->size(); ++i) known_ += done_.count(set->id(i)) > 0;
  }
  print_event("plan %zu %d", points, known_);
}

std::string PointRun::measure(PointSet& points, double share, const std::function<void(std::size_t)>& on_point) {
  std::string error;
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (!done_.count(points.id(i))) missing.push_back(i);
  // A disturbed point is measured again at the end, when the machine may be less busy.
  for (int attempt = 0; attempt < max_attempts && !missing.empty(); ++attempt) {
    std::vector<std::size_t> again;
    for (std::size_t i : missing) {
      if (!error.empty() || (seconds() > share * budget_s_ && !points.required(i))) {
        again.push_back(i);
        continue;
      }
      print_event("at %d %s", known_ + measured_ + 1, points.text(i).c_str());
      on_point(i);
      const Result<bool> stored = points.measure(i, &state_);
      if (!stored) error = stored.error().text;
      if (stored && *stored)
        ++measured_;
      else
        again.push_back(i);
    }
    missing = std::move(again);
  }
  left_out_ += static_cast<int>(missing.size());
  return error;
}

void PointRun::end() const { print_event("end %d %d %.1f", measured_, left_out_, seconds()); }

double PointRun::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

}  // namespace bestride::inline perfmodel
