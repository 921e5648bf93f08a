// SPDX-License-Identifier: Apache-2.0
// Queries about communicators, their names, hints, attributes and topologies.
#include "tests/fuzz/programs/common.h"
#include "tests/fuzz/programs/context.hpp"

namespace bestride::fuzz {
namespace {

void name_and_hints(Context& context, const Step& step, CommSlot& slot) {
  MPI_Info info, got;
  CALL(context, Info_create, (New{&info, "info"}));
  CALL(context, Info_set, info, (const char*)"fuzz_hint", (const char*)"7");
  CALL(context, Comm_set_info, slot.h, info);
  CALL(context, Info_free, Gone{&info});
  CALL(context, Comm_get_info, slot.h, (New{&got, "info"}));
  int keys = 0;
  CALL(context, Info_get_nkeys, got, (Out<int>{&keys}));
  context.item("keys", keys);
  CALL(context, Info_free, Gone{&got});
  const std::string name = "comm of step " + std::to_string(step.number);
  CALL(context, Comm_set_name, slot.h, name.c_str());
  char text[MPI_MAX_OBJECT_NAME] = {};
  int length = 0;
  CALL(context, Comm_get_name, slot.h, (Scratch<char>{text, MPI_MAX_OBJECT_NAME}), (Out<int>{&length}));
  if (name != text) context.say("WRONG:name");
}

void attributes(Context& context, CommSlot& slot) {
  int keyval = MPI_KEYVAL_INVALID;
  CALL(context, Comm_create_keyval, (Named<MPI_Comm_copy_attr_function*>{fuzz_comm_copy, "fuzz_comm_copy"}),
       (Named<MPI_Comm_delete_attr_function*>{fuzz_comm_delete, "fuzz_comm_delete"}), (New{&keyval, "key"}),
       reinterpret_cast<void*>(5));
  CALL(context, Comm_set_attr, slot.h, keyval, reinterpret_cast<void*>(40));
  MPI_Comm copy = MPI_COMM_NULL;
  CALL(context, Comm_dup, slot.h, (New{&copy, "comm"}));
  void* value = nullptr;
  int flag = 0;
  CALL(context, Comm_get_attr, copy, keyval, (Out<void*>{&value}), (Out<int>{&flag}));
  context.item("attr", flag ? reinterpret_cast<std::intptr_t>(value) : -1);
  CALL(context, Comm_free, Gone{&copy});
  CALL(context, Comm_delete_attr, slot.h, keyval);
  CALL(context, Comm_free_keyval, Gone{&keyval});
  int* tag_bound = nullptr;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_bound, &flag);
  context.item("tag_ub", flag && tag_bound ? *tag_bound : -1);
}

void topology(Context& context, CommSlot& slot) {
  int status = 0;
  CALL(context, Topo_test, slot.h, (Out<int>{&status}));
  context.item("topology", status);
  const Group& group = slot.group();
  const auto me = static_cast<std::size_t>(slot.rank);
  if (group.topology == Topology::cart) {
    for (int d = 0; d < static_cast<int>(group.dims.size()); ++d) {
      int from = 0, to = 0;
      CALL(context, Cart_shift, slot.h, d, 1, (Out<int>{&from}), (Out<int>{&to}));
      if (from != group.sources[me][static_cast<std::size_t>(2 * d)] ||
          to != group.sources[me][static_cast<std::size_t>(2 * d + 1)])
        context.say("WRONG:shift");
    }
  } else if (group.topology == Topology::graph) {
    int n = 0;
    CALL(context, Graph_neighbors_count, slot.h, slot.rank, (Out<int>{&n}));
    if (n != static_cast<int>(group.targets[me].size())) context.say("WRONG:neighbors");
  } else if (group.topology == Topology::dist_graph) {
    int in = 0, out = 0, weighted = 0;
    CALL(context, Dist_graph_neighbors_count, slot.h, (Out<int>{&in}), (Out<int>{&out}), (Out<int>{&weighted}));
    if (in != static_cast<int>(group.sources[me].size()) || out != static_cast<int>(group.targets[me].size()))
      context.say("WRONG:neighbors");
  }
  MPI_Group members;
  int size = 0, rank = 0;
  CALL(context, Comm_group, slot.h, (New{&members, "group"}));
  CALL(context, Group_size, members, (Out<int>{&size}));
  CALL(context, Group_rank, members, (Out<int>{&rank}));
  context.item("group", size * 100 + rank);
  CALL(context, Group_free, Gone{&members});
  int inter = -1;
  CALL(context, Comm_test_inter, slot.h, (Out<int>{&inter}));
  context.item("inter", inter);
}

}  // namespace

void use_comm(Context& context, const Step& step) {
  Random common(seed_of(step, 1));
  CommSlot& slot = context.pick_comm(common);
  const std::int64_t choice = common.between(0, 3);
  if (slot.mine < 0) return;
  if (choice == 0)
    name_and_hints(context, step, slot);
  else if (choice == 1)
    attributes(context, slot);
  else if (choice == 2)
    topology(context, slot);
  else
    CALL(context, Barrier, slot.h);
}

}  // namespace bestride::fuzz
