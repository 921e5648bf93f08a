// SPDX-License-Identifier: Apache-2.0
#pragma once
// One collective operation: what every member gives and gets, the call in its three forms, and the result against what
// it must be.
#include "tests/fuzz/programs/received.hpp"

namespace bestride::fuzz {

enum class What {
  barrier,
  bcast,
  gather,
  gatherv,
  scatter,
  scatterv,
  allgather,
  allgatherv,
  alltoall,
  alltoallv,
  alltoallw,
  reduce,
  allreduce,
  reduce_scatter,
  reduce_scatter_block,
  scan,
  exscan,
};
inline constexpr int whats = static_cast<int>(What::exscan) + 1;
const char* name_of(What what);
inline bool reduces(What what) { return what >= What::reduce; }
inline bool rooted(What what) {
  return what == What::bcast || (what >= What::gather && what <= What::scatterv) || what == What::reduce;
}

enum class Form { blocking, nonblocking, persistent };

/// The blocks of one member's send or receive buffer.
struct Side {
  std::vector<Shape> blocks;     ///< type and count of each
  std::vector<std::int64_t> at;  ///< bytes
  std::int64_t low = 0, high = 0;
  Runs runs(int block) const {
    return shifted(blocks[static_cast<std::size_t>(block)].runs(), at[static_cast<std::size_t>(block)]);
  }
};

class Collective {
 public:
  /// Draws it: the same at all members. `what` in place of a drawn one for the neighbours of persistent sets.
  Collective(Context& context, const Step& step, const CommSlot& slot, Form form, int number);
  ~Collective();

  void issue(Request& request);
  /// Buffers for start `n` of a persistent one.
  void prepare(int n);
  void report();
  /// After the call: types and operations may be freed while it is pending.
  void free_handles(bool now);
  std::string label;

 private:
  struct Reduction;
  Side side_of(int rank, bool out) const;
  int count(int from, int to) const;
  Image image_of(int rank, bool out) const;
  bool in_place(int rank) const;
  bool varies() const {
    return what_ == What::gatherv || what_ == What::scatterv || what_ == What::allgatherv || what_ == What::alltoallv ||
           what_ == What::alltoallw;
  }
  int out_blocks(int rank) const;
  int in_blocks(int rank) const;
  int call(Request& request);
  int call_reduction(Request& request);
  void give(const Side& side, bool out);
  void expect();
  void expect_reduction();
  Bytes contribution(int rank) const;

  Context& context_;
  Step step_;
  MPI_Comm comm_;
  int rank_, size_;
  Form form_;
  What what_ = What::barrier;
  std::uint64_t seed_;
  int root_ = 0;
  bool place_ = false;
  int start_ = 0;
  Shape base_;
  int spread_ = 0;  ///< how much the counts vary

  // Reductions.
  const Reduction* reduction_ = nullptr;
  int op_count_ = 0;
  std::vector<int> op_counts_;
  MPI_Op op_ = MPI_OP_NULL;
  bool own_op_ = false;

  // What is given to MPI; lives until the operation is complete.
  BufferPtr out_, in_;
  int out_count_ = 0, in_count_ = 0;
  std::vector<int> out_counts_, in_counts_, out_at_, in_at_;
  std::vector<MPI_Datatype> out_types_, in_types_;
  std::vector<Handle> handles_;
  MPI_Datatype out_type_ = MPI_DATATYPE_NULL, in_type_ = MPI_DATATYPE_NULL;
};

}  // namespace bestride::fuzz
