// SPDX-License-Identifier: Apache-2.0
#pragma once
// Chooser: predicts each strategy's time for a shape, call kind and distance, and takes the least.
//
// A choice is a pure function of its arguments and the profile: no allocation, no lock, no system call; at most 200 ns.
// Callers cache the answer (interpose keeps it in the plan of a (type, count)); the cached look-up is theirs.
#include <array>

#include "model/distance.hpp"
#include "perfmodel/device_choice.hpp"
#include "perfmodel/profile.hpp"
#include "perfmodel/shape.hpp"
#include "perfmodel/strategy.hpp"

namespace bestride {

/// What may be chosen here: respell needs a respellable() layout; pack needs memory for a copy, and a receiver that surely gets
/// what is sent packed (interpose/back/plan.cpp).
struct Allowed {
  bool respell = false;
  bool pack = true;
};

struct Choice {
  Strategy strategy = Strategy::forward;
  /// Predicted seconds per strategy; infinity where not allowed. An estimate of one side of the call, transfer included.
  std::array<double, strategy_count> seconds{};
};

/// What a strategy costs around the bytes it moves and no profile contains, because it is ours and not the machine's: for a
/// message a buffer from the pool and the request's side table (pack, 80 ns), a type from the plan (respell, 20 ns). In an
/// exchange, both sides together, all of that has left the caches since the last one (pack, 1500 ns; respell, 300 ns: the twelve
/// edges and eight corners of a cube, sent to itself after a sweep over the domain, took 0.8 us more each when packed than when
/// forwarded with all our look-ups).
double overhead_seconds(Strategy strategy, CallKind kind) noexcept;

class Chooser {
 public:
  /// Another strategy must be predicted this much faster than forward to be taken for a message: the model errs by about as much
  /// where blocks are long (bench/run_messages: blocks of 256 B and more gain at most 1.3), and "leave it to MPI" can't lose.
  static constexpr double default_margin = 0.2;
  /// MPI_Pack and MPI_Unpack are one process's work and predicted better.
  static constexpr double local_margin = 0.03;
  /// The profile must outlive the chooser.
  explicit Chooser(const MachineProfile& profile, double margin = default_margin) noexcept : profile_(&profile), margin_(margin) {}
  /// By what part of forward's time another strategy must be predicted faster to be taken.
  double margin(const Shape& shape, CallKind kind, Distance distance) const noexcept;
  Choice choose(const Shape& shape, CallKind kind, Distance distance, Allowed allowed) const noexcept;
  /// The way of a layout in memory a GPU moves. The same promises.
  DeviceChoice choose_device(const Shape& shape, CallKind kind, Distance distance, const DeviceAllowed& allowed) const noexcept;
  /// How to hand a packed buffer, or any contiguous bytes, to MPI: forward (as bytes) or respell. seconds() of Strategy::pack
  /// counts on it.
  Strategy wire(std::int64_t bytes, CallKind kind, Distance distance) const noexcept;
  const MachineProfile& profile() const noexcept { return *profile_; }

 private:
  const MachineProfile* profile_;
  double margin_;
};

}  // namespace bestride
