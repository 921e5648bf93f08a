// SPDX-License-Identifier: Apache-2.0
#pragma once
// CollectiveChooser: whether a collective goes through the hierarchy or is left to the MPI library; and whether that does a blocking one in its
// nonblocking form, which is tested until it ends.
//
// All members of a communicator must decide alike, or the job hangs. So a decision depends on nothing but its arguments and a
// CollectiveParameters, and those are rank 0's: handed to all members once, when the communicator is first looked at. No clock, no
// environment, no file, and no arithmetic whose last bit depends on the CPU.
#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "perfmodel/collective_measurements.hpp"

namespace bestride {

/// BESTRIDE_COLLECTIVES: the prediction decides; never; wherever there is more than one node.
enum class CollectiveMode : std::uint32_t { automatic, library, hierarchical };
/// "auto", "library", "hierarchical"; anything else: automatic.
CollectiveMode collective_mode(std::string_view text) noexcept;

/// Measured over predicted time at the points of one CollectiveSetting; 0 where nothing was measured.
struct CollectiveCorrections {
  std::int32_t nodes = 0, ranks = 0, most_on_a_node = 0, ring_entries = 0;
  CollectiveTable<float> hierarchical{};
  CollectiveTable<float> library{};
  /// Of the library's nonblocking form, tested until it ends; over what is predicted of its blocking one. 0 where it was not measured.
  BlockingTable<float> tested{};
  std::array<std::uint16_t, collective_count> tested_pays{};  ///< bit i: at size i that form was the faster one
  /// By collective and form, bit i: at size i the hierarchy was not faster than the better of the library's forms.
  std::array<std::array<std::uint8_t, 2>, collective_count> hierarchy_loses{};
};

/// Everything a decision depends on besides the shape. Plain bytes: send it as it is (between ranks of one byte order and one build of the
/// library, which intact() finds out).
struct CollectiveParameters {
  static constexpr std::uint32_t current_version = 3;
  std::uint32_t magic = 0;
  std::uint32_t version = 0;
  LinkCosts link{};
  /// By what part of the library's time the hierarchy must be predicted faster. 0.05: the predictions err by about as much, and leaving a
  /// call to MPI can't lose.
  double margin = 0.05;
  CollectiveMode mode = CollectiveMode::automatic;
  std::int32_t settings = 0;  ///< of `corrections`, how many are used
  std::array<CollectiveCorrections, CollectiveMeasurements::most_settings> corrections{};
  std::uint64_t checksum = 0;  ///< FNV-1a, 64 bit, of all bytes before it

  /// Sets magic, version and checksum.
  void seal() noexcept;
  /// Sealed by the same version, unchanged since, and of values a prediction can be made of. Else leave everything to the library: all
  /// members see the same bytes and so do the same.
  bool intact() const noexcept;
};
static_assert(std::is_trivially_copyable_v<CollectiveParameters> && sizeof(CollectiveParameters) < 4096);

/// Of a profile's measurements. Sealed.
CollectiveParameters parameters_of(const CollectiveMeasurements& measured, CollectiveMode mode = CollectiveMode::automatic) noexcept;

struct CollectiveChoice {
  bool hierarchical = false;
  bool tested = false;  ///< else the library does a blocking call in its nonblocking form, tested until it ends
  double hierarchical_s = 0, library_s = 0;  ///< predicted seconds
  double tested_s = 0;                       ///< 0: nothing near was measured
  std::int64_t chunk_bytes = 0;              ///< of each rank's slice, with the hierarchy
  int in_flight = 0;                         ///< sends of a rank at a time
};

/// Immutable; 4 KiB.
class CollectiveChooser {
 public:
  /// `parameters` that are not intact(): everything is left to the library.
  explicit CollectiveChooser(const CollectiveParameters& parameters) noexcept : parameters_(parameters), usable_(parameters.intact()) {}
  /// Pure: the same on every member. No allocation, no lock; under 1 us. On one node never hierarchical. `may_test`: the library's two forms give the
  /// same bits.
  CollectiveChoice choose(const CollectiveShape& shape, bool may_test = true) const noexcept;
  const CollectiveParameters& parameters() const noexcept { return parameters_; }

 private:
  CollectiveParameters parameters_;
  bool usable_;
};

}  // namespace bestride
