// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks, by every send and receive call.
//
// First all Irecvs are posted, then the messages are processed in one order that is the same on all ranks. A rank that
// waits for message i has processed all earlier ones, so there is no deadlock, even if all calls block.
#include <algorithm>

#include "tests/fuzz/programs/common.h"
#include "tests/fuzz/programs/received.hpp"

namespace bestride::fuzz {
namespace {

enum Send { send, ssend, bsend, rsend, isend, issend, ibsend, irsend };
enum Receive { irecv, recv, mrecv, imrecv, probe_recv, improbe_mrecv, iprobe_recv };

struct Message {
  int from = 0, to = 0, tag = 0;
  Send send_by = isend;
  Receive receive_by = irecv;
  Shape sent, posted;  ///< on the sender, on the receiver
  bool any_source = false, any_tag = false;
  std::int64_t bytes = 0, elements = 0;
  std::uint64_t seed = 0;
  bool big_struct = false;
};

struct Exchange {
  Context& context;
  const Step& step;
  CommSlot& slot;
  std::vector<OperationPtr> operations{};

  Image image_of(const Message& m) const { return {m.seed, 0, m.sent.low(m.sent.count), m.sent.high(m.sent.count)}; }
  /// The handle of a live type if the shape has that type, otherwise a new handle.
  Handle handle_of(const Shape& shape) {
    for (const LiveType& type : context.types)
      if (type.mine.type == shape.type && context.own.chance(70)) return {type.handle.h, false};
    return build(context, shape.type, true, step.types >= 2 && context.own.chance(20));
  }

  void post(const Message& m) {
    auto received = start(m);
    auto operation = context.add("m" + std::to_string(m.tag));
    CALL(context, Irecv, static_cast<void*>(received->buffer->at()), static_cast<int>(m.posted.count), received->type.h,
         source(m), tag(m), slot.h, operation->request);
    pend(received, operation);
  }

  std::shared_ptr<Received> start(const Message& m) {
    auto received = std::make_shared<Received>();
    received->posted = m.posted;
    received->buffer =
        make_buffer(context, m.posted, m.posted.count, seed_of(step, 50, static_cast<std::uint64_t>(m.tag)));
    received->type = handle_of(m.posted);
    received->source = m.from;
    received->tag = m.tag;
    expect_from(*received, image_of(m), m.sent.runs());
    received->elements = m.elements;
    return received;
  }
  int source(const Message& m) const { return m.any_source ? MPI_ANY_SOURCE : m.from; }
  int tag(const Message& m) const { return m.any_tag ? MPI_ANY_TAG : m.tag; }

  void pend(const std::shared_ptr<Received>& received, const OperationPtr& operation) {
    // A later step may free a live type before this receive completes.
    if (!received->type.owned || free_early(context, step, received->type)) received->type = {};
    operation->report = [this_context = &context, received, operation = operation.get()] {
      report_received(*this_context, *received, operation->status, operation->label);
    };
    operations.push_back(operation);
  }

  void receive(const Message& m) {
    auto received = start(m);
    void* buffer = received->buffer->at();
    const int count = static_cast<int>(m.posted.count);
    auto operation = context.add("m" + std::to_string(m.tag));
    MPI_Message message = MPI_MESSAGE_NULL;
    Status& status = operation->status;
    const bool matched = m.receive_by == mrecv || m.receive_by == imrecv;
    if (m.receive_by == recv) {
      CALL(context, Recv, buffer, count, received->type.h, source(m), tag(m), slot.h, status);
    } else if (m.receive_by == probe_recv || m.receive_by == iprobe_recv) {
      if (m.receive_by == probe_recv)
        CALL(context, Probe, source(m), tag(m), slot.h, status);
      else
        poll(m, nullptr, status);
      seen(m, status);
      CALL(context, Recv, buffer, count, received->type.h, status.s.MPI_SOURCE, status.s.MPI_TAG, slot.h, status);
    } else {
      if (matched)
        CALL(context, Mprobe, source(m), tag(m), slot.h, (New{&message, "message"}), status);
      else
        poll(m, &message, status);
      seen(m, status);
      if (m.receive_by == imrecv) {
        CALL(context, Imrecv, buffer, count, received->type.h, Gone{&message}, operation->request);
        return pend(received, operation);
      }
      CALL(context, Mrecv, buffer, count, received->type.h, Gone{&message}, status);
    }
    report_received(context, *received, status, operation->label);
  }
  void poll(const Message& m, MPI_Message* message, Status& status) {
    std::string name;
    if (context.recorder) {
      if (message) name = context.recorder->fresh("message", "int");
      context.line(std::string("poll(") + std::to_string(source(m)) + ", " + std::to_string(tag(m)) + ", " +
                   context.recorder->handle(slot.h) + ", " + (message ? "&" + name : "0") + ", &st[" +
                   std::to_string(status.id) + "]);");
    }
    for (int flag = 0; !flag;)
      if (message)
        MPI_Improbe(source(m), tag(m), slot.h, &flag, message, &status.s);
      else
        MPI_Iprobe(source(m), tag(m), slot.h, &flag, &status.s);
    if (message && context.recorder) context.recorder->bind(*message, name);
  }
  void seen(const Message& m, Status& status) {
    int bytes = 0;
    CALL(context, Get_count, status, MPI_BYTE, (Out<int>{&bytes}));
    if (status.s.MPI_SOURCE != m.from || status.s.MPI_TAG != m.tag || bytes != m.bytes)
      context.say("WRONG:probe of m" + std::to_string(m.tag));
  }

