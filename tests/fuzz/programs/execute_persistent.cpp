// SPDX-License-Identifier: Apache-2.0
// Persistent and partitioned requests. All members create them in the same order; each rank starts them in its own
// order.
#include <algorithm>

#include "tests/fuzz/programs/collective.hpp"
#include "tests/fuzz/programs/common.h"

namespace bestride::fuzz {
namespace {

constexpr std::size_t max_sets = 4;

void collectives(Context& context, const Step& step, const CommSlot& slot, int n, PersistentSet& set) {
  for (int i = 0; i < n; ++i) {
    // Only predefined types: MPICH 4.0.2 loses a reference to a derived type at each start of a persistent collective.
    auto one = std::make_shared<Collective>(context, step, slot, Form::persistent, i);
    auto operation = context.add("p_" + one->label);
    operation->collective = operation->persistent = true;
    one->issue(operation->request);
    operation->report = [one] { one->report(); };
    set.members.push_back({operation, [one](int start) { one->prepare(start); }});
  }
}

void messages_of(Context& context, const Step& step, const CommSlot& slot, int n, Random common, PersistentSet& set) {
  const int size = slot.group().size();
  for (int i = 0; i < n; ++i) {
    const int from = static_cast<int>(common.between(0, size - 1)),
              to = static_cast<int>((from + common.between(1, 5)) % size);
    const Shape shape = draw_shape(common, {block_bytes(common, step.size), step.types});
    std::int64_t send_by = common.between(0, 3);
    if (send_by == 1 && (!context.program->buffer || shape.bytes() > 30000)) send_by = 0;
    set.barrier |= send_by == 3;
    Random spelling(seed_of(step, 5, static_cast<std::uint64_t>(i)));
    const Shape sent = respell(spelling, shape, step.types, false),
                posted = respell(spelling, shape, step.types, false);
    const int tag = step.number % 1000 * 8 + i;
    const auto image = [=, &step](int start) {
      return Image{seed_of(step, 6, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(start)), 0,
                   sent.low(sent.count), sent.high(sent.count)};
    };
    if (to == slot.rank) {
      auto received = std::make_shared<Received>();
      received->posted = posted;
      received->source = from, received->tag = tag,
      received->elements = shape.count * static_cast<std::int64_t>(shape.map->size());
      received->buffer = make_buffer(context, posted, posted.count, seed_of(step, 7, static_cast<std::uint64_t>(i)));
      auto operation = context.add("p" + std::to_string(tag));
      operation->persistent = true;
      Handle type = build(context, posted.type);
      CALL(context, Recv_init, static_cast<void*>(received->buffer->at()), static_cast<int>(posted.count), type.h, from,
           tag, slot.h, operation->request);
      drop(context, type);
      operation->report = [this_context = &context, received, operation = operation.get()] {
        report_received(*this_context, *received, operation->status, operation->label);
      };
      const std::uint64_t seed = seed_of(step, 7, static_cast<std::uint64_t>(i));
      set.members.push_back({operation, [this_context = &context, received, image, sent, seed](int start) {
                               received->buffer->refill(*this_context, seed + static_cast<std::uint64_t>(start));
                               expect_from(*received, image(start), sent.runs());
                             }});
    }
    if (from == slot.rank) {
      auto buffer = std::make_shared<Buffer>(context, image(0));
      auto operation = context.add("ps" + std::to_string(tag));
      operation->persistent = operation->send = true;
      Handle type = build(context, sent.type);
      const void* data = buffer->at();
      const int count = static_cast<int>(sent.count);
      if (send_by == 0) CALL(context, Send_init, data, count, type.h, to, tag, slot.h, operation->request);
      if (send_by == 1) CALL(context, Bsend_init, data, count, type.h, to, tag, slot.h, operation->request);
      if (send_by == 2) CALL(context, Ssend_init, data, count, type.h, to, tag, slot.h, operation->request);
      if (send_by == 3) CALL(context, Rsend_init, data, count, type.h, to, tag, slot.h, operation->request);
      drop(context, type);
      operation->report = [this_context = &context, buffer, label = operation->label] {
        buffer->report(*this_context, label);
      };
      set.members.push_back({operation, [this_context = &context, buffer, image](int start) {
                               buffer->refill(*this_context, image(start).seed);
                               buffer->expected();
                             }});
    }
  }
}

/// Completes the started operations that are still pending.
void complete_started(Context& context, const PersistentSet& set) {
  std::vector<OperationPtr> running, others;
  for (auto& operation : context.pending) {
    const bool member = std::any_of(set.members.begin(), set.members.end(),
                                    [&](const auto& one) { return one.operation == operation; });
    (member ? running : others).push_back(operation);
  }
  context.pending = std::move(others);
  complete(context, std::move(running));
}

}  // namespace

void make_persistent(Context& context, const Step& step) {
  if (context.persistent.size() >= max_sets) return;
  Random common(seed_of(step, 1));
  const bool collective = common.chance(60);
  CommSlot& slot = context.pick_comm(common, collective ? 1 : 2);
  const int n = static_cast<int>(common.between(1, 4));
  const std::uint64_t drawn = common.bits();  // on all ranks, so that ranks that are not members stay in step
  PersistentSet set;
  set.comm = static_cast<std::size_t>(&slot - context.comms.data());
  if (slot.mine >= 0) {
    if (collective)
      collectives(context, step, slot, n, set);
    else
      messages_of(context, step, slot, n, Random(drawn + static_cast<std::uint64_t>(slot.mine)), set);
  }
  context.persistent.push_back(std::move(set));
  Step first = step;
  first.seed += 1;
  if (common.chance(60)) start_persistent(context, first);
}

void start_persistent(Context& context, const Step& step) {
  if (context.persistent.empty()) return make_persistent(context, step);
  Random common(seed_of(step, 1));
  PersistentSet& set = context.persistent[common.bits() % context.persistent.size()];
  const CommSlot& slot = context.comms[set.comm];
  const int start = set.starts++;
  if (slot.mine < 0) return;
  complete_started(context, set);
  std::vector<PersistentSet::Member*> order;
  for (auto& member : set.members) order.push_back(&member);
  for (auto* member : order) member->prepare(start);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[static_cast<std::size_t>(context.own.between(0, static_cast<std::int64_t>(i) - 1))]);
  if (set.barrier)
    std::stable_partition(order.begin(), order.end(), [](const auto* member) { return !member->operation->send; });
  bool before = set.barrier;
  std::vector<OperationPtr> started;
  // MPI_Startall of MPICH 4.0.2 does not start persistent collectives.
  const bool collectives = !order.empty() && order[0]->operation->collective;
  if (!set.barrier && !order.empty() && !collectives && context.own.chance(30)) {
    std::vector<MPI_Request> requests;
    std::string ids;
    for (auto* member : order) {
      requests.push_back(member->operation->request.h);
      ids += std::to_string(member->operation->request.id) + ",";
      started.push_back(member->operation);
    }
    context.line("start_all(" + std::to_string(requests.size()) + ", (int[]){" + ids + "-1});");
    if (MPI_Startall(static_cast<int>(requests.size()), requests.data()) != MPI_SUCCESS) context.say("!Startall");
  } else {
    for (auto* member : order) {
      if (before && member->operation->send) {
        CALL(context, Barrier, slot.h);  // after this the receives of ready sends are posted
        before = false;
      }
      CALL(context, Start, member->operation->request);
      started.push_back(member->operation);
    }
  }
  if (before) CALL(context, Barrier, slot.h);
  context.finish_step(step, std::move(started), true);
}

