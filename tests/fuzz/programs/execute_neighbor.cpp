// SPDX-License-Identifier: Apache-2.0
// Neighbor collectives on the topologies that the program has created.
#include <algorithm>

#include "tests/fuzz/programs/collective.hpp"
#include "tests/fuzz/programs/common.h"

// The call in the given form and size of counts; see collective_calls.cpp.
#define IN_SIZE(name, lower, size, ...)                                         \
  (form == Form::blocking ? CALL(context, Neighbor_##name##size, __VA_ARGS__)   \
   : form == Form::nonblocking                                                  \
       ? CALL(context, Ineighbor_##name##size, __VA_ARGS__, operation->request) \
       : CALL(context, Neighbor_##name##_init##size, __VA_ARGS__, MPI_INFO_NULL, operation->request))
#define IN_FORM(name, ...) (large ? IN_SIZE(name, name, _c, __VA_ARGS__) : IN_SIZE(name, name, , __VA_ARGS__))

namespace bestride::fuzz {
namespace {

enum Procedure { allgather, allgatherv, alltoall, alltoallv, alltoallw };

struct Call {
  const Step& step;
  const Group& group;
  Procedure procedure;
  bool derived;
  Shape base;
  std::uint64_t seed;

  bool varies() const { return procedure == allgatherv || procedure >= alltoallv; }
  Blocks form(bool out) const {
    if (procedure == alltoallw) return Blocks::typed;
    if (out && procedure <= allgatherv) return Blocks::one;
    return varies() ? Blocks::varying : Blocks::equal;
  }
  std::int64_t count(int from, int to) const {
    return varies() ? base.count * ((from + (procedure == allgatherv ? 0 : 2 * to)) % 3) / 2 : base.count;
  }
  const std::vector<int>& peers(int rank, bool out) const {
    return (out ? group.targets : group.sources)[static_cast<std::size_t>(rank)];
  }
  Spelling spelling(int rank) const { return Spelling(step, seed, rank); }

  Side side(int rank, bool out) const {
    Random random(seed + static_cast<std::uint64_t>(rank * 2 + out));
    const int types = derived ? step.types : 0;
    const bool spread = displaced(form(out)), typed = form(out) == Blocks::typed;
    const auto& list = peers(rank, out);
    const std::size_t blocks = form(out) == Blocks::one ? 1 : list.size();
    // Counts of blocks for MPI_PROC_NULL are not significant to the other ranks.
    const bool drops_nobody = random.chance(50);
    const auto spelled = [&](std::int64_t n, bool same_count) {
      Shape shape = base;
      shape.count = n;
      if (n == 0) return shape;
      const Shape other = respell(random, shape, types, same_count);
      return blocks > 1 && (other.facts.low < 0 || other.facts.high > other.facts.extent) ? shape : other;
    };
    Side side;
    const Shape one = spelled(base.count, spread);
    std::int64_t at = 0;
    for (std::size_t k = 0; k < blocks; ++k) {
      const int peer = form(out) == Blocks::one ? 0 : list[k];
      const std::int64_t n = peer == MPI_PROC_NULL && spread && drops_nobody ? 0
                             : out                                           ? count(rank, std::max(0, peer))
                                                                             : count(std::max(0, peer), rank);
      side.blocks.push_back(typed ? spelled(n, false) : one);
      Shape& block = side.blocks.back();
      if (!typed && spread) block.count = n;
      if (form(out) == Blocks::one && procedure == allgatherv) {
        block = spelled(count(rank, 0), false);
      }
      side.at.push_back(at);
      // In an alltoallw each block has its own type, so the upper bound of this block counts.
      at += typed ? std::max(block.count * block.facts.extent, block.high(block.count))
                  : block.count * block.facts.extent;
      if (spread && random.chance(50)) at += typed ? 8 : block.facts.extent;
      if (typed) at = (at + 15) / 16 * 16;
    }
    side.measure();
    side.high = std::max(side.high, at);
    return side;
  }
  Layout layout(int rank) const {
    Layout both{side(rank, true), side(rank, false)};
    if (varies() && spelling(rank).is(Way::one_base)) both.join(form(true), form(false));
    return both;
  }
  Image image(int rank, bool out, int start) const {
    const Layout both = layout(rank);
    const std::uint64_t image_seed = seed_of(step, seed, static_cast<std::uint64_t>(rank * 2 + (out || both.one_base)),
                                             static_cast<std::uint64_t>(start));
    if (both.one_base)
      return {image_seed, 0, std::min(both.out.low, both.in.low), std::max(both.out.high, both.in.high)};
    const Side& side = out ? both.out : both.in;
    return {image_seed, 0, side.low, side.high};
  }
};

/// One rank's part of a call.
struct Part {
  Context& context;
  Call call;
  int rank;
  Layout layout;
  BufferPtr out_buffer, in_buffer;  ///< the same if the layout has one base
  Arguments out, in;
  bool known = true;  ///< whether the result can be computed

  Part(Context& given, const Call& of, int me, bool large) : context(given), call(of), rank(me), layout(of.layout(me)) {
    out_buffer = std::make_shared<Buffer>(context, call.image(rank, true, 0));
    in_buffer = layout.one_base ? out_buffer : std::make_shared<Buffer>(context, call.image(rank, false, 0));
    const Spelling spelling = call.spelling(rank);
    const auto unit = [&](bool direction) {
      const Side& side = direction ? layout.out : layout.in;
      return side.blocks.empty() || call.form(direction) == Blocks::typed
                 ? 16
                 : std::max<std::int64_t>(1, side.blocks[0].facts.extent);
    };
    const bool together = layout.one_base && displaced(call.form(true));
    for (const bool direction : {true, false}) {
      Arguments::Given arguments{call.form(direction), direction, call.derived, large, true};
      if (together)
        arguments.far = far_of(spelling, true, unit(true) * unit(false));
      else if (!layout.one_base)
        arguments.far = far_of(spelling, direction, unit(direction));
      arguments.null_type = call.procedure != alltoallv && call.procedure != allgatherv;
      (direction ? out : in)
          .set(context, spelling, direction ? layout.out : layout.in, (direction ? out_buffer : in_buffer).get(),
               arguments);
    }
  }
  /// The contents of the buffers, before and after start `start`.
  void prepare(int start) {
    if (start > 0) {
      out_buffer->refill(context, call.image(rank, true, start).seed);
      if (in_buffer != out_buffer) in_buffer->refill(context, call.image(rank, false, start).seed);
    }
    out_buffer->expected();
    in_buffer->expected();
    const auto& sources = call.peers(rank, false);
    for (std::size_t j = 0; j < sources.size(); ++j) {
      if (sources[j] == MPI_PROC_NULL) continue;
      const auto& targets = call.peers(sources[j], true);
      // If two ranks are neighbors twice, the MPI library decides which block arrives where.
      known &= std::count(targets.begin(), targets.end(), rank) == 1 &&
               std::count(sources.begin(), sources.end(), sources[j]) == 1;
      const auto k =
          call.procedure <= allgatherv ? 0 : std::find(targets.begin(), targets.end(), rank) - targets.begin();
      const Image image = call.image(sources[j], true, start);
      scatter(in_buffer->expected(), in_buffer->image().origin(), layout.in.runs(static_cast<int>(j)),
              gather(image.bytes(), image.origin(), call.layout(sources[j]).out.runs(static_cast<int>(k))));
    }
    if (!known) in_buffer->expect_nothing_known();
  }
  void report(const std::string& label) {
    out_buffer->report(context, label + "_out");
    if (in_buffer != out_buffer) in_buffer->report(context, label + "_in");
  }
  void free_types() {
    out.free_types(context);
    in.free_types(context);
  }
};

int issue(Context& context, Part& part, Form form, bool large, MPI_Comm comm, const OperationPtr& operation) {
  const Arguments &out = part.out, &in = part.in;
  const Spelling spelling = part.call.spelling(part.rank);
  be_late(context, spelling);
  // MPICH compares the addresses of these arrays if both directions have one base address.
  const bool shares = spelling.is(Way::one_list) && raw(out.buffer) != raw(in.buffer);
  const List &in_counts = shares && in.counts == out.counts ? out.counts : in.counts,
             &in_at = shares && in.at == out.at ? out.at : in.at,
             &in_types = shares && in.types == out.types ? out.types : in.types;
  switch (part.call.procedure) {
    case allgather: return IN_FORM(allgather, out.buffer, out.count, out.type, in.buffer, in.count, in.type, comm);
    case allgatherv:
      return IN_FORM(allgatherv, out.buffer, out.count, out.type, in.buffer, in.counts, in.at, in.type, comm);
    case alltoall: return IN_FORM(alltoall, out.buffer, out.count, out.type, in.buffer, in.count, in.type, comm);
    case alltoallv:
      return IN_FORM(alltoallv, out.buffer, out.counts, out.at, out.type, in.buffer, in_counts, in_at, in.type, comm);
    default:
      return IN_FORM(alltoallw, out.buffer, out.counts, out.at, out.types, in.buffer, in_counts, in_at, in_types, comm);
  }
}

/// One call; a persistent one is started several times.
OperationPtr one_call(Context& context, const Call& call, Form form, const CommSlot& slot, int number) {
  const bool large = call.spelling(slot.rank).is(Way::large);
  auto part = std::make_shared<Part>(context, call, slot.rank, large);
  part->prepare(0);
  auto operation = context.add("n" + std::to_string(call.procedure) + "_" + std::to_string(number));
  operation->collective = true;
  if (issue(context, *part, form, large, slot.h, operation) != MPI_SUCCESS)
    context.say("WRONG:" + operation->label + ":rejected");
  if (form == Form::persistent) {
    for (int start = 0; start < 3; ++start) {
      if (start > 0) part->prepare(start);
      CALL(context, Start, operation->request);
      CALL(context, Wait, operation->request, operation->status);
      part->report(operation->label);
    }
    CALL(context, Request_free, operation->request);
    part->free_types();
    return nullptr;
  }
  const bool early = form == Form::blocking || (call.step.types >= 3 && context.own.chance(50));
  if (early) part->free_types();
  operation->report = [part, label = operation->label, early] {
    part->report(label);
    if (!early) part->free_types();
  };
  if (form == Form::nonblocking) return operation;
  operation->report();
  return nullptr;
}

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
  const Form form = common.chance(20) ? Form::persistent : common.chance(50) ? Form::nonblocking : Form::blocking;
  const int calls = static_cast<int>(common.chance(40) ? common.between(2, 4) : 1);
  std::vector<OperationPtr> set;
  for (int i = 0; i < calls; ++i) {
    Procedure procedure = static_cast<Procedure>(common.between(0, 4));
    // MPICH 4.0.2 loses a reference to a derived type at each start of a persistent collective.
    const bool derived = form != Form::persistent && step.types > 0;
    const Shape base = draw_shape(common, {block_bytes(common, step.size), derived ? step.types : 0, true});
    if (slot.mine < 0) continue;
    const Group& group = slot.group();
    // MPICH 4.0.2 swaps the two degrees when it copies the counts of an alltoallw.
    const auto same_degree = [](const std::vector<int>& in, const std::vector<int>& out) {
      return in.size() == out.size();
    };
    if (procedure == alltoallw &&
        !std::equal(group.sources.begin(), group.sources.end(), group.targets.begin(), same_degree))
      procedure = alltoallv;
    const Call call{step,      group,
                    procedure, derived,
                    base,      seed_of(step, 2, static_cast<std::uint64_t>(slot.mine), static_cast<std::uint64_t>(i))};
    if (OperationPtr operation = one_call(context, call, form, slot, i)) set.push_back(std::move(operation));
  }
  context.finish_step(step, std::move(set), true);
}

}  // namespace bestride::fuzz
