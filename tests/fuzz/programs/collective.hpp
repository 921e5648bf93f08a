// SPDX-License-Identifier: Apache-2.0
#pragma once
// One collective operation: the data that every member sends and receives, the call in its three forms, and the check
// of the result.
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
  /// Chooses the operation at random, the same on all members.
  Collective(Context& context, const Step& step, const CommSlot& slot, Form form, int number);
  ~Collective();

  void issue(Request& request);
  /// Prepares the buffers for start `n` of a persistent collective.
  void prepare(int n);
  void report();
  /// Frees types and operations after the call, possibly while it is pending.
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

  // The arguments of the call, which must live until the operation completes.
  BufferPtr out_, in_;
  int out_count_ = 0, in_count_ = 0;
  std::vector<int> out_counts_, in_counts_, out_at_, in_at_;
  std::vector<MPI_Datatype> out_types_, in_types_;
  std::vector<Handle> handles_;
  MPI_Datatype out_type_ = MPI_DATATYPE_NULL, in_type_ = MPI_DATATYPE_NULL;
};

}  // namespace bestride::fuzz
