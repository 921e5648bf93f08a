// SPDX-License-Identifier: Apache-2.0
// One-sided communication, from the creation of a window to its end, while other operations stay pending.
#include "tests/fuzz/programs/common.h"
#include "tests/fuzz/programs/received.hpp"

namespace bestride::fuzz {

void window(Context& context, const Step& step) {
  Random common(seed_of(step, 1));
  CommSlot& slot = context.pick_comm(common);
  const bool locks = common.chance(40), allocate = common.chance(25);
  const int action = static_cast<int>(common.between(0, 3));
  const bool typed = step.types > 0 && common.chance(60);
  const int n = static_cast<int>(std::min<std::int64_t>(block_bytes(common, step.size), 65536) / 8) + 1,
            shift = static_cast<int>(common.between(0, 3));
  if (slot.mine < 0) return;
  const int size = slot.group().size(), target = (slot.rank + shift) % size,
            origin = (slot.rank + size - shift % size) % size;
  // Elements 0, 2, 4... of the window if a type is used, otherwise all elements.
  const std::int64_t bytes = 16 * n;
  const auto image = [&](int rank, int what) {
    return Image{seed_of(step, 2, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(what)), 0, 0, bytes};
  };
  Buffer exposed(context, image(slot.rank, 0)), local(context, image(slot.rank, 1));
  Handle type;
  type.h = MPI_INT64_T;
  Runs runs{{0, 8 * n}};
  int count = n;
  if (typed) {
    const Shape shape = *Shape::of(test::vector(n, 1, 2, test::named("int64")), 1, 20000);
    type = build(context, shape.type);
    runs = shape.runs();
    count = 1;
  }
  MPI_Win win = MPI_WIN_NULL;
  char* base = exposed.at();
  if (allocate) {
    void* memory = nullptr;
    CALL(context, Win_allocate, static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, slot.h, (Out<void*>{&memory}),
         (New{&win, "win"}));
    base = static_cast<char*>(memory);
    memcpy(base, exposed.at(), static_cast<std::size_t>(bytes));
    if (context.recorder) {
      const std::string name = context.recorder->region(memory, static_cast<std::size_t>(bytes), "shared");
      context.line("{ int found; MPI_Win_get_attr(" + context.recorder->handle(win) + ", MPI_WIN_BASE, &" + name +
                   ", &found); }");
      context.line("memcpy(" + name + ", " + context.recorder->address(exposed.at()) + ", " + std::to_string(bytes) +
                   ");");
    }
  } else {
    CALL(context, Win_create, static_cast<void*>(base), static_cast<MPI_Aint>(bytes), 1, MPI_INFO_NULL, slot.h,
         (New{&win, "win"}));
  }
  if (locks) {
    CALL(context, Barrier, slot.h);
    CALL(context, Win_lock, action == 2 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, win);
  } else {
    CALL(context, Win_fence, 0, win);
  }
  const void* out = local.at();
  const MPI_Aint zero = 0;
  if (action == 0) CALL(context, Put, out, count, type.h, target, zero, count, type.h, win);
  if (action == 1) CALL(context, Accumulate, out, count, type.h, target, zero, count, type.h, MPI_SUM, win);
  if (action == 2) CALL(context, Get, static_cast<void*>(local.at()), count, type.h, target, zero, count, type.h, win);
  if (action == 3) CALL(context, Accumulate, out, count, type.h, target, zero, count, type.h, MPI_REPLACE, win);
  if (locks) {
    CALL(context, Win_unlock, target, win);
    CALL(context, Barrier, slot.h);
  } else {
    CALL(context, Win_fence, 0, win);
  }
  // The expected contents of the window and of the local buffer.
  const auto bytes_of = [&](int rank, int what) {
    return gather(image(rank, what).bytes(), image(rank, what).origin(), runs);
  };
  if (action == 2) {
    scatter(local.expected(), local.image().origin(), runs, bytes_of(target, 0));
  } else {
    local.expected();
    Bytes arrived = bytes_of(origin, 1);
    if (action == 1) {
      const Bytes before = bytes_of(slot.rank, 0);
      for (std::size_t i = 0; i + 8 <= arrived.size(); i += 8) {
        std::uint64_t x, y;
        memcpy(&x, arrived.data() + i, 8);
        memcpy(&y, before.data() + i, 8);
        x += y;
        memcpy(arrived.data() + i, &x, 8);
      }
    }
    scatter(exposed.expected(), exposed.image().origin(), runs, arrived);
  }
  if (allocate) {
    memcpy(exposed.at(), base, static_cast<std::size_t>(bytes));
    if (context.recorder)
      context.line("memcpy(" + context.recorder->address(exposed.at()) + ", " + context.recorder->address(base) + ", " +
                   std::to_string(bytes) + ");");
  }
  if (context.recorder && allocate) context.recorder->forget_region(base);
  CALL(context, Win_free, Gone{&win});
  exposed.report(context, "window");
  local.report(context, "local");
  drop(context, type);
}

}  // namespace bestride::fuzz
