// SPDX-License-Identifier: Apache-2.0
#pragma once
// One collective operation: the data that every member sends and receives, the call in its three forms, and the check
// of the result.
#include "tests/fuzz/programs/arguments.hpp"
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
  Spelling spelling_of(int rank) const { return Spelling(step_, seed_, rank); }
  Side side_of(int rank, bool out, const Spelling& spelling) const;
  const Layout& layout_of(int rank) const;
  const Side& side_of(int rank, bool out) const { return out ? layout_of(rank).out : layout_of(rank).in; }
  int count(int from, int to) const;
  Image image_of(int rank, bool out) const;
  bool in_place(int rank) const;
  Blocks blocks_of(bool out) const;
  bool derived() const { return form_ != Form::persistent && step_.types > 0; }
  bool varies() const {
    return what_ == What::gatherv || what_ == What::scatterv || what_ == What::allgatherv || what_ == What::alltoallv ||
           what_ == What::alltoallw;
  }
  int out_blocks(int rank) const;
  int in_blocks(int rank) const;
  int call(Request& request);
  int call_reduction(Request& request);
  void give(bool out);
  void give();
  void expect();
  void expect_reduction();
  void give_reduction(std::int64_t whole, std::int64_t length);
  Bytes contribution(int rank) const;

  Context& context_;
  Step step_;
  MPI_Comm comm_;
  int rank_, size_;
  Form form_;
  What what_ = What::barrier;
  std::uint64_t seed_;
  int root_ = 0;
  bool place_ = false;      ///< MPI_IN_PLACE on all ranks (on the root)
  bool may_place_ = false;  ///< each rank may use MPI_IN_PLACE on its own
  int start_ = 0;
  Shape base_;
  int spread_ = 0;  ///< how much the counts vary

  // Reductions.
  const Reduction* reduction_ = nullptr;
  std::int64_t block_bytes_ = 0;  ///< as drawn
  int op_count_ = 0;
  std::vector<std::int64_t> op_counts_;
  List op_list_;
  MPI_Datatype op_type_ = MPI_DATATYPE_NULL;
  MPI_Op op_ = MPI_OP_NULL;
  bool own_op_ = false;

  // The arguments of the call, which must live until the operation completes.
  BufferPtr out_, in_;  ///< the same if both directions have one base
  Arguments out_args_, in_args_;
  bool large_ = false;
  mutable std::vector<std::unique_ptr<const Layout>> layouts_;  ///< by rank
};

/// Calls that the library refuses on one rank; the errors are returned.
void refused(Context& context, const Step& step, const CommSlot& slot, Random& common);

}  // namespace bestride::fuzz
