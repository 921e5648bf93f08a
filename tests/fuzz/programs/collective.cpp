// SPDX-License-Identifier: Apache-2.0
// The data-movement collectives: which rank sends which blocks, and the expected contents of each receive buffer.
#include "tests/fuzz/programs/collective.hpp"

#include <algorithm>

#include "tests/fuzz/programs/common.h"

namespace bestride::fuzz {
namespace {

/// A number of bytes close to a size at which a library chooses another algorithm.
std::int64_t near_bound(Random& common, int size) {
  static constexpr std::int64_t bounds[] = {64, 256, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 262144, 524288};
  const std::int64_t most = size == 0 ? 0 : size == 1 ? 5 : size == 2 ? 8 : 10;
  return bounds[common.between(0, most)] + common.between(-9, 9);
}

}  // namespace

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
bool Collective::in_place(int rank) const {
  return (place_ || (may_place_ && spelling_of(rank).is(Way::in_place))) && (!rooted(what_) || rank == root_);
}

Blocks Collective::blocks_of(bool out) const {
  switch (what_) {
    case What::gather: return out ? Blocks::one : Blocks::equal;
    case What::gatherv:
    case What::allgatherv: return out ? Blocks::one : Blocks::varying;
    case What::scatter: return out ? Blocks::equal : Blocks::one;
    case What::scatterv: return out ? Blocks::varying : Blocks::one;
    case What::allgather: return out ? Blocks::one : Blocks::equal;
    case What::alltoall: return Blocks::equal;
    case What::alltoallv: return Blocks::varying;
    case What::alltoallw: return Blocks::typed;
    default: return Blocks::one;
  }
}

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

Side Collective::side_of(int rank, bool out, const Spelling& spelling) const {
  Random random(seed_ + static_cast<std::uint64_t>(rank) * 1009 + (out ? 17 : 0));
  // MPICH 4.0.2 splits the blocks of a long allgatherv by the extent of each rank's type, so all types have one extent.
  const bool cut = what_ == What::allgatherv && !out && base_.bytes() * size_ >= 80 * 1024;
  const int blocks = out ? out_blocks(rank) : in_blocks(rank), types = derived() ? step_.types : 0;
  Side side;
  if (blocks == 0) return side;
  const auto elements = [&](int k) {
    if (what_ == What::bcast) return static_cast<int>(base_.count);
    const bool all = blocks == size_;  // block k belongs to peer k
    return out ? count(rank, all ? k : rooted(what_) ? root_ : 0) : count(all ? k : rooted(what_) ? root_ : 0, rank);
  };
  const auto spelled = [&](std::int64_t n, bool same_count) {
    Shape shape = base_;
    shape.count = n;
    if (n == 0)
      return types > 0 && !same_count && spelling.is(Way::empty_type, out)
                 // MPICH 4.0.2 sends elements of no bytes, to which other members' counts of 0 do not correspond.
                 ? *Shape::of(test::contiguous(0, test::named("int")), what_ == What::bcast ? random.between(0, 3) : 0)
                 : shape;
    Shape other = respell(random, shape, types, same_count);
    if (blocks > 1 && (other.facts.low < 0 || other.facts.high > other.facts.extent)) return shape;
    return cut && other.facts.extent != base_.facts.extent ? shape : other;
  };
  const bool typed = blocks_of(out) == Blocks::typed, spread = displaced(blocks_of(out));
  if (blocks == 1 && !typed) {
    side.blocks.push_back(spelled(elements(0), spread));
    side.at.push_back(0);
  } else {
    const Shape one = spelled(base_.count, spread);
    std::vector<int> order;
    for (int k = 0; k < blocks; ++k) {
      order.push_back(k);
      side.blocks.push_back(typed ? spelled(elements(k), false) : one);
      if (!typed && spread) side.blocks.back().count = elements(k);
    }
    if (spread && random.chance(50)) std::reverse(order.begin(), order.end());
    side.at.resize(order.size());
    std::int64_t at = spread ? random.between(0, 2) : 0;
    if (!typed) at *= one.facts.extent;
    for (const int k : order) {
      const Shape& block = side.blocks[static_cast<std::size_t>(k)];
      side.at[static_cast<std::size_t>(k)] = at;
      // In an alltoallw each block has its own type, so the upper bound of this block counts.
      at += typed ? std::max(block.facts.extent * block.count, block.high(block.count))
                  : block.facts.extent * block.count;
      if (spread && random.chance(50))
        at += typed ? 8 * random.between(0, 3) : block.facts.extent * random.between(0, 2);
      if (typed) at = (at + 15) / 16 * 16;
    }
  }
  side.measure();
  return side;
}

const Layout& Collective::layout_of(int rank) const {
  layouts_.resize(static_cast<std::size_t>(size_));
  auto& known = layouts_[static_cast<std::size_t>(rank)];
  if (known) return *known;
  const Spelling spelling = spelling_of(rank);
  if (what_ == What::bcast) {
    const Side side = side_of(rank, rank == root_, spelling);
    known = std::make_unique<const Layout>(Layout{side, side});
    return *known;
  }
  Layout layout{side_of(rank, true, spelling), side_of(rank, false, spelling)};
  if ((displaced(blocks_of(true)) || displaced(blocks_of(false))) && !in_place(rank) && spelling.is(Way::one_base))
    layout.join(blocks_of(true), blocks_of(false));
  known = std::make_unique<const Layout>(std::move(layout));
  return *known;
}

Image Collective::image_of(int rank, bool out) const {
  const bool joined = !reduces(what_) && layout_of(rank).one_base;
  const std::uint64_t seed =
      seed_of(step_, seed_, static_cast<std::uint64_t>(rank * 2 + (out || joined)), static_cast<std::uint64_t>(start_));
  if (reduces(what_)) return {seed, 0, 0, 0};
  const Layout& layout = layout_of(rank);
  if (joined) return {seed, 0, std::min(layout.out.low, layout.in.low), std::max(layout.out.high, layout.in.high)};
  const Side& side = out ? layout.out : layout.in;
  return {seed, 0, side.low, side.high};
}

Collective::~Collective() = default;

/// Sets the arguments of one direction. A broadcast has one only, `in`.
void Collective::give(bool out) {
  const Spelling spelling = spelling_of(rank_);
  const Layout& layout = layout_of(rank_);
  const Side& side = side_of(rank_, out);
  Arguments::Given given{blocks_of(out), out, derived(), large_, false};
  given.null_type = given.blocks == Blocks::typed && !in_place(rank_);
  const auto unit = [](const Side& of, Blocks blocks) {
    return of.blocks.empty() || blocks == Blocks::typed ? 16 : std::max<std::int64_t>(1, of.blocks[0].facts.extent);
  };
  if (layout.one_base && displaced(blocks_of(!out)))
    given.far = far_of(spelling, true, unit(layout.out, blocks_of(true)) * unit(layout.in, blocks_of(false)));
  else if (!layout.one_base)
    given.far = far_of(spelling, out, unit(side, given.blocks));
  (out ? out_args_ : in_args_).set(context_, spelling, side, (out ? out_ : in_).get(), given);
}

void Collective::give() {
  const Spelling spelling = spelling_of(rank_);
  if (what_ == What::bcast) return give(false);
  const bool scatters = what_ == What::scatter || what_ == What::scatterv;
  for (const bool out : {true, false}) {
    const bool significant = !rooted(what_) || rank_ == root_ || (out ? !scatters : scatters);
    Arguments& arguments = out ? out_args_ : in_args_;
    const bool placed = in_place(rank_) && out != scatters;
    if ((!significant || placed) && spelling.is(Way::unused, out))
      arguments.make_unused(spelling, out);
    else
      give(out);
    if (placed) arguments.buffer = {MPI_IN_PLACE, 0};
  }
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
  place_ = common.chance(25) && what_ != What::bcast;
  may_place_ = what_ != What::bcast && !(what_ >= What::alltoall && what_ <= What::alltoallw);
  large_ = spelling_of(rank_).is(Way::large);
  // Some in-place persistent collectives of MPICH 4.0.2 are wrong from the second start on.
  if (form == Form::persistent && what_ != What::allreduce) place_ = may_place_ = false;
  // MPICH 4.0.2 exchanges wrong bytes of derived types in place, and hangs at the second start of a persistent scatter
  // on three ranks.
  if (what_ >= What::alltoall && what_ <= What::alltoallw && step.types > 0) place_ = false;
  if (form == Form::persistent && what_ == What::scatter && size_ > 2) what_ = What::gather;
  // On two, four, eight... ranks, recursive doubling in MPICH 4.0.2 sends more at each start.
  if (form == Form::persistent && what_ == What::allgather && size_ > 1 && (size_ & (size_ - 1)) == 0)
    what_ = What::allgatherv;
  spread_ = static_cast<int>(common.between(0, 3));
  label = std::string(name_of(what_)) + "_" + std::to_string(number);
  std::int64_t bytes = common.chance(30) ? near_bound(common, step.size) : block_bytes(common, step.size);
  if (what_ >= What::allgather && what_ <= What::alltoallw) bytes = std::max<std::int64_t>(1, bytes * 2 / size_);
  block_bytes_ = bytes;
  if (reduces(what_)) {
    expect_reduction();
    return;
  }
  if (what_ == What::barrier) return;
  // On one rank, MPICH 4.0.2 ignores the displacement of an allgatherv.
  if (what_ == What::allgatherv && size_ == 1) what_ = What::allgather;
  base_ = draw_shape(common, {bytes, form == Form::persistent ? 0 : step.types, true});
  if (common.chance(4)) base_.count = 0;
  // The MPI library's trees send blocks of several basic types together as contiguous data (README.md,
  // MPI_ERR_TRUNCATE).
  if (!uniform(base_) && base_.count > 0)
    base_.count = std::max<std::int64_t>(1, std::min(base_.count, 4000 / size_ / base_.facts.size));
  if (!uniform(base_) && base_.bytes() * size_ > 4000) base_ = *Shape::of(test::named("int"), bytes / 4 + 1);
  expect();
}

/// Creates the buffers and arguments of this rank, and the expected results.
void Collective::expect() {
  const bool scatters = what_ == What::scatter || what_ == What::scatterv;
  if (what_ == What::bcast) {
    in_ = std::make_shared<Buffer>(context_, image_of(rank_, false));
  } else {
    // The root of an in-place scatter still sends.
    if (out_blocks(rank_) > 0 && (scatters || !in_place(rank_)))
      out_ = std::make_shared<Buffer>(context_, image_of(rank_, true));
    if (layout_of(rank_).one_base)
      in_ = out_;
    else if (in_blocks(rank_) > 0 && !(scatters && in_place(rank_)))
      in_ = std::make_shared<Buffer>(context_, image_of(rank_, false));
  }
  give();
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
    const Side& theirs = side_of(from, !theirs_in_place);
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
  if (in_ && in_ != out_) in_->report(context_, label);
}

void Collective::free_handles(bool now) {
  if (now) {
    out_args_.free_types(context_);
    in_args_.free_types(context_);
    if (own_op_) CALL(context_, Op_free, Gone{&op_});
    own_op_ = false;
  }
}

}  // namespace bestride::fuzz
