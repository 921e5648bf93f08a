// SPDX-License-Identifier: Apache-2.0
#pragma once
// MachineProfile: what `bestride calibrate` measured on one class of machines, as curves; read once, then immutable.
//
// In the file: versioned JSON (docs/profile.md), signed, with the configuration it was measured under (CPU, MPI library, host
// class, library version). Read as a transaction, as FFTW reads wisdom: one bad entry and the built-in profile stands.
// In memory: one dense array, so that a prediction allocates nothing and touches a few lines.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/distance.hpp"
#include "model/rails.hpp"
#include "perfmodel/collective_measurements.hpp"
#include "perfmodel/cost_grid.hpp"
#include "perfmodel/device_costs.hpp"
#include "perfmodel/position.hpp"
#include "perfmodel/shape.hpp"
#include "perfmodel/strategy.hpp"

namespace bestride {

/// What a profile was measured on.
struct MachineFingerprint {
  std::string cpu;          ///< model name and widest instruction set
  std::string mpi_library;  ///< version, with device; see perfmodel/machine.hpp
  std::string host_class;   ///< cores, caches; not the host's name
  std::string bestride;     ///< library version
  std::string gpu{};        ///< name and driver version of the GPU; empty: none was measured, or none was looked for
};

/// "" if the profile fits this machine and MPI, else one line: what differs and what to do. An empty field of `profile` (the
/// built-in one) or of `here` (not known yet) is not compared.
std::string why_stale(const MachineFingerprint& profile, const MachineFingerprint& here);

/// A call kind at a distance: one set of curves. MPI_Pack and MPI_Unpack know no distance; both sides of an exchange share one.
///
/// One message alone and an exchange are two experiments, because MPI's engines overlap the two sides' work on one message,
/// fragment by fragment, which a packed one can't; in an exchange both ranks work all the time and nothing is left to overlap.
/// Faces of 3 doubles a block, 384 KiB, two ranks: alone, packing gains 1.2; exchanged, 1.6.
enum class Lane : std::uint8_t {
  pack, unpack, send_self, send_node, send_network, receive_self, receive_node, receive_network,
  exchange_self, exchange_node, exchange_network,
};
inline constexpr int lane_count = 11;
constexpr bool is_exchange(Lane lane) noexcept { return lane >= Lane::exchange_self; }
Lane lane_of(CallKind kind, Distance distance) noexcept;
/// Of an exchange: isend.
CallKind kind_of(Lane lane) noexcept;
Distance distance_of(Lane lane) noexcept;

/// How the bytes are moved. `broken` and `whole` are the two ends of what an MPI engine does with a message: all in one loop
/// or list, which fragments break, or many short ones that each fit a fragment. Forward and respell both lie between them.
enum class Engine : std::uint8_t { broken, whole, kernel };
inline constexpr int engine_count = 3;

/// How far apart the blocks lie: twice their length, or at least wide_jump (perfmodel/position.hpp).
enum class Spread : std::uint8_t { dense, wide };
inline constexpr int spread_count = 2;

/// Shape classes with grids, in the order of Shape::Class after `contiguous`.
inline constexpr int class_count = 4;

struct GridKey {
  Lane lane = Lane::pack;
  Shape::Class kind = Shape::Class::vector;  ///< not contiguous
  Engine engine = Engine::kernel;
  Spread spread = Spread::dense;
  Leaf leaf = Leaf::eight;  ///< `kernel` does not depend on it: Leaf::eight
};
inline constexpr int grid_count = lane_count * class_count * engine_count * spread_count * leaf_count;
int grid_index(const GridKey& key) noexcept;
GridKey grid_key(int index) noexcept;
std::string_view name(Lane) noexcept;
std::string_view name(Engine) noexcept;
std::string_view name(Spread) noexcept;
std::string_view name(Leaf) noexcept;
std::string_view name(Shape::Class) noexcept;

/// How contiguous bytes are handed to MPI: as they are, or as one element with an extent larger than its size, which sends
/// them another way through the library (datatype/respell.hpp).
enum class Wire : std::uint8_t { plain, respelled };
inline constexpr int wire_count = 2;
std::string_view name(Wire) noexcept;

/// What was measured, with NaN where nothing was: what calibration collects and the file keeps.
struct Measurements {
  Measurements() : Measurements(grid_count) {}
  explicit Measurements(int grid_number) : grids(static_cast<std::size_t>(grid_number)) {}
  std::array<std::array<CostCurve, lane_count>, wire_count> contiguous;
  CostCurve& curve(Wire wire, Lane lane) { return contiguous[static_cast<std::size_t>(wire)][static_cast<std::size_t>(lane)]; }
  const CostCurve& curve(Wire wire, Lane lane) const { return contiguous[static_cast<std::size_t>(wire)][static_cast<std::size_t>(lane)]; }
  std::vector<CostGrid> grids;
  /// By complete(): vectors and nests of this lane were both measured, so their difference is the cost of starting inner loops.
  std::array<bool, lane_count> nests_scale{};
  CostGrid& operator[](const GridKey& key) { return grids[static_cast<std::size_t>(grid_index(key))]; }
  const CostGrid& operator[](const GridKey& key) const { return grids[static_cast<std::size_t>(grid_index(key))]; }
};

class MachineProfile {
 public:
  /// The conservative profile used without calibration: it takes a strategy other than forward only where every machine
  /// measured so far gains clearly (docs/strategies.md has the figures).
  static const MachineProfile& built_in() noexcept;

