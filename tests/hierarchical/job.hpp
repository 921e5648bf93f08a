// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a test knows of its job: the nodes of the ranks, and which collectives must use the hierarchy.
//
// TEST_NODES=0101: the node of each rank of MPI_COMM_WORLD, as in the job's topology file. TEST_EXPECT=hierarchical:
// what can use the hierarchy must not reach the MPI library; library: all collectives must reach it; unset: either.
// TEST_REASSOCIATE=1: reductions whose order matters may use the hierarchy, too.
#include <mpi.h>

#include <string>
#include <vector>

namespace bestride::test {

/// Node of a rank of MPI_COMM_WORLD; 0 if nothing is said.
int node_of(int world_rank);
bool reassociates();

enum class Expectation { nothing, hierarchical, library };
Expectation expectation();

/// Collectives that have reached the MPI library by their MPI_ names. Counted by call_counter.c; without it the program
/// ends: a test that expects something can't say anything then.
int calls_seen_by_library();
/// The nonblocking ones among them.
int nonblocking_calls_seen_by_library();

/// Bytes of all shared mappings of the preloaded library.
long long mapped_bytes();

/// A communicator and what follows from who is in it.
struct Group {
  std::string name;
  MPI_Comm comm = MPI_COMM_NULL;  ///< MPI_COMM_NULL on ranks that are not in it
  int rank = -1, size = 0;
  std::vector<int> world_ranks;
  bool several_nodes = false;
  /// The preload saw all members make it, in a call that may wait; else the first blocking or persistent collective
  /// tells them of each other.
  mutable bool known = true;
};

/// Fills in what follows from name, comm and known.
Group group_of(std::string name, MPI_Comm comm, bool known);

/// MPI_COMM_WORLD and others made of it in many ways. Collective over MPI_COMM_WORLD.
class Groups {
 public:
  Groups();
  ~Groups();
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;
  int count() const { return static_cast<int>(groups_.size()); }
  const Group& operator[](int index) const { return groups_[static_cast<std::size_t>(index)]; }
  /// Frees one and makes it again. Collective over MPI_COMM_WORLD.
  void make_again(int index);

 private:
  std::vector<Group> groups_;
};

/// Around one call: whether it went where it had to. `possible`: it can go through the hierarchy, if the communicator
/// can; `may_wait`: its form is one in which members can tell each other of a communicator.
class Watch {
 public:
  Watch(const Group& group, bool possible, bool may_wait);
  /// What is wrong, or nothing.
  std::string verdict() const;

 private:
  int before_ = 0;
  Expectation expected_ = Expectation::nothing;
};

}  // namespace bestride::test
