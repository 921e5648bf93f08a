// SPDX-License-Identifier: Apache-2.0
#pragma once
// Chooser: predicts the time of each strategy for a shape, call kind and distance, and takes the fastest.
//
// A choice is a pure function of its arguments and the profile: no allocation, no lock, no system call; at most 200 ns.
// Callers cache the answer (interpose/ keeps it in the plan of a (type, count)) and look it up themselves.
#include <array>
#include <initializer_list>

#include "model/distance.hpp"
#include "perfmodel/choose/device_choice.hpp"
#include "perfmodel/host/shape.hpp"
#include "perfmodel/host/strategy.hpp"
#include "perfmodel/profile/profile.hpp"

namespace bestride::inline perfmodel {

/// The strategies that may be chosen. respell needs a respellable() layout. pack needs memory for a copy and, on a
/// sender, bytes that any receiver can unpack (interpose/objects/plan.cpp).
struct Allowed {
  bool respell = false;
  bool pack = true;
};

struct Choice {
  Strategy strategy = Strategy::forward;
  /// Predicted seconds for each strategy; infinity if not allowed. For one endpoint of the call, transfer included.
  std::array<double, strategy_count> seconds{};
};

/// The cost of a strategy besides the bytes that it moves. It is not in the profile, because it belongs to this library
/// and not to the machine. For a message: a buffer from the pool and an entry in the table of requests (pack, 80 ns), a
/// type from the plan (respell, 20 ns). In an exchange, for both endpoints together, this data is no longer in the
/// caches (pack, 1500 ns; respell, 300 ns: the twelve edges and eight corners of a cube, sent to the rank itself after
/// a sweep over the domain, took 0.8 us more each when packed than when forwarded with all look-ups).
double overhead_seconds(Strategy strategy, CallKind kind) noexcept;

class Chooser {
 public:
  /// A strategy other than forward is taken for a message only if it is predicted to be faster by this fraction. The
  /// model's error is about as large where blocks are long (bench/run_messages: blocks of 256 B and more gain at most
  /// 1.3), and leaving the call to MPI costs nothing.
  static constexpr double default_margin = 0.2;
  /// MPI_Pack and MPI_Unpack are local to one process, and their prediction is more accurate.
  static constexpr double local_margin = 0.03;
  /// The profile must outlive the chooser. `library_known`: the built-in curves are of the MPI library that is used
  /// (built_in_curves_are_of). If they are not, where the profile has no other curves, messages are left to MPI or, in
  /// the region where every measured library gained clearly, packed.
  explicit Chooser(const MachineProfile& profile, double margin = default_margin, bool library_known = true) noexcept
      : profile_(&profile), margin_(margin), library_known_(library_known) {}
  /// The fraction of forward's time by which another strategy must be predicted to be faster.
  double margin(const Shape& shape, CallKind kind, Distance distance) const noexcept;
  /// Between ranks at a near distance, layouts with gaps are treated as at Distance::node.
  Choice choose(const Shape& shape, CallKind kind, Distance distance, Allowed allowed) const noexcept;
  /// The transfer method for a layout in memory that a GPU moves. Pure, with the same limits as choose().
  DeviceChoice choose_device(const Shape& shape, CallKind kind, Distance distance,
                             const DeviceAllowed& allowed) const noexcept;
  /// The form in which a packed buffer, or any contiguous bytes, are passed to MPI: forward (as bytes) or respell (as
  /// an equivalent datatype). The prediction for Strategy::pack assumes this form.
  Strategy contiguous_strategy(std::int64_t bytes, CallKind kind, Distance distance) const noexcept;
  /// The size of the shortest contiguous message, to within an eighth, that is faster respelled at one of the
  /// distances; 0: none.
  std::int64_t respell_contiguous_from(std::initializer_list<Distance> distances) const noexcept;
  const MachineProfile& profile() const noexcept { return *profile_; }

 private:
  const MachineProfile* profile_;
  double margin_;
  bool library_known_;
};

}  // namespace bestride::inline perfmodel
