// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runtime: the state of the backend from the first MPI call to MPI_Finalize. One per process, created in
// bestride_backend_open and never destroyed: MPI may be called from destructors of other libraries.
//
// It has a fixed address, so an entry reaches a table with one load. Alternative considered: std::unique_ptr, which
// costs one more load per call.
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "interpose/objects/buffer_pool.hpp"
#include "interpose/objects/comm_registry.hpp"
#include "interpose/objects/op_registry.hpp"
#include "interpose/objects/request_completion.hpp"
#include "interpose/objects/request_table.hpp"
#include "interpose/objects/respelled_types.hpp"
#include "interpose/objects/served_types.hpp"
#include "interpose/objects/type_registry.hpp"
#include "interpose/peers/locality.hpp"
#include "interpose/peers/participants.hpp"
#include "interpose/peers/peer_discovery.hpp"
#include "interpose/report/tally.hpp"
#include "model/processor_groups.hpp"
#include "perfmodel/choose/chooser.hpp"
#include "perfmodel/collective/one_node.hpp"
#include "perfmodel/profile/profile.hpp"

namespace bestride::inline interpose {

/// The settings that a call may need, read once: no lookup by name on a hot path.
struct RuntimeOptions {
  std::optional<Strategy> forced;
  std::int64_t pack_limit = 0;
  bool paranoid = false;
  bool reporting = false;
  enum class AllRanks : unsigned char {
    no,
    yes,
    find_out
  } all_ranks = AllRanks::no;  ///< whether every rank has the preload, according to the user
  PackerOptions packer;
  static RuntimeOptions from_settings();
};

/// When contiguous messages may be respelled.
struct ContiguousRule {
  std::int64_t from = INT64_MAX;  ///< least number of bytes for which it may pay off; INT64_MAX: never
  ProcessorGroups groups;         ///< of this process; unknown if no decision depends on them
  bool gains_if_bound = false;    ///< not respelled only because this process is not bound
};

class Runtime {
 public:
  /// May throw.
  Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const RuntimeOptions& options() const noexcept { return options_; }
  /// The machine's profile; nullptr: there is none that is valid, which rank 0 reports. Read at the first call, because
  /// that takes 6 ms and many programs never need it.
  const MachineProfile* loaded_profile() const noexcept;
  /// The MPI library, as far as what is built in distinguishes it.
  OneNodeLibrary library() const noexcept { return library_; }
  /// False if the built-in profile was measured with another MPI library.
  bool library_known() const noexcept { return library() == OneNodeLibrary::mpich_4_0; }
  /// The chooser that predicts by loaded_profile(), else by the built-in profile.
  Chooser chooser() const noexcept;
  const Locality& locality() const noexcept { return locality_; }
  PeerDiscovery& peers() noexcept { return peer_discovery_; }
  /// True after MPI_Finalize or the end of the last session, whichever comes later. The backend must then make no MPI
  /// call of its own.
  bool ended() const noexcept { return ended_.load(std::memory_order_relaxed); }
  /// True while MPI_COMM_SELF exists: from MPI_Init to its end in MPI_Finalize.
  bool in_world() const noexcept { return initialized_.load() && !finalized_.load(); }

  TypeDefinitions definitions;
  ServedTypes served;
  TypeRegistry types;
  CommRegistry comms;
  OpRegistry ops;
  RespelledTypes spelled;
  RequestTable<MPI_Request, Completion> requests;
  BufferPool pool;
  Tally tally;

  /// The distance to a peer. It is a near one only if the machine's profile says that contiguous messages gain there.
  Distance distance(MPI_Comm comm, int peer) const noexcept {
    if (CommEntry* known = comms.find(comm)) return known->to(peer);
    return locality_.one_host() ? Distance::node : Distance::network;
  }

  /// True if the fragments of the MPI library's messages are packed by the engine (interpose/engine/).
  bool has_engine() const noexcept { return engine_; }
  /// True if every rank is known to have the preload and to take part in Bestride's own collectives; the same on all of
  /// them.
  bool all_ranks_take_part() const noexcept { return participants_.all().all_ranks; }
  /// Least number of contiguous bytes for which respelling a message may pay off; INT64_MAX: never.
  std::int64_t respell_contiguous_from() const noexcept { return contiguous_.from; }

  /// The communicator for comparisons with MPI's own packing. Errors on it are returned. MPI_COMM_NULL unless
  /// BESTRIDE_PARANOID is set.
  MPI_Comm paranoid_comm() const noexcept { return paranoid_comm_; }

 private:
  friend class Lifetime;
  /// Inserts the pair types: they have gaps, and since they are predefined they are never committed.
  void insert_pair_types() noexcept;
  void forget_handles() noexcept;

  RuntimeOptions options_;
  const OneNodeLibrary library_;
  mutable std::once_flag profile_read_;
  mutable std::optional<MachineProfile> loaded_;
  ContiguousRule contiguous_;
  Locality locality_;
  PeerDiscovery peer_discovery_;
  Participants participants_;
  bool engine_ = false;  ///< written before the first use of a type
  MPI_Comm paranoid_comm_ = MPI_COMM_NULL;
  double start_time_ = 0;
  std::atomic<int> sessions_{0};
  std::atomic<bool> initialized_{false};
  bool ends_with_comm_self_ = false;     ///< the end of MPI_COMM_SELF will be observed; written in MPI_Init
  std::atomic<bool> finalizing_{false};  ///< MPI_Finalize was called
  std::atomic<bool> finalized_{false};   ///< MPI_COMM_SELF has ended
  std::atomic<bool> ended_{false};
};

/// Storage that is neither constructed before bestride_backend_open nor destroyed at exit.
union RuntimeStorage {
  constexpr RuntimeStorage() noexcept : nothing{} {}
  ~RuntimeStorage() {}
  char nothing;
  Runtime runtime;
};
extern constinit RuntimeStorage runtime_storage;
inline Runtime& runtime() noexcept { return runtime_storage.runtime; }

}  // namespace bestride::inline interpose
