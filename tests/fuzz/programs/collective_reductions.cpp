// SPDX-License-Identifier: Apache-2.0
// Reductions: types, operations, and the results if they do not depend on the order.
#include <algorithm>
#include <cstring>

#include "tests/fuzz/programs/collective.hpp"
#include "tests/fuzz/programs/common.h"

namespace bestride::fuzz {

enum class Exact { no, sum, max, bits_xor, compose };

struct Collective::Reduction {
  MPI_Datatype type;
  int kind;  ///< of fuzz_fill
  int bytes;
  MPI_Op op;
  Exact exact;
  MPI_User_function* function;
  const char* name;
  bool commutes;
};

namespace {
constexpr std::uint64_t data_salt = 4711;
}

/// The values that a rank contributes, from its send buffer or, in place, from its receive buffer.
Bytes Collective::contribution(int rank) const {
  const bool out = !in_place(rank);
  const std::int64_t all = what_ == What::reduce_scatter
                               ? std::int64_t{op_counts_.empty() ? 0 : 1} * reduction_->bytes * base_.count
                               : reduction_->bytes * base_.count;
  Image image{
      seed_of(step_, seed_ ^ data_salt, static_cast<std::uint64_t>(rank * 2 + out), static_cast<std::uint64_t>(start_)),
      reduction_->kind, 0, all};
  return gather(image.bytes(), image.origin(), {{0, all}});
}

/// Sets the buffers. `whole`, `length`: bytes that this rank contributes and receives.
void Collective::give_reduction(std::int64_t whole, std::int64_t length) {
  const Spelling spelling = spelling_of(rank_);
  out_args_.buffer = {out_ ? out_->at() : nullptr, 0};
  in_args_.buffer = {in_ ? in_->at() : nullptr, 0};
  if (whole == 0 && spelling.is(Way::empty_null, true)) out_args_.buffer = {};
  if ((in_place(rank_) ? whole : length) == 0 && spelling.is(Way::empty_null, false)) in_args_.buffer = {};
  if (!in_ && spelling.is(Way::unused, false)) in_args_.make_unused(spelling, false);
  if (in_place(rank_)) out_args_.buffer = {MPI_IN_PLACE, 0};
}

void Collective::expect_reduction() {
  static const Reduction reductions[] = {
      {MPI_INT, 0, 4, MPI_SUM, Exact::sum, nullptr, nullptr, true},
      {MPI_INT, 0, 4, MPI_BXOR, Exact::bits_xor, nullptr, nullptr, true},
      {MPI_INT, 4, 4, MPI_MAX, Exact::max, nullptr, nullptr, true},
      {MPI_UNSIGNED_CHAR, 0, 1, MPI_BXOR, Exact::bits_xor, nullptr, nullptr, true},
      {MPI_INT64_T, 0, 8, MPI_BXOR, Exact::bits_xor, nullptr, nullptr, true},
      {MPI_DOUBLE, 1, 8, MPI_SUM, Exact::no, nullptr, nullptr, true},
      {MPI_FLOAT, 2, 4, MPI_MIN, Exact::no, nullptr, nullptr, true},
      {MPI_DOUBLE, 1, 8, MPI_PROD, Exact::no, nullptr, nullptr, true},
      {MPI_2INT, 4, 8, MPI_MAXLOC, Exact::no, nullptr, nullptr, true},
      {MPI_DOUBLE, 5, 8, MPI_MAX, Exact::no, nullptr, nullptr, true},
      {MPI_DOUBLE, 5, 8, MPI_MIN, Exact::no, nullptr, nullptr, true},
      {MPI_FLOAT, 6, 4, MPI_MAX, Exact::no, nullptr, nullptr, true},
      {MPI_FLOAT, 6, 4, MPI_SUM, Exact::no, nullptr, nullptr, true},
      {MPI_DOUBLE, 5, 8, MPI_SUM, Exact::no, nullptr, nullptr, true},
      {MPI_DOUBLE_INT, 7, 16, MPI_MAXLOC, Exact::no, nullptr, nullptr, true},
      {MPI_FLOAT_INT, 8, 8, MPI_MINLOC, Exact::no, nullptr, nullptr, true},
      {MPI_DOUBLE, 9, 8, MPI_SUM, Exact::no, nullptr, nullptr, true},
      {MPI_FLOAT, 10, 4, MPI_SUM, Exact::no, nullptr, nullptr, true},
      {MPI_INT, 0, 4, MPI_OP_NULL, Exact::sum, fuzz_op_xor_sum, "fuzz_op_xor_sum", true},
      {MPI_2INT, 0, 8, MPI_OP_NULL, Exact::compose, fuzz_op_compose, "fuzz_op_compose", false},
  };
  const bool first = reduction_ == nullptr;
  if (first) {
    Random common(seed_ + 3);
    reduction_ = &common.pick(reductions);
    const std::int64_t bytes = block_bytes_;
    const bool shared = what_ == What::reduce_scatter || what_ == What::reduce_scatter_block;
    op_count_ = static_cast<int>(
        std::max<std::int64_t>(common.chance(5) ? 0 : 1, bytes / reduction_->bytes / (shared ? size_ : 1)));
    // MPICH 4.0.2 crashes in some long in-place MPI_Reduce calls.
    if (what_ == What::reduce && op_count_ * reduction_->bytes > 2000) place_ = may_place_ = false;
    base_.count = op_count_;
    if (what_ == What::reduce_scatter_block) base_.count = std::int64_t{op_count_} * size_;
    if (what_ == What::reduce_scatter) {
      base_.count = 0;
      for (int r = 0; r < size_; ++r) {
        op_counts_.push_back(std::int64_t{op_count_} * ((r + spread_) % 3) / 2);
        base_.count += op_counts_.back();
      }
    }
    op_type_ = reduction_->type;
    op_ = reduction_->op;
    if (op_ == MPI_OP_NULL) {
      CALL(context_, Op_create, (Named<MPI_User_function*>{reduction_->function, reduction_->name}),
           static_cast<int>(reduction_->commutes), (New{&op_, "op"}));
      own_op_ = true;
      large_ = false;  // its function counts in int
    }
    op_list_.set(op_counts_, large_ ? List::Element::count : List::Element::integer);
  }
  const std::int64_t whole = reduction_->bytes * base_.count;
  const bool shared = what_ == What::reduce_scatter || what_ == What::reduce_scatter_block;
  std::int64_t from = 0, length = whole;
  if (shared) {
    for (int r = 0; r < rank_; ++r)
      from += reduction_->bytes * (what_ == What::reduce_scatter ? op_counts_[static_cast<std::size_t>(r)] : op_count_);
    length =
        reduction_->bytes * (what_ == What::reduce_scatter ? op_counts_[static_cast<std::size_t>(rank_)] : op_count_);
  }
  const auto seed = [&](bool out) {
    return seed_of(step_, seed_ ^ data_salt, static_cast<std::uint64_t>(rank_ * 2 + out),
                   static_cast<std::uint64_t>(start_));
  };
  if (first) {
    if (!in_place(rank_)) out_ = std::make_shared<Buffer>(context_, Image{seed(true), reduction_->kind, 0, whole});
    // In place, the receive buffer contains the whole contribution.
    if (what_ != What::reduce || rank_ == root_)
      in_ =
          std::make_shared<Buffer>(context_, Image{seed(false), reduction_->kind, 0, in_place(rank_) ? whole : length});
  } else {
    if (out_ && start_ > 0) out_->refill(context_, seed(true));
    if (in_ && (start_ > 0 || in_place(rank_))) in_->refill(context_, seed(false));
  }
  if (first) give_reduction(whole, length);
  if (out_) out_->expected();
  if (!in_) return;
  in_->expect_nothing_known();
  if (reduction_->exact == Exact::no || whole == 0) return;
  if (in_place(rank_) && shared) return;  // the buffer after the own result is undefined
  int begin = 0, end = size_;
  if (what_ == What::scan) end = rank_ + 1;
  if (what_ == What::exscan) end = rank_;
  in_->expected();
  if (begin == end) {
    if (what_ == What::exscan) in_->expect_nothing_known();
    return;
  }
  Bytes result = contribution(begin);
  for (int r = begin + 1; r < end; ++r) {
    const Bytes next = contribution(r);
    if (reduction_->exact == Exact::bits_xor)
      for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<char>(result[i] ^ next[i]);
    else
      for (std::size_t i = 0; i + 4 <= result.size(); i += reduction_->exact == Exact::compose ? 8 : 4) {
        unsigned x[2] = {}, y[2] = {};
        const std::size_t n = reduction_->exact == Exact::compose ? 8 : 4;
        std::memcpy(x, result.data() + i, n);
        std::memcpy(y, next.data() + i, n);
        if (reduction_->exact == Exact::sum) y[0] += x[0];
        if (reduction_->exact == Exact::max) y[0] = std::max(x[0], y[0]);
        if (reduction_->exact == Exact::compose) {
          const unsigned a = x[0] * y[0], b = x[1] * y[0] + y[1];
          y[0] = a, y[1] = b;
        }
        std::memcpy(result.data() + i, y, n);
      }
  }
  scatter(in_->expected(), in_->image().origin(), {{0, length}},
          Bytes(result.begin() + from, result.begin() + from + length));
}

}  // namespace bestride::fuzz
