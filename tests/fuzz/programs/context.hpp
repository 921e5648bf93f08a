// SPDX-License-Identifier: Apache-2.0
#pragma once
// The objects that a program has created so far, on this rank and in this thread.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/programs/step.hpp"
#include "tests/fuzz/programs/types.hpp"

namespace bestride::fuzz {

enum class Topology { none, cart, graph, dist_graph };

/// The members of one communicator, which every rank can compute.
struct Group {
  std::vector<int> world;  ///< ranks of MPI_COMM_WORLD
  Topology topology = Topology::none;
  std::vector<int> dims, periods;                  ///< cart
  std::vector<std::vector<int>> sources, targets;  ///< neighbors by rank; MPI_PROC_NULL at an edge
  int size() const { return static_cast<int>(world.size()); }
};

/// The communicators that one collective call created. Their groups are disjoint.
struct CommSlot {
  MPI_Comm h = MPI_COMM_NULL;
  std::vector<Group> groups;
  int mine = -1;  ///< index of this rank's group
  int rank = -1;
  bool world = false;
  bool closed = false;
  const Group& group() const { return groups[static_cast<std::size_t>(mine)]; }
};

/// A request that is not complete.
struct Operation {
  Request request;
  Status status;
  std::string label;
  int number = 0;           ///< order of creation
  bool collective = false;  ///< MPI_Request_free is forbidden
  bool send = false;
  bool cancelled = false;
  bool persistent = false;
  std::function<void()> report;  ///< after completion: writes the results to the trace
};
using OperationPtr = std::shared_ptr<Operation>;

struct PersistentSet {
  struct Member {
    OperationPtr operation;
    std::function<void(int)> prepare;  ///< before start n
  };
  std::vector<Member> members;  ///< in the order of initialization
  std::size_t comm = 0;
  int starts = 0;
  bool active = false;
  bool barrier = false;  ///< contains a ready send
};

/// A type that lives over several steps. Its signature is the same on all ranks, the spelling is local to this rank.
struct LiveType {
  Shape shape;
  Shape mine;
  Handle handle;
};

class Context : public Caller {
 public:
  int rank = 0, ranks = 1;
  const Program* program = nullptr;
  std::vector<CommSlot> comms;
  std::vector<LiveType> types;
  std::vector<OperationPtr> pending;
  std::vector<PersistentSet> persistent;
  std::vector<BufferPtr> kept;  ///< buffers of freed requests, kept until the end
  int operations = 0;           ///< counter of operations and request slots
  Random own{0};                ///< local choices of this rank in the running step
  int depth = 0;
  std::function<void()> alive;  ///< resets the watchdog when a thread begins a step, which the trace shows only later

  /// A communicator of at least `members` ranks (in each of its groups), the same on all ranks.
  CommSlot& pick_comm(Random& common, int members = 1);
  /// Creates an operation with the next number and request slot.
  OperationPtr add(const std::string& label);
  /// Completes and reports all operations, or leaves them pending if the step allows it.
  void finish_step(const Step& step, std::vector<OperationPtr> operations, bool may_pend);
};

/// Completes the operations of the set by calls in an order that this rank chooses, and reports them.
void complete(Context& context, std::vector<OperationPtr> set);

void execute(Context& context, const Step& step);
void run_program(Context& context, const Program& program, const std::function<void(const std::string&)>& trace);

// One function for each kind of step; see the files of these names.
void make_comm(Context&, const Step&);
void use_comm(Context&, const Step&);
void free_comm(Context&, const Step&);
void make_type(Context&, const Step&);
void use_type(Context&, const Step&);
void free_type(Context&, const Step&);
void recommit(Context&, const Step&);
void messages(Context&, const Step&);
void exchange(Context&, const Step&);
void big_receive(Context&, const Step&);
void collective(Context&, const Step&);
void neighbor(Context&, const Step&);
void make_persistent(Context&, const Step&);
void start_persistent(Context&, const Step&);
void free_persistent(Context&, const Step&);
void partitioned(Context&, const Step&);
void window(Context&, const Step&);
void file(Context&, const Step&);
void complete_some(Context&, const Step&);
void cancel(Context&, const Step&);
void errors(Context&, const Step&);
void throwing(Context&, const Step&);
void mismatched(Context&, const Step&);
void pack(Context&, const Step&);

/// A seed derived from a step's seed, the same on every rank for the same numbers.
std::uint64_t seed_of(const Step& step, std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0);

}  // namespace bestride::fuzz
