// SPDX-License-Identifier: Apache-2.0
#pragma once
// Declares the part of libhwloc.so.15 (the ABI of hwloc 2.x) that is used here. Names and values are those of hwloc.h.
// If that header is installed, hwloc_abi_test compares them with it.
#include <cstdint>

namespace bestride::hwloc {

struct Topology;  // opaque
struct Bitmap;    // opaque

/// hwloc_obj, up to the last member that is read here.
struct Object {
  int type;
  char* subtype;
  unsigned os_index;
  char* name;
  std::uint64_t total_memory;
  void* attr;
  int depth;
  unsigned logical_index;
  Object *next_cousin, *prev_cousin, *parent;
  unsigned sibling_rank;
  Object *next_sibling, *prev_sibling;
  unsigned arity;
  Object **children, *first_child, *last_child;
  int symmetric_subtree;
  unsigned memory_arity;
  Object* memory_first_child;
  unsigned io_arity;
  Object* io_first_child;
  unsigned misc_arity;
  Object* misc_first_child;
  const Bitmap* cpuset;
};

constexpr int core = 2, group = 12, numa_node = 13;             // hwloc_obj_type_t
constexpr int keep_all = 0, keep_none = 1, keep_structure = 2;  // hwloc_type_filter_e
constexpr unsigned long include_disallowed = 1;                 // hwloc_topology_flags_e
constexpr unsigned long without = 1;                            // hwloc_topology_components_flag_e: BLACKLIST
constexpr int no_such_level = -1;                               // HWLOC_TYPE_DEPTH_UNKNOWN

struct Calls {
  unsigned (*get_api_version)();
  int (*topology_init)(Topology**);
  int (*topology_set_components)(Topology*, unsigned long, const char*);  // since 2.1
  int (*topology_set_flags)(Topology*, unsigned long);
  int (*topology_set_all_types_filter)(Topology*, int);
  int (*topology_set_type_filter)(Topology*, int, int);
  int (*topology_load)(Topology*);
  void (*topology_destroy)(Topology*);
  int (*get_type_depth)(Topology*, int);
  Object* (*get_obj_by_depth)(Topology*, int, unsigned);
  int (*bitmap_next)(const Bitmap*, int);
};

}  // namespace bestride::hwloc
