// SPDX-License-Identifier: Apache-2.0
#pragma once
// The state of one rank that all phases and faults share.
#include <mpi.h>

#include <atomic>
#include <thread>
#include <vector>

#include "companion.hpp"
#include "computation.hpp"
#include "event_log.hpp"
#include "options.hpp"
#include "plan.hpp"

namespace fault_lab {

using Words = std::vector<std::uint64_t>;

struct Job {
  /// Collective over MPI_COMM_WORLD.
  Job(const Options& options, Companion& companion);
  /// Collective; frees the communicators.
  void close();

  /// The fault is of this kind and happens in the current step and phase, on this or another rank.
  bool now(Kind kind) const { return plan.kind == kind && plan.step == step && plan.phase == phase; }
  /// As now(), on this rank; writes the line of the fault.
  bool trigger(Kind kind) const;
  /// The same for one of the two plans.
  bool trigger(const Plan& which) const;

  /// 56 random bits, because MPI_MAX of MPICH 4.0.2 compares MPI_UINT64_T as signed numbers:
  /// word `at` of the message number `message` that `source` sends in the current step and phase.
  std::uint64_t word(int source, int message, std::size_t at) const;
  Words message(int source, int message_number, std::size_t count) const;
  std::size_t words() const { return std::size_t(options.bytes) / 8; }

  /// Adds a received value to the checksum and compares it. The first wrong value is reported on standard error.
  void check(const char* what, std::size_t at, std::uint64_t got, std::uint64_t expected);
  void check(const char* what, const std::uint64_t* got, const Words& expected);

  /// Computes for --work-us times `share`, with the imbalance and the slowdown of this rank.
  void compute(double share = 1);
  /// MPI_Waitall, or polls and yields with --yield.
  void wait_all(std::vector<MPI_Request>& requests) const;

  const Options& options;
  Companion& companion;
  int rank = 0, ranks = 0;
  Plan plan, second_plan;  ///< the latter of kind `none` if there is no second fault
  EventLog log;
  Computation computation;
  MPI_Comm cart = MPI_COMM_NULL;                           ///< 2-D, periodic
  MPI_Comm first = MPI_COMM_NULL, second = MPI_COMM_NULL;  ///< duplicates of MPI_COMM_WORLD
  MPI_Comm farm = MPI_COMM_NULL;                           ///< the same

  int step = 0;
  Phase phase = Phase::halo;
  double slowdown = 0;  ///< the computation takes 1 + slowdown times as long
  std::uint64_t checksum = 0;
  long long wrong = 0;
};

}  // namespace fault_lab
