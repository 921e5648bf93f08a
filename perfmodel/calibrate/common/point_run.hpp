// SPDX-License-Identifier: Apache-2.0
#pragma once
// PointRun: measures the points of a plan in order, until a time limit, and stores them in the state file. Does not use
// MPI.
#include <chrono>
#include <cstddef>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "perfmodel/calibrate/common/state_file.hpp"

namespace bestride::inline perfmodel {

/// Points that are measured one after the other.
class PointSet {
 public:
  virtual ~PointSet() = default;
  virtual std::size_t size() const = 0;
  virtual std::string id(std::size_t i) const = 0;
  /// The point in words, for the progress bar.
  virtual std::string text(std::size_t i) const { return id(i); }
  /// True if the point is measured even after the time limit, because the others can't be used without it.
  virtual bool required(std::size_t) const { return false; }
  /// Measures a point and, unless `state` is null, stores it. False if the point was disturbed in every sample and
  /// should be measured again. After an error no further point can be measured.
  virtual Result<bool> measure(std::size_t i, StateWriter* state) = 0;
};

class PointRun {
 public:
  /// `done`: ids of points that an earlier run measured. `budget_s`: the time limit, in seconds from now. Prints the
  /// event `plan`.
  PointRun(const std::vector<const PointSet*>& plan, std::set<std::string> done, StateWriter state, double budget_s);
  /// Measures the points of one set that are not done, until `share` of the time limit has passed. Calls `on_point`
  /// before each point and prints the event `at`. Returns the error that ended the set early; "" if there was none.
  std::string measure(PointSet& points, double share, const std::function<void(std::size_t)>& on_point);
  int measured() const noexcept { return measured_; }
  int left_out() const noexcept { return left_out_; }
  /// Prints the event `end`.
  void end() const;

 private:
  double seconds() const;

  const std::set<std::string> done_;
  StateWriter state_;
  const double budget_s_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  int known_ = 0, measured_ = 0, left_out_ = 0;
};

}  // namespace bestride::inline perfmodel
