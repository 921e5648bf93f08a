// SPDX-License-Identifier: Apache-2.0
// A stand-in for libhwloc.so.15. FAKE_HWLOC selects its behavior: "version": it is hwloc 3; "init", "components",
// "flags", "filter", "load": that function fails; otherwise all succeed. Its machine has two cores, with processors 0
// and 2, and 1 and 3, and the NUMA domains 5 (all processors), 7 (1, 3), 8 (the same) and 6 (none). A call in a state
// in which hwloc does not allow it ends the process.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "model/hwloc_abi.hpp"

namespace bestride::hwloc {
struct Topology {};
struct Bitmap {
  unsigned bits;
};
}  // namespace bestride::hwloc

namespace {

using namespace bestride::hwloc;

constexpr Bitmap all{0b1111}, even{0b0101}, odd{0b1010}, none{0b0000};
constexpr int core_depth = 1, numa_depth = -3;

Object object(int type, unsigned os_index, const Bitmap& set) {
  Object made{};
  made.type = type;
  made.os_index = os_index;
  made.cpuset = &set;
  return made;
}
Object cores[] = {object(core, 30, even), object(core, 40, odd)};
Object domains[] = {object(numa_node, 5, all), object(numa_node, 7, odd), object(numa_node, 8, odd),
                    object(numa_node, 6, none)};

enum State { no_topology, made, loaded };
State state = no_topology;
bool cores_kept, disallowed_included;
Topology topology;

void must_be(State wanted) {
  if (state == wanted) return;
  std::fprintf(stderr, "fake hwloc: called in state %d instead of %d\n", state, wanted);
  std::abort();
}

/// 0, or -1 if this function is to fail.
int result_of(const char* function) {
  const char* failing = std::getenv("FAKE_HWLOC");
  return failing && std::strcmp(failing, function) == 0 ? -1 : 0;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

bool fake_hwloc_has_topology() { return state != no_topology; }

unsigned hwloc_get_api_version() { return result_of("version") ? 0x00030000 : 0x00020500; }
int hwloc_topology_init(Topology** out) {
  must_be(no_topology);
  *out = &topology;  // the caller must not use it if this fails
  if (result_of("init")) return -1;
  state = made;
  cores_kept = true;
  disallowed_included = false;
  return 0;
}
int hwloc_topology_set_components(Topology*, unsigned long, const char*) {
  must_be(made);
  return result_of("components");
}
int hwloc_topology_set_flags(Topology*, unsigned long flags) {
  must_be(made);
  disallowed_included = flags == include_disallowed;
  return result_of("flags");
}
int hwloc_topology_set_all_types_filter(Topology*, int filter) {
  must_be(made);
  cores_kept = filter != keep_none;
  return 0;
}
int hwloc_topology_set_type_filter(Topology*, int type, int filter) {
  must_be(made);
  if (type == core) cores_kept = filter == keep_all;
  return result_of("filter");
}
int hwloc_topology_load(Topology*) {
  must_be(made);
  if (result_of("load")) return -1;
  state = loaded;
  return 0;
}
void hwloc_topology_destroy(Topology*) {
  if (state != loaded) must_be(made);
  state = no_topology;
}
int hwloc_get_type_depth(Topology*, int type) {
  must_be(loaded);
  if (type == numa_node) return numa_depth;
  return type == core && cores_kept && disallowed_included ? core_depth : no_such_level;
}
Object* hwloc_get_obj_by_depth(Topology*, int depth, unsigned index) {
  must_be(loaded);
  if (depth == core_depth && index < std::size(cores)) return cores + index;
  if (depth == numa_depth && index < std::size(domains)) return domains + index;
  return nullptr;
}
int hwloc_bitmap_next(const Bitmap* set, int before) {
  must_be(loaded);
  for (int bit = before + 1; bit < 32; ++bit)
    if (set->bits >> bit & 1) return bit;
  return -1;
}
}
#pragma GCC visibility pop
