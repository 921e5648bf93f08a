// SPDX-License-Identifier: Apache-2.0
#pragma once
// MachineProfile: the curves that `bestride calibrate` measured on one class of machines; read once, then immutable.
//
// The file is versioned, signed JSON (docs/profile.md) and contains the configuration that was measured (CPU, MPI
// library, host class, library version). It is read as a transaction, as FFTW reads wisdom: if one entry is invalid,
// the built-in profile is used. In memory it is one dense array, so a prediction allocates nothing and touches few
// cache lines.
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/mapped_allocator.hpp"
#include "base/result.hpp"
#include "model/distance.hpp"
#include "model/rails.hpp"
#include "perfmodel/collective/measurements.hpp"
#include "perfmodel/collective/one_node_measurements.hpp"
#include "perfmodel/device/costs.hpp"
#include "perfmodel/host/cost_grid.hpp"
#include "perfmodel/host/position.hpp"
#include "perfmodel/host/shape.hpp"
#include "perfmodel/host/strategy.hpp"

namespace bestride::inline perfmodel {

/// The configuration that a profile was measured on.
struct MachineFingerprint {
  std::string cpu;          ///< model name and widest instruction set
  std::string mpi_library;  ///< version, with device; see perfmodel/profile/machine.hpp
  std::string host_class;   ///< cores and caches; not the name of the host
  std::string bestride;     ///< library version
  std::string gpu{};        ///< name and driver version of the GPU; empty: no GPU was measured, or none was looked for
};

/// True if the built-in curves of messages were measured with such an MPI library: MPICH 4.0 over UCX. `mpi_library`:
/// as MachineFingerprint has it.
bool built_in_curves_are_of(std::string_view mpi_library) noexcept;

/// "" if the profile fits this machine and MPI library; else one line that states the difference and the remedy. Empty
/// fields of `profile` (the built-in one) or of `here` (not known yet) are not compared.
std::string why_stale(const MachineFingerprint& profile, const MachineFingerprint& here);

/// A call kind at a distance; each has its own set of curves. MPI_Pack and MPI_Unpack have no distance. Both endpoints
/// of an exchange share a call class.
///
/// A single message and an exchange are measured separately. In a single message, MPI's engines overlap the work of
/// both endpoints, fragment by fragment, which is impossible with a packed message. In an exchange both ranks work all
/// the time, and there is nothing to overlap with. Faces with blocks of 3 doubles, 384 KiB, two ranks: packing gains
/// 1.2 in a single message and 1.6 in an exchange.
///
/// Between ranks whose processors are near each other, only contiguous messages are measured separately: whether they
/// are faster respelled depends on the cache that the ranks share, by a factor of 2 to 3 in both directions. For
/// messages with gaps the classes of `node` apply.
enum class CallClass : std::uint8_t {
  // with grids and curves
  pack,
  unpack,
  send_self,
  send_node,
  send_network,
  receive_self,
  receive_node,
  receive_network,
  exchange_self,
  exchange_node,
  exchange_network,
  // only with curves of contiguous messages
  send_cache,
  send_domain,
  send_socket,
  receive_cache,
  receive_domain,
  receive_socket,
  exchange_cache,
  exchange_domain,
  exchange_socket,
};
inline constexpr int grid_class_count = 11;  ///< classes with grids
inline constexpr int call_class_count = 20;
CallClass call_class_of(CallKind kind, Distance distance) noexcept;
/// The kind of call of a class; of an exchange isend.
CallKind kind_of(CallClass call_class) noexcept;
Distance distance_of(CallClass call_class) noexcept;
inline bool is_exchange(CallClass call_class) noexcept { return kind_of(call_class) == CallKind::isend; }

/// How the bytes are moved. `split` and `unsplit` are the two extremes of an MPI engine: the whole message is one loop
/// or list that fragment boundaries divide, or it consists of many short ones that each fit a fragment. The costs of
/// forward and respell are between the two.
enum class Engine : std::uint8_t { split, unsplit, kernel };
inline constexpr int engine_count = 3;

/// The distance between blocks: twice their length, or at least wide_jump (perfmodel/host/position.hpp).
enum class Spread : std::uint8_t { dense, wide };
inline constexpr int spread_count = 2;

/// Shape classes with grids, in the order of Shape::Class after `contiguous`.
inline constexpr int class_count = 4;

struct GridKey {
  CallClass call_class = CallClass::pack;    ///< a class with grids
  Shape::Class kind = Shape::Class::vector;  ///< not `contiguous`
  Engine engine = Engine::kernel;
  Spread spread = Spread::dense;
  Leaf leaf = Leaf::eight;  ///< always Leaf::eight for `kernel`, which does not depend on it
};
inline constexpr int grid_count = grid_class_count * class_count * engine_count * spread_count * leaf_count;
int grid_index(const GridKey& key) noexcept;
GridKey grid_key(int index) noexcept;
std::string_view name(CallClass) noexcept;
std::string_view name(Engine) noexcept;
std::string_view name(Spread) noexcept;
std::string_view name(Leaf) noexcept;
std::string_view name(Shape::Class) noexcept;

/// How contiguous bytes are passed to MPI: as they are, or as one element with an extent larger than its size, for
/// which the library uses another protocol (datatype/respell.hpp).
enum class ContiguousForm : std::uint8_t { plain, respelled };
inline constexpr int contiguous_form_count = 2;
std::string_view name(ContiguousForm) noexcept;

/// The curves and grids of one machine, NaN where not measured. An aggregate without pointers, so that the built-in
/// profile is a constant. 260 KB: on the heap only as a MappedPtr (base/mapped_allocator.hpp).
struct Measurements {
  std::array<std::array<CostCurve, call_class_count>, contiguous_form_count> contiguous;
  std::array<CostGrid, grid_count> grids;
  /// Set by complete(): vectors and nests of this call class were both measured, so their difference is the cost of
  /// starting inner loops.
  std::array<bool, grid_class_count> nests_scale{};
  /// True if the grids of this (call class, shape class) are the built-in ones. Set by complete(), and in the built-in
  /// profile.
  std::array<std::array<bool, class_count>, grid_class_count> built_in{};