  /// Reads and checks a profile. Errors name the file, the cause and the remedy. Does not compare fingerprints.
  static Result<MachineProfile> load(const std::string& path);
  /// Writes to a temporary file beside `path` and renames it. Creates missing folders.
  Result<bool> save(const std::string& path) const;

  /// Completes the measurements: holes by interpolation; leaves, spreads that were left out by the ratio to those that were
  /// not; a (lane, class) without a minimum of points by the built-in; `network` without points from `node`, assuming a slow wire.
  static MachineProfile from(Measurements measured, MachineFingerprint fingerprint, DeviceMeasurements device = {},
                             CollectiveMeasurements collectives = {});

  /// Seconds for one side of a call, transfer included, of each strategy.
  std::array<double, strategy_count> seconds(const Shape&, CallKind, Distance) const noexcept;

  /// Seconds of a contiguous message, or of a copy for the lanes without one.
  double contiguous_seconds(double bytes, Wire wire, Lane lane) const noexcept;

  /// Of Engine::kernel in the lanes of messages: the work beside the contiguous transfer. Else everything.
  const CostGrid& grid(const GridKey& key) const noexcept { return filled_.grids[static_cast<std::size_t>(grid_index(key))]; }
  const Measurements& measured() const noexcept { return measured_; }
  /// Of memory on the GPU. The built-in costs, where none was measured.
  const DeviceCosts& device() const noexcept { return device_; }
  /// Of collectives between nodes, as parameters_of() takes them. Nothing, where none was measured.
  const CollectiveMeasurements& collectives() const noexcept { return collectives_; }

  MachineFingerprint fingerprint;
  Rails rails;       ///< NICs that are faster than the MPI library's own choice if each local rank takes one; empty: none were measured to be
  std::string path;  ///< where it was read from; empty: built in

 private:
  friend MachineProfile make_built_in();
  explicit MachineProfile(int grid_number = grid_count) : measured_(grid_number), filled_(grid_number) {}
  Measurements measured_;
  Measurements filled_;
  DeviceCosts device_ = DeviceCosts::built_in();
  CollectiveMeasurements collectives_;
};

/// BESTRIDE_PROFILE, else ~/.config/bestride/profile.json, else /etc/bestride/profile.json: the first that exists; "" if none.
/// A BESTRIDE_PROFILE that does not exist is returned all the same, so that load() says so.
std::string find_profile_path();
/// Where `bestride calibrate` writes: ~/.config/bestride/profile.json, or below XDG_CONFIG_HOME; "" if there is no home.
std::string user_profile_path();

}  // namespace bestride
