// SPDX-License-Identifier: Apache-2.0
// The data-movement collectives: which rank sends which blocks, and the expected contents of each receive buffer.
#include "tests/fuzz/programs/collective.hpp"

#include <algorithm>

#include "tests/fuzz/programs/common.h"

namespace bestride::fuzz {

const char* name_of(What what) {
  static constexpr const char* names[] = {
      "barrier",   "bcast",     "gather",     "gatherv",        "scatter",
      "scatterv",  "allgather", "allgatherv", "alltoall",       "alltoallv",
      "alltoallw", "reduce",    "allreduce",  "reduce_scatter", "reduce_scatter_block",
      "scan",      "exscan"};
  static_assert(std::size(names) == whats);
  return names[static_cast<int>(what)];
}

int Collective::out_blocks(int rank) const {
  if (what_ >= What::alltoall && what_ <= What::alltoallw) return size_;
  if (what_ == What::scatter || what_ == What::scatterv) return rank == root_ ? size_ : 0;
  return what_ == What::bcast ? rank == root_ : 1;
}
int Collective::in_blocks(int rank) const {
  if (what_ >= What::allgather && what_ <= What::alltoallw) return size_;
  if (what_ == What::gather || what_ == What::gatherv) return rank == root_ ? size_ : 0;
  return what_ == What::bcast ? rank != root_ : 1;
}
bool Collective::in_place(int rank) const { return place_ && (!rooted(what_) || rank == root_); }

/// The number of elements of the base shape that one rank sends to another.
int Collective::count(int from, int to) const {
  const int n = static_cast<int>(base_.count);
  if (!varies() || spread_ == 0) return n;
  int key = 0;
  switch (what_) {
    case What::gatherv:
    case What::allgatherv: key = from * 7; break;
    case What::scatterv: key = to * 7; break;
    default: key = place_ ? std::min(from, to) * 7 + std::max(from, to) * 13 : from * 7 + to * 13; break;
  }
  const int part = (key + spread_) % 4;
  return part == 0 ? 0 : n * part / 3;
}

Side Collective::side_of(int rank, bool out) const {
  Random random(seed_ + static_cast<std::uint64_t>(rank) * 1009 + (out ? 17 : 0));
  // MPICH 4.0.2 splits the blocks of a long allgatherv by the extent of each rank's type, so all types have one extent.
  const bool cut = what_ == What::allgatherv && !out && base_.bytes() * size_ >= 80 * 1024;
  const int blocks = out ? out_blocks(rank) : in_blocks(rank), types = form_ == Form::persistent ? 0 : step_.types;
  Side side;
  if (blocks == 0) return side;
  const auto elements = [&](int k) {
    if (what_ == What::bcast) return static_cast<int>(base_.count);
    const bool all = blocks == size_;  // block k belongs to peer k
    return out ? count(rank, all ? k : rooted(what_) ? root_ : 0) : count(all ? k : rooted(what_) ? root_ : 0, rank);
  };
  const auto spelled = [&](std::int64_t n) {
    Shape shape = base_;
    shape.count = n;
    if (n == 0) return shape;
    Shape other = respell(random, shape, types, blocks > 1);
    return cut && other.facts.extent != base_.facts.extent ? shape : other;
  };
  if (blocks == 1) {
    side.blocks.push_back(spelled(elements(0)));
    side.at.push_back(0);
  } else {
    Shape one = spelled(base_.count);
    std::vector<int> order;
    for (int k = 0; k < blocks; ++k) {
      order.push_back(k);
      if (what_ == What::alltoallw) one = spelled(base_.count);
      side.blocks.push_back(one);
      side.blocks.back().count = elements(k);
    }
    if (varies() && random.chance(50)) std::reverse(order.begin(), order.end());
    side.at.resize(order.size());
    std::int64_t at = varies() ? random.between(0, 2) : 0;
    if (what_ != What::alltoallw) at *= one.facts.extent;
    for (const int k : order) {
      const Shape& block = side.blocks[static_cast<std::size_t>(k)];
      side.at[static_cast<std::size_t>(k)] = at;
      // In an alltoallw each block has its own type, so the upper bound of this block counts.
      at += what_ == What::alltoallw ? std::max(block.facts.extent * block.count, block.high(block.count))
                                     : block.facts.extent * block.count;
      if (varies() && random.chance(50))
        at += what_ == What::alltoallw ? 8 * random.between(0, 3) : block.facts.extent * random.between(0, 2);
      if (what_ == What::alltoallw) at = (at + 15) / 16 * 16;
    }
  }
  for (int k = 0; k < blocks; ++k) {
    const Shape& block = side.blocks[static_cast<std::size_t>(k)];
    side.low = std::min(side.low, side.at[static_cast<std::size_t>(k)] + block.low(block.count));
    side.high = std::max(side.high, side.at[static_cast<std::size_t>(k)] + block.high(block.count));
  }
  return side;
}

Image Collective::image_of(int rank, bool out) const {
  const std::uint64_t seed =
      seed_of(step_, seed_, static_cast<std::uint64_t>(rank * 2 + out), static_cast<std::uint64_t>(start_));
  if (reduces(what_)) {
    Image image{seed, 0, 0, 0};
    return image;
  }
  const Side side = what_ == What::bcast ? side_of(rank, rank == root_) : side_of(rank, out);
  return {seed, 0, side.low, side.high};
}

Collective::~Collective() = default;

/// Sets the arguments of one side.
void Collective::give(const Side& side, bool out) {
  int& count = out ? out_count_ : in_count_;
  auto& counts = out ? out_counts_ : in_counts_;
  auto& displacements = out ? out_at_ : in_at_;
  auto& types = out ? out_types_ : in_types_;
  MPI_Datatype& type = out ? out_type_ : in_type_;
  for (std::size_t k = 0; k < side.blocks.size(); ++k) {
    const Shape& block = side.blocks[k];
    if (k == 0 || what_ == What::alltoallw)
      handles_.push_back(
          build(context_, block.type, true, form_ != Form::persistent && step_.types > 0 && context_.own.chance(20)));
    type = handles_.back().h;
    types.push_back(type);
    count = static_cast<int>(block.count);
    counts.push_back(count);
    displacements.push_back(static_cast<int>(what_ == What::alltoallw ? side.at[k] : side.at[k] / block.facts.extent));
  }
  // An unused side still needs a valid type.
  if (side.blocks.empty()) type = MPI_INT;
}

Collective::Collective(Context& context, const Step& step, const CommSlot& slot, Form form, int number)
    : context_(context),
      step_(step),
      comm_(slot.h),
      rank_(slot.rank),
      size_(slot.group().size()),
      form_(form),
      seed_(seed_of(step, 77, static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(slot.mine))) {
  Random common(seed_);
  what_ = static_cast<What>(common.chance(4) ? 0 : common.between(1, whats - 1));
  root_ = static_cast<int>(common.between(0, size_ - 1));
  place_ = common.chance(25) && what_ != What::bcast && what_ != What::exscan;
  // Some in-place persistent collectives of MPICH 4.0.2 are wrong from the second start on.
  if (form == Form::persistent && what_ != What::allreduce) place_ = false;
  // MPICH 4.0.2 exchanges wrong bytes of derived types in place, and hangs at the second start of a persistent scatter
  // on three ranks.
  if (what_ >= What::alltoall && what_ <= What::alltoallw && step.types > 0) place_ = false;
  if (form == Form::persistent && what_ == What::scatter && size_ > 2) what_ = What::gather;
  // On two, four, eight... ranks, recursive doubling in MPICH 4.0.2 sends more at each start.
  if (form == Form::persistent && what_ == What::allgather && size_ > 1 && (size_ & (size_ - 1)) == 0)
    what_ = What::allgatherv;
  spread_ = static_cast<int>(common.between(0, 3));
  label = std::string(name_of(what_)) + "_" + std::to_string(number);
  std::int64_t bytes = block_bytes(common, step.size);
  if (what_ >= What::allgather && what_ <= What::alltoallw) bytes = std::max<std::int64_t>(1, bytes * 2 / size_);
  if (reduces(what_)) {
    expect_reduction();
    return;
  }
  if (what_ == What::barrier) return;
  // On one rank, MPICH 4.0.2 ignores the displacement of an allgatherv.
  if (what_ == What::allgatherv && size_ == 1) what_ = What::allgather;
  base_ = draw_shape(common, {bytes, form == Form::persistent ? 0 : step.types, true});
  // The MPI library's trees send blocks of several basic types together as contiguous data (README.md,
  // MPI_ERR_TRUNCATE).
  if (!uniform(base_)) base_.count = std::max<std::int64_t>(1, std::min(base_.count, 4000 / size_ / base_.facts.size));
  if (!uniform(base_) && base_.bytes() * size_ > 4000) base_ = *Shape::of(test::named("int"), bytes / 4 + 1);
  expect();
}

/// Creates the buffers and arguments of this rank, and the expected results.
void Collective::expect() {
  const Side out = side_of(rank_, true), in = side_of(rank_, false);
  if (what_ == What::bcast) {
    in_ = std::make_shared<Buffer>(context_, image_of(rank_, false));
    give(rank_ == root_ ? out : in, false);
  } else {
    if (out_blocks(rank_) > 0 && !in_place(rank_)) out_ = std::make_shared<Buffer>(context_, image_of(rank_, true));
    if (in_blocks(rank_) > 0 && !(in_place(rank_) && (what_ == What::scatter || what_ == What::scatterv)))
      in_ = std::make_shared<Buffer>(context_, image_of(rank_, false));
    // The root of an in-place scatter still sends.
    if (!out_ && in_place(rank_) && (what_ == What::scatter || what_ == What::scatterv))
      out_ = std::make_shared<Buffer>(context_, image_of(rank_, true));
    give(out, true);
    give(in, false);
  }
  prepare(0);
}

void Collective::prepare(int n) {
  if (what_ == What::barrier) return;
  if (n > 0) {
    // Some persistent collectives of MPICH 4.0.2 copy a rank's own block only at the first start, so their data do not
    // change.
    const bool rereads = what_ == What::bcast || what_ == What::allreduce;
    if (rereads) start_ = n;
    if (reduces(what_)) return expect_reduction();
    if (out_ && rereads) out_->refill(context_, image_of(rank_, true).seed);
    if (in_ && (rereads || in_place(rank_))) in_->refill(context_, image_of(rank_, false).seed);
  }
  if (reduces(what_)) return expect_reduction();
  if (out_) out_->expected();
  if (!in_) return;
  const auto take = [&](int from, int their_block, int my_block) {
    const bool theirs_in_place = in_place(from) && what_ != What::scatter && what_ != What::scatterv;
    const Side theirs = side_of(from, !theirs_in_place || what_ == What::bcast);
    const Image image = image_of(from, !theirs_in_place);
    const Image whole = what_ == What::bcast ? image_of(from, false) : image;
    scatter(in_->expected(), in_->image().origin(), side_of(rank_, false).runs(my_block),
            gather(whole.bytes(), whole.origin(), theirs.runs(their_block)));
  };
  in_->expected();
  switch (what_) {
    case What::bcast:
      if (rank_ != root_) take(root_, 0, 0);
      break;
    case What::gather:
    case What::gatherv:
    case What::allgather:
    case What::allgatherv:
      for (int r = 0; r < size_; ++r)
        if (!(r == rank_ && in_place(r))) take(r, in_place(r) ? r : 0, r);
      break;
    case What::scatter:
    case What::scatterv: take(root_, rank_, 0); break;
    default:
      for (int r = 0; r < size_; ++r)
        if (!(r == rank_ && in_place(r))) take(r, rank_, r);
  }
}

void Collective::report() {
  if (out_) out_->report(context_, label + "_out");
  if (in_) in_->report(context_, label);
}

void Collective::free_handles(bool now) {
  if (now) {
    for (Handle& handle : handles_) drop(context_, handle);
    if (own_op_) CALL(context_, Op_free, Gone{&op_});
    own_op_ = false;
  }
}

}  // namespace bestride::fuzz