  CostCurve& curve(ContiguousForm form, CallClass call_class) {
    return contiguous[static_cast<std::size_t>(form)][static_cast<std::size_t>(call_class)];
  }
  const CostCurve& curve(ContiguousForm form, CallClass call_class) const {
    return contiguous[static_cast<std::size_t>(form)][static_cast<std::size_t>(call_class)];
  }
  CostGrid& operator[](const GridKey& key) { return grids[static_cast<std::size_t>(grid_index(key))]; }
  const CostGrid& operator[](const GridKey& key) const { return grids[static_cast<std::size_t>(grid_index(key))]; }
};

class MachineProfile {
 public:
  /// The conservative profile for machines without calibration: it selects a strategy other than forward only where all
  /// machines measured so far gain clearly (docs/decisions/built_in_profile.md has the figures).
  static const MachineProfile& built_in() noexcept;

  /// Reads and checks a profile. Errors state the file, the cause and the remedy. Does not compare fingerprints.
  static Result<MachineProfile> load(const std::string& path);
  /// Reads a profile from its image (perfmodel/profile/image.hpp), if it has one: 15 times as fast as load(). The
  /// result has no measured().
  static Result<MachineProfile> load_for_predictions(const std::string& path);
  /// Writes a temporary file next to `path` and renames it, and the same for the image. Creates missing directories.
  Result<bool> save(const std::string& path) const;

  /// Completes the measurements: missing points by interpolation; leaves and spreads that were not measured by the
  /// ratio to those that were; a (call class, class) with too few points from the built-in profile; `network` without
  /// points from `node`, assuming a slow network.
  /// Throws std::bad_alloc.
  static MachineProfile from(const Measurements& measured, MachineFingerprint fingerprint,
                             const DeviceMeasurements& device = {}, CollectiveMeasurements collectives = {});

  /// Seconds of each strategy for one endpoint of a call, transfer included.
  std::array<double, strategy_count> seconds(const Shape&, CallKind, Distance) const noexcept;

  /// Seconds of a contiguous message, or of a copy for the call classes without a message.
  double contiguous_seconds(double bytes, ContiguousForm form, CallClass call_class) const noexcept;

  /// A grid of seconds. For Engine::kernel in the call classes of messages it has the work besides the contiguous
  /// transfer, else the complete time.
  const CostGrid& grid(const GridKey& key) const noexcept { return (*curves_)[key]; }
  /// True if the prediction for such a shape is the built-in one, which describes the libraries of
  /// built_in_curves_are_of().
  bool predicts_by_built_in(Shape::Class kind, CallKind call, Distance distance) const noexcept;
  /// What was measured. Only of a profile from load() or from().
  const Measurements& measured() const noexcept { return *measured_; }
  /// Costs of device memory; the built-in costs if they were not measured.
  const DeviceCosts& device() const noexcept { return device_ ? *device_ : DeviceCosts::built_in(); }
  /// The measurements of collectives between nodes, as parameters_of() takes them; empty if there are none.
  const CollectiveMeasurements& collectives() const noexcept { return collectives_; }

  MachineFingerprint fingerprint;
  OneNodeMeasurements one_node;  ///< of collectives within one node, as limits_of() takes them
  Rails rails;  ///< NICs that are faster than the MPI library's own choice if each local rank uses one; empty: no such
                ///< NICs were found
  /// The least number of bytes of a contiguous message that is faster respelled between ranks at a near distance
  /// (Chooser::respell_contiguous_from() with which the file was written); 0: none is. In the file, so that a process
  /// that gains nothing need not decode the curves.
  std::int64_t respell_contiguous_from = 0;
  std::string path;  ///< the file that it was read from; empty: built in

 private:
  /// `curves`: complete.
  explicit MachineProfile(const Measurements* curves) noexcept : curves_(curves) {}
  MachineProfile(MappedPtr<Measurements> curves, MachineFingerprint print, const DeviceMeasurements& device,
                 CollectiveMeasurements collectives);
  MappedPtr<Measurements> measured_;
  MappedPtr<Measurements> filled_;     ///< null: built in
  const Measurements* curves_;         ///< complete
  std::optional<DeviceCosts> device_;  ///< none: built in
  CollectiveMeasurements collectives_;
};

/// BESTRIDE_PROFILE, else ~/.config/bestride/profile.json, else /etc/bestride/profile.json: the first that exists; ""
/// if none does. A BESTRIDE_PROFILE that does not exist is returned, too, so that load() reports it.
std::string find_profile_path();
/// False if the profile has no rails. Found without decoding it (0.1 ms instead of 6). True also if it can't be read,
/// so that load() reports the cause.
bool profile_may_have_rails(const std::string& path);
/// The file's respell_contiguous_from, found without decoding it; 0 also if the file can't be read.
std::int64_t respell_contiguous_from(const std::string& path);
/// The file that `bestride calibrate` writes, which is the first that find_profile_path() looks for: BESTRIDE_PROFILE,
/// else ~/.config/bestride/profile.json, or below XDG_CONFIG_HOME; "" if there is no home directory.
std::string profile_path_to_write();

}  // namespace bestride::inline perfmodel
