// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/programs/received.hpp"

#include <algorithm>

#include "tests/fuzz/programs/common.h"

namespace bestride::fuzz {

bool elements_known(const TypeExpression& type) {
  if (type.combiner == test::Combiner::subarray || type.combiner == test::Combiner::darray) return false;
  return std::all_of(type.children.begin(), type.children.end(), elements_known);
}

BufferPtr make_buffer(Context& context, const Shape& shape, std::int64_t times, std::uint64_t seed, int kind) {
  return std::make_shared<Buffer>(context, Image{seed, kind, shape.low(times), shape.high(times)});
}

void expect_from(Received& received, const Image& sender, const Runs& sent) {
  const Bytes bytes = gather(sender.bytes(), sender.origin(), sent);
  scatter(received.buffer->expected(), received.buffer->image().origin(), received.posted.runs(), bytes);
  received.bytes = static_cast<std::int64_t>(bytes.size());
}

void report_received(Context& context, Received& received, Status& status, const std::string& label) {
  received.buffer->report(context, label);
  if (status.s.MPI_SOURCE != received.source || status.s.MPI_TAG != received.tag)
    context.say("WRONG:" + label + ":source " + std::to_string(status.s.MPI_SOURCE) + " tag " +
                std::to_string(status.s.MPI_TAG));
  context.line("status(\"" + label + "\", &st[" + std::to_string(status.id) + "], " + std::to_string(received.source) +
               ", " + std::to_string(received.tag) + ");");
  const std::int64_t size = received.posted.facts.size;
  if (received.type.h == MPI_DATATYPE_NULL) received.type = build(context, received.posted.type);
  int count = -5;
  CALL(context, Get_count, status, received.type.h, (Out<int>{&count}));
  const std::int64_t whole = received.bytes % size ? MPI_UNDEFINED : received.bytes / size;
  context.item("count", count);
  if (count != whole) context.say("WRONG:" + label + ":count instead of " + std::to_string(whole));
  if (elements_known(received.posted.type) && uniform(received.posted)) {
    int elements = -5;
    MPI_Count more = -5;
    CALL(context, Get_elements, status, received.type.h, (Out<int>{&elements}));
    CALL(context, Get_elements_x, status, received.type.h, (Out<MPI_Count>{&more}));
    context.item("elements", elements);
    if (elements != received.elements || more != elements)
      context.say("WRONG:" + label + ":elements instead of " + std::to_string(received.elements));
  }
  drop(context, received.type);
}

Shape pick_shape(Context& context, Random& common, const Step& step, std::int64_t bytes) {
  const bool live = common.chance(50);
  const std::uint64_t which = common.bits();
  Shape drawn = draw_shape(common, {bytes, step.types});
  if (!live || context.types.empty() || step.types == 0) return drawn;
  Shape shape = context.types[which % context.types.size()].shape;
  shape.count = std::max<std::int64_t>(
      1, std::min<std::int64_t>(bytes / shape.facts.size, 60000 / static_cast<std::int64_t>(shape.map->size())));
  if (!uniform(shape) && shape.bytes() > 4000) shape.count = std::max<std::int64_t>(1, 4000 / shape.facts.size);
  return sound(shape.type, shape.count + 3) ? shape : drawn;
}

bool free_early(Context& context, const Step& step, Handle& type) {
  if (step.types < 3 || !type.owned || !context.own.chance(40)) return false;
  drop(context, type);
  return true;
}

}  // namespace bestride::fuzz
