// SPDX-License-Identifier: Apache-2.0
#pragma once
// CollectiveChooser: decides whether a collective goes through the hierarchy or is left to the MPI library.
//
// All members of a communicator must make the same decision, or the job hangs. So a decision depends only on its
// arguments and on a CollectiveParameters that rank 0 makes and sends to all members once, when the communicator is
// first used. It does not depend on a clock, the environment, a file, or arithmetic whose last bit depends on the CPU.
#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "perfmodel/collective/link_probe.hpp"
#include "perfmodel/collective/measurements.hpp"

namespace bestride::inline perfmodel {

/// BESTRIDE_COLLECTIVES. automatic: the prediction decides; library: never hierarchical; hierarchical: wherever there
/// is more than one node.
enum class CollectiveMode : std::uint32_t { automatic, library, hierarchical };
/// "auto", "library", "hierarchical"; any other text gives automatic.
CollectiveMode collective_mode(std::string_view text) noexcept;

/// Measured time over predicted time at the points of one CollectiveSetting; 0 if not measured.
struct CollectiveCorrections {
  std::int32_t nodes = 0, ranks = 0, max_ranks_per_node = 0, ring_entries = 0;
  CollectiveTable<float> hierarchical{};
  CollectiveTable<float> library{};
  /// Bit i: at size i the hierarchy was not faster than the library; by collective and form (0 nonblocking, 1
  /// blocking).
  std::array<std::array<std::uint32_t, 2>, collective_count> hierarchy_loses{};
};

/// All data that a decision depends on besides the shape. Trivially copyable: it is sent as bytes, between ranks of one
/// byte order and one build of the library, which intact() checks.
struct CollectiveParameters {
  static constexpr std::uint32_t current_version = 5;
  std::uint32_t magic = 0;
  std::uint32_t version = 0;
  LinkCosts link{};
  /// `link`, or what this job measured while it started (use_job_link()). It differs a little from run to run, so it
  /// decides only where the hierarchy and the library give the same bits.
  LinkCosts job_link{};
  /// The fraction of the library's time by which the hierarchy must be predicted to be faster. 0.05: the error of the
  /// predictions is about as large, and leaving a call to MPI costs nothing.
  double margin = 0.05;
  CollectiveMode mode = CollectiveMode::automatic;
  std::int32_t settings = 0;  ///< number of valid entries in `corrections`
  std::array<CollectiveCorrections, CollectiveMeasurements::max_settings> corrections{};
  std::uint64_t checksum = 0;  ///< FNV-1a, 64 bit, of all bytes before it

  /// Sets the latency and the time of a byte of `job_link`, and seals, if the link is slower than `link`. One rank
  /// measured, so the rate of one stream also counts as that of all ranks of a node. On a faster link copies decide,
  /// which were not measured, so `link` remains.
  void use_job_link(const LinkSpeed& measured) noexcept;
  bool has_job_link() const noexcept { return job_link.wire_byte_s > link.wire_byte_s; }
  /// Sets magic, version and checksum.
  void seal() noexcept;
  /// True if the parameters were sealed by the same version, are unchanged since, and have values that allow a
  /// prediction. If false, leave everything to the library; all members have the same bytes and so decide the same.
  bool intact() const noexcept;
};
static_assert(std::is_trivially_copyable_v<CollectiveParameters> && sizeof(CollectiveParameters) < 4096);

/// The parameters made from a profile's measurements, sealed.
CollectiveParameters parameters_of(const CollectiveMeasurements& measured,
                                   CollectiveMode mode = CollectiveMode::automatic) noexcept;

struct CollectiveChoice {
  bool hierarchical = false;
  /// The hierarchy saves bytes on the link or overlaps sums, or was measured with such ranks. Otherwise a prediction
  /// does not decide for it. False on one node and with CollectiveMode::library.
  bool has_advantage = false;
  double hierarchical_s = 0, library_s = 0;  ///< predicted seconds
  std::int64_t chunk_bytes = 0;              ///< of each rank's slice, with the hierarchy
  int in_flight = 0;                         ///< concurrent sends of a rank
};

/// Immutable; 3.4 KiB.
class CollectiveChooser {
 public:
  /// If `parameters` are not intact(), everything is left to the library.
  explicit CollectiveChooser(const CollectiveParameters& parameters) noexcept
      : parameters_(parameters), usable_(parameters.intact()) {}
  /// Pure: the same on every member. No allocation, no lock; under 1 us. Never hierarchical on one node. `exact`: the
  /// hierarchy and the library give bitwise equal results. Otherwise the choice depends only on the profile, so that a
  /// job gives the same bits in every run.
  CollectiveChoice choose(const CollectiveShape& shape, bool exact = true) const noexcept;

 private:
  CollectiveParameters parameters_;
  bool usable_;
};

}  // namespace bestride::inline perfmodel
