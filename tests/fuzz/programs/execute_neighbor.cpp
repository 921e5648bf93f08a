// SPDX-License-Identifier: Apache-2.0
// Neighbour collectives on the topologies that the program has created.
#include <algorithm>

#include "tests/fuzz/programs/collective.hpp"
#include "tests/fuzz/programs/common.h"

#define IN_FORM(name, lower, ...)                                                  \
  (nonblocking ? CALL(context, Ineighbor_##lower, __VA_ARGS__, operation->request) \
               : CALL(context, Neighbor_##lower, __VA_ARGS__))

namespace bestride::fuzz {
namespace {

enum Procedure { allgather, allgatherv, alltoall, alltoallv, alltoallw };

struct Blocks {
  std::vector<Shape> shapes;
  std::vector<std::int64_t> at;
  std::int64_t high = 0;
  Runs runs(std::size_t k) const { return shifted(shapes[k].runs(), at[k]); }
};

struct Call {
  const Step& step;
  const Group& group;
  Procedure procedure;
  Shape base;
  std::uint64_t seed;

  bool varies() const { return procedure == allgatherv || procedure >= alltoallv; }
  std::int64_t count(int from, int to) const {
    return varies() ? base.count * ((from + (procedure == allgatherv ? 0 : 2 * to)) % 3) / 2 : base.count;
  }
  const std::vector<int>& peers(int rank, bool out) const {
    return (out ? group.targets : group.sources)[static_cast<std::size_t>(rank)];
  }

  Blocks blocks(int rank, bool out) const {
    Random random(seed + static_cast<std::uint64_t>(rank * 2 + out));
    Blocks result;
    Shape one = respell(random, base, step.types, true);
    const bool single = out && procedure <= allgatherv;
    std::int64_t at = 0;
    const auto& list = peers(rank, out);
    for (std::size_t k = 0; k < (single ? 1 : list.size()); ++k) {
      if (procedure == alltoallw) one = respell(random, base, step.types, true);
      Shape block = one;
      const int peer = single ? 0 : std::max(0, list[k]);
      block.count = out ? count(rank, peer) : count(peer, rank);
      result.shapes.push_back(block);
      result.at.push_back(at);
      result.high = std::max(result.high, at + block.high(block.count));
      // In an alltoallw each block has its own type, so the upper bound of this block counts.
      at += procedure == alltoallw ? std::max(block.count * block.facts.extent, block.high(block.count))
                                   : block.count * block.facts.extent;
      if (varies() && random.chance(50)) at += procedure == alltoallw ? 8 : block.facts.extent;
      if (procedure == alltoallw) at = (at + 15) / 16 * 16;
    }
    result.high = std::max(result.high, at);
    return result;
  }
  Image image(int rank, bool out) const {
    return {seed_of(step, seed, static_cast<std::uint64_t>(rank * 2 + out)), 0, 0, blocks(rank, out).high};
  }
};

struct Given {
  std::vector<int> counts, at;
  std::vector<MPI_Aint> bytes;
  std::vector<MPI_Datatype> types;
  std::vector<Handle> handles;
  MPI_Datatype type = MPI_INT;
  int count = 0;
  BufferPtr buffer;

  Given(Context& context, const Call& call, int rank, bool out) {
    const Blocks blocks = call.blocks(rank, out);
    buffer = std::make_shared<Buffer>(context, call.image(rank, out));
    buffer->expected();
    for (std::size_t k = 0; k < blocks.shapes.size(); ++k) {
      if (k == 0 || call.procedure == alltoallw) handles.push_back(build(context, blocks.shapes[k].type));
      type = handles.back().h;
      types.push_back(type);
      count = static_cast<int>(blocks.shapes[k].count);
      counts.push_back(count);
      at.push_back(static_cast<int>(blocks.at[k] / blocks.shapes[k].facts.extent));
      bytes.push_back(blocks.at[k]);
    }
    // MPICH checks the arrays even if there is no neighbour.
    if (blocks.shapes.empty()) counts.push_back(0), at.push_back(0), bytes.push_back(0), types.push_back(MPI_INT);
  }
};

}  // namespace

void neighbor(Context& context, const Step& step) {
  Random common(seed_of(step, 1));
  std::vector<std::size_t> fit;
  for (std::size_t i = 0; i < context.comms.size(); ++i)
    if (!context.comms[i].closed && !context.comms[i].groups.empty() &&
        context.comms[i].groups[0].topology != Topology::none)
      fit.push_back(i);
  if (fit.empty()) return;
  CommSlot& slot = context.comms[common.pick(fit)];
  Procedure procedure = static_cast<Procedure>(common.between(0, 4));
  const bool nonblocking = common.chance(50);
  Shape base = draw_shape(common, {block_bytes(common, step.size), step.types, true});
  if (slot.mine < 0) return;
  const Group& group = slot.group();
  // MPICH 4.0.2 swaps the two degrees when it copies the counts of an alltoallw.
  const auto same_degree = [](const std::vector<int>& in, const std::vector<int>& out) {
    return in.size() == out.size();
  };
  if (procedure == alltoallw &&
      !std::equal(group.sources.begin(), group.sources.end(), group.targets.begin(), same_degree))
    procedure = alltoallv;
  const Call call{step, group, procedure, base, seed_of(step, 2, static_cast<std::uint64_t>(slot.mine))};
  auto out = std::make_shared<Given>(context, call, slot.rank, true),
       in = std::make_shared<Given>(context, call, slot.rank, false);
  const auto& sources = call.peers(slot.rank, false);
  const Blocks mine = call.blocks(slot.rank, false);
  bool known = true;
  for (std::size_t j = 0; j < sources.size(); ++j) {
    if (sources[j] == MPI_PROC_NULL) continue;
    const auto& targets = call.peers(sources[j], true);
    // If two ranks are neighbours twice, the MPI library decides which block arrives where.
    known &= std::count(targets.begin(), targets.end(), slot.rank) == 1 &&
             std::count(sources.begin(), sources.end(), sources[j]) == 1;
    const auto k = procedure <= allgatherv ? 0 : std::find(targets.begin(), targets.end(), slot.rank) - targets.begin();
    const Image image = call.image(sources[j], true);
    scatter(in->buffer->expected(), in->buffer->image().origin(), mine.runs(j),
            gather(image.bytes(), image.origin(), call.blocks(sources[j], true).runs(static_cast<std::size_t>(k))));
  }
  if (!known) in->buffer->expect_nothing_known();
  auto operation = context.add("n" + std::to_string(procedure));
  operation->collective = true;
  const void* from = out->buffer->at();
  void* to = in->buffer->at();
  switch (procedure) {
    case allgather: IN_FORM(Allgather, allgather, from, out->count, out->type, to, in->count, in->type, slot.h); break;
    case allgatherv:
      IN_FORM(Allgatherv, allgatherv, from, out->count, out->type, to, in->counts, in->at, in->type, slot.h);
      break;
    case alltoall: IN_FORM(Alltoall, alltoall, from, out->count, out->type, to, in->count, in->type, slot.h); break;
    case alltoallv:
      IN_FORM(Alltoallv, alltoallv, from, out->counts, out->at, out->type, to, in->counts, in->at, in->type, slot.h);
      break;
    default:
      IN_FORM(Alltoallw, alltoallw, from, out->counts, out->bytes, out->types, to, in->counts, in->bytes, in->types,
              slot.h);
  }
  const auto drop_all = [this_context = &context, out, in] {
    for (auto* side : {out.get(), in.get()})
      for (Handle& handle : side->handles) drop(*this_context, handle);
  };
  const bool early = !nonblocking || (step.types >= 3 && context.own.chance(50));
  if (early) drop_all();
  operation->report = [this_context = &context, operation = operation.get(), out, in, early, drop_all] {
    out->buffer->report(*this_context, operation->label + "_out");
    in->buffer->report(*this_context, operation->label + "_in");
    if (!early) drop_all();
  };
  if (!nonblocking) return operation->report();
  context.finish_step(step, {operation}, true);
}

}  // namespace bestride::fuzz
