// SPDX-License-Identifier: Apache-2.0
// Compares hwloc_abi.hpp with hwloc's own header.
#include "model/hwloc_abi.hpp"

#include <hwloc.h>

#include <cstddef>
#include <type_traits>

namespace bestride::hwloc {

static_assert(HWLOC_API_VERSION >> 16 == 2);
static_assert(offsetof(Object, os_index) == offsetof(hwloc_obj, os_index));
static_assert(offsetof(Object, cpuset) == offsetof(hwloc_obj, cpuset));
static_assert(core == HWLOC_OBJ_CORE && group == HWLOC_OBJ_GROUP && numa_node == HWLOC_OBJ_NUMANODE);
static_assert(keep_all == HWLOC_TYPE_FILTER_KEEP_ALL && keep_none == HWLOC_TYPE_FILTER_KEEP_NONE &&
              keep_structure == HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
static_assert(include_disallowed == HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
static_assert(without == HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST);
static_assert(no_such_level == HWLOC_TYPE_DEPTH_UNKNOWN);

// The functions: their opaque types have other names, and int stands for hwloc's enumerations, whose type is unsigned
// but whose values fit an int.
static_assert(sizeof(hwloc_obj_type_t) == sizeof(int) && sizeof(hwloc_type_filter_e) == sizeof(int));
static_assert(std::is_same_v<decltype(&hwloc_get_api_version), unsigned (*)()>);
static_assert(std::is_same_v<decltype(&hwloc_topology_init), int (*)(hwloc_topology_t*)>);
static_assert(
    std::is_same_v<decltype(&hwloc_topology_set_components), int (*)(hwloc_topology_t, unsigned long, const char*)>);
static_assert(std::is_same_v<decltype(&hwloc_topology_set_flags), int (*)(hwloc_topology_t, unsigned long)>);
static_assert(
    std::is_same_v<decltype(&hwloc_topology_set_all_types_filter), int (*)(hwloc_topology_t, hwloc_type_filter_e)>);
static_assert(std::is_same_v<decltype(&hwloc_topology_set_type_filter),
                             int (*)(hwloc_topology_t, hwloc_obj_type_t, hwloc_type_filter_e)>);
static_assert(std::is_same_v<decltype(&hwloc_topology_load), int (*)(hwloc_topology_t)>);
static_assert(std::is_same_v<decltype(&hwloc_topology_destroy), void (*)(hwloc_topology_t)>);
static_assert(std::is_same_v<decltype(&hwloc_get_type_depth), int (*)(hwloc_topology_t, hwloc_obj_type_t)>);
static_assert(std::is_same_v<decltype(&hwloc_get_obj_by_depth), hwloc_obj_t (*)(hwloc_topology_t, int, unsigned)>);
static_assert(std::is_same_v<decltype(&hwloc_bitmap_next), int (*)(hwloc_const_bitmap_t, int)>);

}  // namespace bestride::hwloc