  void transmit(const Message& m) {
    auto buffer = std::make_shared<Buffer>(context, image_of(m));
    buffer->expected();
    Handle type = handle_of(m.sent);
    const void* data = buffer->at();
    const int count = static_cast<int>(m.sent.count);
    const std::string label = "s" + std::to_string(m.tag);
    if (m.send_by <= rsend) {
      if (m.send_by == send) CALL(context, Send, data, count, type.h, m.to, m.tag, slot.h);
      if (m.send_by == ssend) CALL(context, Ssend, data, count, type.h, m.to, m.tag, slot.h);
      if (m.send_by == bsend) CALL(context, Bsend, data, count, type.h, m.to, m.tag, slot.h);
      if (m.send_by == rsend) CALL(context, Rsend, data, count, type.h, m.to, m.tag, slot.h);
      drop(context, type);
      return buffer->report(context, label);
    }
    auto operation = context.add(label);
    if (m.send_by == isend) CALL(context, Isend, data, count, type.h, m.to, m.tag, slot.h, operation->request);
    if (m.send_by == issend) CALL(context, Issend, data, count, type.h, m.to, m.tag, slot.h, operation->request);
    if (m.send_by == ibsend) CALL(context, Ibsend, data, count, type.h, m.to, m.tag, slot.h, operation->request);
    if (m.send_by == irsend) CALL(context, Irsend, data, count, type.h, m.to, m.tag, slot.h, operation->request);
    const bool gone = free_early(context, step, type);
    // On a communicator of one rank, MPICH 4.0.2 leaves a freed request in its queue.
    if (context.own.chance(10) && step.pend && slot.group().size() > 1) {
      CALL(context, Request_free, operation->request);
      if (!gone) drop(context, type);
      context.kept.push_back(buffer);
      return;
    }
    operation->send = true;
    operation->report = [this_context = &context, buffer, label, type]() mutable {
      buffer->report(*this_context, label);
      drop(*this_context, type);
    };
    operations.push_back(operation);
  }
};

/// A long struct of several basic types. Both sides have the same map with gaps, so MPICH does not split an element.
std::optional<Shape> long_struct(Random& common, const Step& step) {
  if (step.size == 0 || step.types == 0 || !common.chance(25)) return std::nullopt;
  using namespace test;
  const TypeExpression types[] = {
      structure({1, 1}, {0, 8}, {named("int"), named("double")}),
      resized(0, 24, structure({1, 1, 1}, {0, 8, 16}, {named("int"), named("double"), named("char")})),
      resized(0, 32, structure({3, 1, 2}, {0, 8, 20}, {named("char"), named("double"), named("int")})),
      named("double_int"), contiguous(1, named("double_int"))};
  const TypeExpression& type = common.pick(types);
  return Shape::of(type, std::min<std::int64_t>(10000, block_bytes(common, step.size) / 16 + 1));
}

Message draw(Context& context, const Step& step, Random& common, const Group& group, int number) {
  Message m;
  m.tag = step.number % 1000 * 8 + number;
  m.from = static_cast<int>(common.between(0, group.size() - 1));
  m.to = static_cast<int>(common.between(0, group.size() - 1));
  if (m.from == m.to && common.chance(70)) m.to = (m.to + 1) % group.size();
  m.send_by = static_cast<Send>(common.between(0, 7));
  m.receive_by = static_cast<Receive>(common.chance(40) ? 0 : common.between(0, 6));
  if (!context.program->buffer && (m.send_by == bsend || m.send_by == ibsend)) m.send_by = isend;
  if (m.from == m.to && m.send_by <= rsend) m.send_by = isend;
  if (m.send_by == rsend || m.send_by == irsend) m.receive_by = irecv;
  // MPICH 4.0.2 over UCX crashes in some matched receives of messages from the same rank.
  if (m.from == m.to && (m.receive_by == mrecv || m.receive_by == imrecv || m.receive_by == improbe_mrecv))
    m.receive_by = recv;
  m.any_source = common.chance(30);
  m.any_tag = common.chance(20);
  m.seed = seed_of(step, 60, static_cast<std::uint64_t>(number));
  Random spelling(seed_of(step, 61, static_cast<std::uint64_t>(number)));
  if (const auto big = long_struct(common, step)) {
    m.sent = m.posted = *big;
    m.big_struct = true;
    if (m.send_by == bsend || m.send_by == ibsend) m.send_by = isend;
    m.bytes = big->bytes();
    m.elements = m.bytes / 4;
    return m;
  }
  const Shape shape = pick_shape(context, common, step, block_bytes(common, step.size));
  m.sent = respell(spelling, shape, step.types, false);
  m.posted = respell(spelling, shape, step.types, false);
  m.bytes = shape.bytes();
  m.elements = shape.count * static_cast<std::int64_t>(shape.map->size());
  if (m.send_by == bsend || m.send_by == ibsend) {
    if (m.bytes > 30000) m.send_by = isend;
  }
  const bool small = m.bytes <= 4000;
  if (common.chance(25) && (small || uniform(shape)))
    m.posted.count += common.between(1, 2);  // fewer elements arrive than posted
  if (common.chance(15) && small) {
    const std::int64_t leaves = common.between(1, m.elements);
    if (const auto part = prefix(spelling, shape, leaves)) {
      m.sent = *part;
      m.bytes = part->bytes();
      m.elements = leaves;
    }
  }
  return m;
}

}  // namespace

void messages(Context& context, const Step& step) {
  Random common(seed_of(step, 1));
  CommSlot& slot = context.pick_comm(common);
  const int n = static_cast<int>(common.between(1, 4));
  const bool to_nobody = common.chance(10);
  const std::uint64_t drawn = common.bits();
  if (slot.mine < 0) return;
  const Group& group = slot.group();
  Random of_group(drawn + static_cast<std::uint64_t>(slot.mine));
  std::vector<Message> all;
  for (int i = 0; i < n; ++i) all.push_back(draw(context, step, of_group, group, i));
  bool ready = false;
  for (Message& m : all) {
    ready |= m.send_by == rsend || m.send_by == irsend;
    // An ANY_TAG receive has a defined message only if there is a single one from that rank. With ANY_SOURCE as well, a
    // message of a later step could match.
    const auto same_pair =
        std::count_if(all.begin(), all.end(), [&](const Message& o) { return o.from == m.from && o.to == m.to; });
    if (same_pair > 1 || m.any_source) m.any_tag = false;
  }
  Exchange exchange{context, step, slot};
  std::vector<const Message*> posted;
  for (const Message& m : all)
    if (m.to == slot.rank && m.receive_by == irecv) posted.push_back(&m);
  if (posted.size() > 1 && context.own.chance(50)) std::swap(posted.front(), posted.back());
  for (const Message* m : posted) exchange.post(*m);
  if (ready) CALL(context, Barrier, slot.h);
  for (const Message& m : all) {
    if (m.from == slot.rank) exchange.transmit(m);
    if (m.to == slot.rank && m.receive_by != irecv) exchange.receive(m);
  }
  if (to_nobody) {
    int nothing = 5, count = 0;
    Status status;
    status.id = ++context.operations;
    CALL(context, Send, static_cast<const void*>(nullptr), 0, MPI_INT, MPI_PROC_NULL, 3, slot.h);
    CALL(context, Recv, static_cast<void*>(nullptr), 0, MPI_INT, MPI_PROC_NULL, 3, slot.h, status);
    CALL(context, Get_count, status, MPI_INT, (Out<int>{&count}));
    if (status.s.MPI_SOURCE != MPI_PROC_NULL || status.s.MPI_TAG != MPI_ANY_TAG || count != 0 || nothing != 5)
      context.say("WRONG:nobody");
  }
  context.finish_step(step, std::move(exchange.operations), true);
}

}  // namespace bestride::fuzz
