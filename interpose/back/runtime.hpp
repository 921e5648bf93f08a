// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runtime: everything this back knows, from the first MPI call to MPI_Finalize. One per process, made in bestride_back_open,
// never destroyed: MPI may be called from other libraries' destructors.
//
// It lies at a fixed address, so that an entry reaches a table with one load; std::unique_ptr would cost one more per call.
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "interpose/back/buffer.hpp"
#include "interpose/back/communicators.hpp"
#include "interpose/back/in_flight.hpp"
#include "interpose/back/locality.hpp"
#include "interpose/back/presence.hpp"
#include "interpose/back/tally.hpp"
#include "interpose/back/types.hpp"
#include "perfmodel/chooser.hpp"
#include "perfmodel/profile.hpp"

namespace bestride {

struct Owed;

/// The settings a call may need, read once: no look-up by name on a hot path.
struct RuntimeOptions {
  std::optional<Strategy> forced;
  std::int64_t pack_limit = 0;
  std::int64_t pool_limit = 0;
  bool paranoid = false;
  bool reporting = false;
  bool respell_contiguous = false;
  bool everywhere = false;  ///< the user says that every rank has the preload
  PackerOptions packer;
  static RuntimeOptions from_settings();
};

class Runtime {
 public:
  /// May throw.
  Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const RuntimeOptions& options() const noexcept { return options_; }
  const Chooser& chooser() const noexcept { return chooser_; }
  const Locality& locality() const noexcept { return locality_; }
  /// True from MPI_Finalize on: nothing of MPI may be called for our own ends any more.
  bool ended() const noexcept { return ended_.load(std::memory_order_relaxed); }

  TypeRegistry types;
  CommRegistry comms;
  InFlight<MPI_Request, Owed> in_flight;
  BufferPool pool;
  Tally tally;

  Distance distance(MPI_Comm comm, int peer) const noexcept {
    if (CommEntry* known = comms.find(comm)) return known->to(peer);
    return locality_.one_host() ? Distance::node : Distance::network;
  }

  /// The peer has the preload and receives packed what may_be_split(). False if not known.
  bool packs_too(MPI_Comm comm, int peer) noexcept {
    if (options_.everywhere) return true;
    CommEntry* known = comms.find(comm);
    return known && presence_.has(known->world_rank(peer));
  }
  /// Others count on this rank to receive packed what may_be_split().
  bool promises_to_receive_packed() const noexcept { return options_.everywhere || presence_.announced(); }
  /// Least number of contiguous bytes that may be worth respelling in a message; INT64_MAX: none is.
  std::int64_t respell_contiguous_from() const noexcept { return respell_contiguous_from_; }

  /// For comparing with MPI's own packing: errors on it are returned. MPI_COMM_NULL unless BESTRIDE_PARANOID is set.
  MPI_Comm paranoid_comm() const noexcept { return paranoid_comm_; }

  /// MPI_Init has returned with success. Only the first call does anything.
  void begin() noexcept;
  /// MPI_Finalize is about to be called. Only the first call does anything.
  void end() noexcept;

  /// A session was made.
  void session_begins() noexcept { sessions_.fetch_add(1, std::memory_order_relaxed); }
  /// A session is about to be finalized. With the last one MPI ends where MPI_Init was not called, and may begin again: what is
  /// known of handles is forgotten, and respelled types of this life are freed now or never.
  void session_ends() noexcept;
  /// Counts the lives of MPI in this process: a handle made in one means nothing in the next.
  std::uint32_t life() const noexcept { return life_.load(std::memory_order_acquire); }

 private:
  void say_what_is_wrong() noexcept;
  /// The pair types: predefined, so never committed, and with gaps.
  void insert_pair_types() noexcept;

  RuntimeOptions options_;
  std::string profile_trouble_;  ///< why there is no loaded profile; empty: there is none to load
  std::optional<MachineProfile> loaded_;
  Chooser chooser_;
  std::int64_t respell_contiguous_from_;
  Locality locality_;
  Presence presence_;
  MPI_Comm report_comm_ = MPI_COMM_NULL;
  MPI_Comm paranoid_comm_ = MPI_COMM_NULL;
  double began_ = 0;
  std::atomic<int> sessions_{0};
  std::atomic<std::uint32_t> life_{0};
  std::atomic<bool> begun_{false};
  std::atomic<bool> ended_{false};
};

/// Storage that is not constructed before bestride_back_open nor destroyed at exit.
union RuntimeStorage {
  constexpr RuntimeStorage() noexcept : nothing{} {}
  ~RuntimeStorage() {}
  char nothing;
  Runtime runtime;
};
extern constinit RuntimeStorage runtime_storage;
inline Runtime& runtime() noexcept { return runtime_storage.runtime; }

}  // namespace bestride
