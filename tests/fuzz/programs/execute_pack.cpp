// SPDX-License-Identifier: Apache-2.0
// MPI_Pack and its relatives.
#include "tests/fuzz/programs/common.h"
#include "tests/fuzz/programs/received.hpp"

namespace bestride::fuzz {

void pack(Context& context, const Step& step) {
  Random mine(seed_of(step, 1, static_cast<std::uint64_t>(context.rank)));
  Shape shape = draw_shape(mine, {block_bytes(mine, step.size), step.types});
  const std::int64_t choice = mine.between(0, 2);
  if (choice == 2) {
    const int n = static_cast<int>(shape.bytes() / 8);
    Buffer in(context, {seed_of(step, 2), 1, 0, 8 * n}), inout(context, {seed_of(step, 3), 1, 0, 8 * n});
    CALL(context, Reduce_local, static_cast<const void*>(in.at()), static_cast<void*>(inout.at()), n, MPI_DOUBLE,
         MPI_SUM);
    in.expected();
    in.report(context, "in");
    inout.report(context, "inout");
    return;
  }
  const Shape other = respell(mine, shape, step.types, false);
  Handle type = build(context, shape.type), other_type = build(context, other.type);
  const int bytes = static_cast<int>(shape.bytes()), count = static_cast<int>(shape.count),
            other_count = static_cast<int>(other.count);
  auto from = make_buffer(context, shape, shape.count, seed_of(step, 4));
  auto to = make_buffer(context, other, other.count, seed_of(step, 5));
  Buffer packed(context, {seed_of(step, 6), 0, 0, bytes + 40});
  const bool external = choice == 1;
  // external32 swaps the bytes, and some types such as long double have another size.
  if (external) {
    bool plain = uniform(shape) && elements_known(shape.type) && elements_known(other.type);
    for (const auto& leaf : *shape.map)
      plain &= leaf.type->name == "int" || leaf.type->name == "double" || leaf.type->name == "byte" ||
               leaf.type->name == "short";
    if (plain) {
      MPI_Aint at = 0, back = 0, size = 0;
      CALL(context, Pack_external_size, (const char*)"external32", count, type.h, (Out<MPI_Aint>{&size}));
      context.item("external", size);
      CALL(context, Pack_external, (const char*)"external32", static_cast<const void*>(from->at()), count, type.h,
           static_cast<void*>(packed.at()), static_cast<MPI_Aint>(bytes + 20), (Out<MPI_Aint>{&at}));
      CALL(context, Unpack_external, (const char*)"external32", static_cast<const void*>(packed.at()),
           static_cast<MPI_Aint>(bytes + 20), (Out<MPI_Aint>{&back}), static_cast<void*>(to->at()), other_count,
           other_type.h);
      context.item("at", at);
    }
  } else {
    int size = 0, at = 5, back = 5;
    CALL(context, Pack_size, count, type.h, MPI_COMM_WORLD, (Out<int>{&size}));
    context.item("pack_size", size);
    context.line("at_pack = at_unpack = 5;");
    const int room = bytes + 30;
    CALL(context, Pack, static_cast<const void*>(from->at()), count, type.h, static_cast<void*>(packed.at()), room,
         (Position{&at, "at_pack"}), MPI_COMM_WORLD);
    CALL(context, Unpack, static_cast<const void*>(packed.at()), room, (Position{&back, "at_unpack"}),
         static_cast<void*>(to->at()), other_count, other_type.h, MPI_COMM_WORLD);
    if (at != 5 + bytes || back != at) context.say("WRONG:position");
    const Bytes stream = gather(from->image().bytes(), from->image().origin(), shape.runs());
    scatter(packed.expected(), packed.image().origin(), {{5, bytes}}, stream);
    scatter(to->expected(), to->image().origin(), other.runs(), stream);
  }
  from->expected();
  from->report(context, "from");
  packed.report(context, "packed");
  to->report(context, "to");
  drop(context, type);
  drop(context, other_type);
}

}  // namespace bestride::fuzz
