// SPDX-License-Identifier: Apache-2.0
#pragma once
// The environment of a test: the nodes of the ranks, and which collectives must use the hierarchy.
//
// TEST_NODES=0101: the node of each rank of MPI_COMM_WORLD, as in the job's topology file. TEST_EXPECT=hierarchical:
// collectives that can use the hierarchy must not reach the MPI library; library: all collectives must reach it; unset:
// either. TEST_REASSOCIATE=1: reductions whose result depends on the order may use the hierarchy, too.
#include <mpi.h>

#include <string>
#include <vector>

#include "tests/hierarchical/calls.hpp"

namespace bestride::test {

/// The node of a rank of MPI_COMM_WORLD; 0 if TEST_NODES is unset.
int node_of(int world_rank);
bool reassociates();

enum class Expectation { nothing, hierarchical, library };
Expectation expectation();

/// The number of collectives that reached the MPI library by their MPI_ names. call_counter.c counts them; without it
/// the program aborts, because a test cannot check its expectation.
int calls_seen_by_library();

/// The MPI library's own function, which nothing intercepts. `name`: its PMPI_ name. Aborts if there is none.
void* library_function(const char* name);

/// Bytes of all shared mappings of the preload library.
long long mapped_bytes();

/// Whether a call may go through the memory that the ranks of a node share, by its form.
enum class Shareable { no, in_call, nonblocking, persistent };

/// A communicator and facts about its members.
struct Group {
  std::string name;
  MPI_Comm comm = MPI_COMM_NULL;  ///< MPI_COMM_NULL on ranks that are not in it
  int rank = -1, size = 0;
  std::vector<int> world_ranks;
  bool several_nodes = false;
  /// Whether the members exchanged their facts when the communicator was created, in a call that may wait. Otherwise
  /// they do so in the first blocking or persistent collective.
  mutable bool known = true;
  /// Blocking calls so far, and nonblocking ones that may go through the memory that the ranks of a node share; the
  /// first two of each go to the library.
  mutable int blocking_calls = 0, shareable_starts = 0;
  /// True if the next such call goes through that memory.
  bool shares_memory(Shareable how) const;
};

/// Derives the other members from name, comm and known.
Group group_of(std::string name, MPI_Comm comm, bool known);

/// MPI_COMM_WORLD and communicators derived from it in many ways. Collective over MPI_COMM_WORLD.
class Groups {
 public:
  Groups();
  ~Groups();
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;
  int count() const { return static_cast<int>(groups_.size()); }
  const Group& operator[](int index) const { return groups_[static_cast<std::size_t>(index)]; }
  /// Frees a communicator and creates it again. Collective over MPI_COMM_WORLD.
  void make_again(int index);

 private:
  std::vector<Group> groups_;
};

/// Checks whether one call used the hierarchy as expected. `possible`: the call can use the hierarchy if the
/// communicator can; `wait`: its form, in some of which members can exchange facts about a communicator; `how`: on
/// one node it may go through shared memory, if it has data.
class Watch {
 public:
  Watch(const Group& group, bool possible, Wait wait, Shareable how = Shareable::no, bool has_data = true);
  /// A description of the error; empty if there is none.
  std::string verdict() const;

 private:
  int before_ = 0;
  Expectation expected_ = Expectation::nothing;
};

}  // namespace bestride::test
