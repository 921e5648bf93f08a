// SPDX-License-Identifier: Apache-2.0
// A file that all members write and read, each through its own view.
#include "tests/fuzz/programs/common.h"
#include "tests/fuzz/programs/received.hpp"

namespace bestride::fuzz {

void file(Context& context, const Step& step) {
  Random common(seed_of(step, 1));
  CommSlot& slot = context.pick_comm(common);
  const int n = static_cast<int>(std::min<std::int64_t>(block_bytes(common, step.size), 20000) / 8) + 1;
  const bool view = common.chance(60), nonblocking = common.chance(30), keep_filetype = common.chance(50);
  if (slot.mine < 0) return;
  const int size = slot.group().size();
  static int opened = 0;
  const char* folder = getenv("FUZZ_FOLDER");
  // The name is the same on all members of a group and unique, because the first rank is in no other group.
  const std::string name = std::string(folder ? folder : ".") + "/fuzz-" + std::to_string(slot.group().world[0]) + "-" +
                           std::to_string(step.seed % 1000000) + ".tmp";
  ++opened;
  MPI_File f = MPI_FILE_NULL;
  CALL(context, File_open, slot.h, name.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
       MPI_INFO_NULL, (NewFile{&f}));
  if (f == MPI_FILE_NULL) return context.say("WRONG:open");
  // With a view, a rank has every size-th element; otherwise it has consecutive elements.
  Handle element;
  element.h = MPI_INT64_T;
  MPI_Offset at = 0;
  Handle filetype;
  if (view) {
    const TypeExpression stripes = test::resized(0, 8 * size, test::contiguous(1, test::named("int64")));
    filetype = build(context, stripes);
    CALL(context, File_set_view, f, static_cast<MPI_Offset>(8 * slot.rank), MPI_INT64_T, filetype.h,
         (const char*)"native", MPI_INFO_NULL);
    if (!keep_filetype) drop(context, filetype);
    MPI_Offset offset = 0;
    MPI_Datatype basic = MPI_DATATYPE_NULL, got = MPI_DATATYPE_NULL;
    char representation[MPI_MAX_DATAREP_STRING] = {};
    CALL(context, File_get_view, f, (Out<MPI_Offset>{&offset}), (New{&basic, "t"}), (New{&got, "t"}),
         (Scratch<char>{representation, MPI_MAX_DATAREP_STRING}));
    context.say(std::string("view=") + representation);
    context.item("offset", offset);
    int combiner = 0, unused[3];
    PMPI_Type_get_envelope(got, &unused[0], &unused[1], &unused[2], &combiner);
    if (combiner != MPI_COMBINER_NAMED) CALL(context, Type_free, Gone{&got});
    PMPI_Type_get_envelope(basic, &unused[0], &unused[1], &unused[2], &combiner);
    if (combiner != MPI_COMBINER_NAMED) CALL(context, Type_free, Gone{&basic});
  } else {
    at = static_cast<MPI_Offset>(8) * n * slot.rank;
  }
  const std::int64_t bytes = 16 * n;
  const Image image{seed_of(step, 2, static_cast<std::uint64_t>(slot.rank)), 0, 0, bytes};
  Buffer out(context, image), in(context, {seed_of(step, 3, static_cast<std::uint64_t>(slot.rank)), 0, 0, bytes});
  const Shape gaps = *Shape::of(test::vector(n, 1, 2, test::named("int64")), 1, 20000);
  Handle memory;
  memory.h = MPI_INT64_T;
  int count = n;
  Runs runs{{0, 8 * n}};
  if (step.types > 0) {
    memory = build(context, gaps.type);
    count = 1;
    runs = gaps.runs();
  }
  Status wrote, read;
  wrote.id = ++context.operations;
  read.id = ++context.operations;
  if (nonblocking) {
    Request request;
    request.id = wrote.id;
    CALL(context, File_iwrite_at, f, at, static_cast<const void*>(out.at()), count, memory.h, request);
    CALL(context, Wait, request, wrote);
    CALL(context, File_sync, f);
    CALL(context, Barrier, slot.h);
  } else {
    CALL(context, File_write_at_all, f, at, static_cast<const void*>(out.at()), count, memory.h, wrote);
  }
  CALL(context, File_read_at_all, f, at, static_cast<void*>(in.at()), count, memory.h, read);
  int elements = 0;
  CALL(context, Get_count, read, MPI_INT64_T, (Out<int>{&elements}));
  context.item("read", elements);
  CALL(context, File_close, (FileGone{&f}));
  scatter(in.expected(), in.image().origin(), runs, gather(image.bytes(), image.origin(), runs));
  out.expected();
  out.report(context, "written");
  in.report(context, "read");
  drop(context, memory);
  drop(context, filetype);
}

}  // namespace bestride::fuzz
