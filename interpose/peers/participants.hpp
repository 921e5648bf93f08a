// SPDX-License-Identifier: Apache-2.0
#pragma once
// Participants: determines which ranks of MPI_COMM_WORLD have the preload and settings with which they take part in
// Bestride's own collectives. Known before the first collective. A job in which some rank has no preload, or other
// settings, must run.
//
// A rank that takes part announces itself in the launcher's key-value space before MPI_Init (pmi.hpp). After MPI_Init
// it looks for its neighbors in a binary tree over the ranks and exchanges messages only with those that are present.
// In this way all ranks learn whether every rank takes part, with at most three lookups and six short messages per
// rank. If the launcher has no key-value space, a rank relies on the user's setting (BESTRIDE_ALL_RANKS=1) for the
// presence of its neighbors and reports a neighbor that does not answer. Alternative considered: a collective in
// MPI_Init, which hangs if one rank does not call it.
#include <mpi.h>

#include "interpose/peers/pmi.hpp"

namespace bestride::inline interpose {

class Participants {
 public:
  /// What one rank, or all ranks, take part in.
  struct Parts {
    bool all_ranks = false;  ///< Bestride's own collectives among all ranks
    bool reporting = false;  ///< the end-of-job report
  };
  /// Tells the other ranks in what this one takes part. Called before MPI_Init; does nothing if `wanted` is empty.
  /// `user_asserts_all_ranks`: the user says that every rank has the same settings as this one.
  void announce(Parts wanted, bool user_asserts_all_ranks) noexcept;
  /// Learns from the other ranks in what they take part. Called after MPI_Init, while no other thread calls MPI. Waits
  /// only for ranks that have announced themselves.
  void meet(int rank, int ranks) noexcept;

  /// What all ranks take part in; the same on all ranks that have announced themselves. Known after meet().
  Parts all() const noexcept { return all_; }
  /// Neighbors in the tree that report; -1: there is none, or it does not report.
  int reporting_parent() const noexcept { return reporting_parent_; }
  const int* reporting_children() const noexcept { return reporting_children_; }
  /// False if this rank knows nothing of other ranks, and so does not know which of them report.
  bool met() const noexcept { return met_; }
  static constexpr int max_children = 2;

 private:
  struct Answer {
    int all_ranks, reporting;
    int sender_reports;
    int missing;  ///< a rank that has not announced itself, or -1
  };
  bool present(int rank) noexcept;
  bool receive(int from, Answer* answer) noexcept;
  void send(int to, const Answer& answer) noexcept;

  Pmi pmi_;
  bool announced_ = false, user_asserts_all_ranks_ = false, met_ = false;
  Parts wanted_, all_;
  int reporting_parent_ = -1, reporting_children_[max_children] = {-1, -1};
};

}  // namespace bestride::inline interpose