void free_persistent(Context& context, const Step& step) {
  if (context.persistent.empty() || context.depth > 0) return;
  Random common(seed_of(step, 1));
  const auto at = static_cast<std::ptrdiff_t>(common.bits() % context.persistent.size());
  PersistentSet& set = context.persistent[static_cast<std::size_t>(at)];
  complete_started(context, set);
  for (auto& member : set.members) CALL(context, Request_free, member.operation->request);
  context.persistent.erase(context.persistent.begin() + at);
}

void partitioned(Context& context, const Step& step) {
  Random common(seed_of(step, 1));
  CommSlot& slot = context.pick_comm(common, 2);
  const int partitions = static_cast<int>(common.between(1, 5)), rounds = static_cast<int>(common.between(1, 2));
  const int count = static_cast<int>(block_bytes(common, step.size) / 8 / partitions) + 1;
  if (slot.mine < 0 || slot.group().size() < 2) return;
  const int n = slot.group().size(), from = static_cast<int>(common.between(0, n - 1)), to = (from + 1) % n,
            tag = step.number % 1000 * 8;
  if (slot.rank != from && slot.rank != to) return;
  const bool sends = slot.rank == from;
  Buffer buffer(context, {seed_of(step, 2, sends), 0, 0, std::int64_t{8} * count * partitions});
  Request request;
  request.id = ++context.operations;
  Status status;
  status.id = request.id;
  if (sends)
    CALL(context, Psend_init, static_cast<const void*>(buffer.at()), partitions, static_cast<MPI_Count>(count),
         MPI_DOUBLE, to, tag, slot.h, MPI_INFO_NULL, request);
  else
    CALL(context, Precv_init, static_cast<void*>(buffer.at()), partitions, static_cast<MPI_Count>(count), MPI_DOUBLE,
         from, tag, slot.h, MPI_INFO_NULL, request);
  for (int round = 0; round < rounds; ++round) {
    CALL(context, Start, request);
    if (sends)
      for (int p = 0; p < partitions; ++p) CALL(context, Pready, (p + step.number) % partitions, (Value{&request}));
    CALL(context, Wait, request, status);
    if (!sends) {
      Image theirs{seed_of(step, 2, true), 0, 0, buffer.image().high};
      scatter(buffer.expected(), buffer.image().origin(), {{0, theirs.high}},
              gather(theirs.bytes(), theirs.origin(), {{0, theirs.high}}));
    }
    buffer.report(context, "partitioned");
  }
  CALL(context, Request_free, request);
}

}  // namespace bestride::fuzz
