// SPDX-License-Identifier: Apache-2.0
// Shifts along a ring by the combined calls, and a receive whose count is much larger than the message.
#include <sys/mman.h>

#include "tests/fuzz/programs/common.h"
#include "tests/fuzz/programs/received.hpp"

namespace bestride::fuzz {

void exchange(Context& context, const Step& step) {
  Random common(seed_of(step, 1));
  CommSlot& slot = context.pick_comm(common, 2);
  const bool replace = common.chance(35), nonblocking = common.chance(15), ring = common.chance(70) || nonblocking,
             any_source = common.chance(30), any_tag = common.chance(20);
  Shape shape = pick_shape(context, common, step, block_bytes(common, step.size));
  // MPICH 4.0.2 frees a derived type once too often in MPI_Isendrecv, does not set the status, and crashes with
  // MPI_PROC_NULL. MPI_Sendrecv_replace sends contiguous data, so fragments of several basic types may end inside an
  // element.
  if (nonblocking) shape = *Shape::of(test::named("int"), shape.bytes() / 4 + 1);
  const int shift = static_cast<int>(common.between(1, 5));
  const int more = common.chance(30) && uniform(shape) ? 1 : 0;
  if (slot.mine < 0) return;
  const Group& group = slot.group();
  const int n = group.size(), k = shift % n, tag = step.number % 1000 * 8;
  const auto rank_at = [&](int r) { return ring || (r >= 0 && r < n) ? (r % n + n) % n : MPI_PROC_NULL; };
  const int to = rank_at(slot.rank + k), from = rank_at(slot.rank - k);
  const auto sent_by = [&](int r) {
    Random spelling(seed_of(step, 3, static_cast<std::uint64_t>(r)));
    Shape sent = respell(spelling, shape, nonblocking ? 0 : step.types, false);
    return sent;
  };
  const auto image_of = [&](int r, const Shape& sent) {
    return Image{seed_of(step, 4, static_cast<std::uint64_t>(r)), 0, sent.low(sent.count), sent.high(sent.count)};
  };

  Received received;
  const Shape mine = sent_by(slot.rank);
  Random spelling(seed_of(step, 5, static_cast<std::uint64_t>(slot.rank)));
  received.posted = replace ? mine : respell(spelling, shape, nonblocking ? 0 : step.types, false);
  if (!replace) received.posted.count += more;
  const Image out_image = image_of(slot.rank, mine);
  received.buffer = replace ? std::make_shared<Buffer>(context, out_image)
                            : make_buffer(context, received.posted, received.posted.count,
                                          seed_of(step, 6, static_cast<std::uint64_t>(slot.rank)));
  received.type = build(context, received.posted.type);
  received.source = from;
  received.tag = from == MPI_PROC_NULL ? MPI_ANY_TAG : tag;
  received.buffer->expected();
  if (from != MPI_PROC_NULL) {
    const Shape theirs = sent_by(from);
    expect_from(received, image_of(from, theirs), theirs.runs());
    received.elements = shape.count * static_cast<std::int64_t>(shape.map->size());
  }
  const int source = any_source && from != MPI_PROC_NULL ? MPI_ANY_SOURCE : from;
  const int tag_in = any_tag && source == from ? MPI_ANY_TAG : tag;
  auto operation = context.add("x");
  Status& status = operation->status;
  auto out = replace ? received.buffer : std::make_shared<Buffer>(context, out_image);
  Handle out_type = replace ? Handle{received.type.h, false} : build(context, mine.type);
  const int count = static_cast<int>(mine.count), room = static_cast<int>(received.posted.count);
  void* in_data = received.buffer->at();
  const void* out_data = out->at();
  if (nonblocking) {
    if (replace)
      CALL(context, Isendrecv_replace, in_data, count, out_type.h, to, tag, source, tag_in, slot.h, operation->request);
    else
      CALL(context, Isendrecv, out_data, count, out_type.h, to, tag, in_data, room, received.type.h, source, tag_in,
           slot.h, operation->request);
    operation->report = [this_context = &context, out, in = received.buffer] { in->report(*this_context, "x"); };
    return context.finish_step(step, {operation}, true);
  }
  if (replace) {
    CALL(context, Sendrecv_replace, in_data, count, out_type.h, to, tag, source, tag_in, slot.h, status);
  } else {
    CALL(context, Sendrecv, out_data, count, out_type.h, to, tag, in_data, room, received.type.h, source, tag_in,
         slot.h, status);
    out->expected();
    out->report(context, "x_out");
  }
  drop(context, out_type);
  report_received(context, received, status, "x");
}

void big_receive(Context& context, const Step& step) {
  // The receive buffer has more than 2 GiB, of which only the message is touched.
  const std::int64_t room = 100000000, sent = 3000 + static_cast<std::int64_t>(step.seed % 3000);
  const std::size_t bytes = 24 * static_cast<std::size_t>(room);
  const TypeExpression type = test::type_from("resized(0,24,struct([1,1,1],[0,8,16],[int,double,char]))");
  if (context.ranks != 2 || context.depth > 0) return;
  auto shape = Shape::of(type, sent);
  Image image{seed_of(step, 1), 0, 0, shape->high(sent)};
  auto buffer = std::make_shared<Buffer>(context, image);
  Handle handle = build(context, type);
  const int tag = step.number % 1000 * 8;
  if (context.rank == 0) {
    CALL(context, Send, static_cast<const void*>(buffer->at()), static_cast<int>(sent), handle.h, 1, tag,
         MPI_COMM_WORLD);
    buffer->expected();
  } else {
    void* all = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) return;
    if (context.recorder) {
      const std::string name = context.recorder->region(all, bytes, "huge");
      context.line(name + " = huge_memory(" + std::to_string(bytes) + "ull);");
    }
    Status status;
    status.id = ++context.operations;
    CALL(context, Recv, all, static_cast<int>(room), handle.h, 0, tag, MPI_COMM_WORLD, status);
    int count = 0;
    CALL(context, Get_count, status, handle.h, (Out<int>{&count}));
    context.item("count", count);
    const Bytes expected = gather(image.bytes(), image.origin(), shape->runs());
    const Bytes got = gather(Bytes(static_cast<char*>(all), static_cast<char*>(all) + 24 * sent), 0, shape->runs());
    if (expected != got || count != sent) context.say("WRONG:big receive");
    context.line("if (fuzz_digest(" + (context.recorder ? context.recorder->address(all) : "") + ", " +
                 std::to_string(24 * sent) + ") != " + std::to_string(fuzz_digest(all, 24 * sent)) +
                 "ull) wrong(\"big receive\");");
    if (context.recorder) context.recorder->forget_region(all);
    munmap(all, bytes);
  }
  buffer->report(context, "big");
  drop(context, handle);
}

}  // namespace bestride::fuzz
