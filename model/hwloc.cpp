// SPDX-License-Identifier: Apache-2.0
#include "model/hwloc.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "model/hwloc_abi.hpp"

namespace bestride::inline model {
namespace {

constexpr int max_processing_units = 1 << 16;

struct Close {
  void operator()(void* library) const noexcept { dlclose(library); }
};
using Library = std::unique_ptr<void, Close>;

/// False if a function is missing.
bool resolve(void* library, hwloc::Calls& calls) noexcept {
  bool all = true;
  const auto set = [&](auto& pointer, const char* symbol) {
    pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(dlsym(library, symbol));
    all &= pointer != nullptr;
  };
  set(calls.get_api_version, "hwloc_get_api_version");
  set(calls.topology_init, "hwloc_topology_init");
  set(calls.topology_set_components, "hwloc_topology_set_components");
  set(calls.topology_set_flags, "hwloc_topology_set_flags");
  set(calls.topology_set_all_types_filter, "hwloc_topology_set_all_types_filter");
  set(calls.topology_set_type_filter, "hwloc_topology_set_type_filter");
  set(calls.topology_load, "hwloc_topology_load");
  set(calls.topology_destroy, "hwloc_topology_destroy");
  set(calls.get_type_depth, "hwloc_get_type_depth");
  set(calls.get_obj_by_depth, "hwloc_get_obj_by_depth");
  set(calls.bitmap_next, "hwloc_bitmap_next");
  return all;
}

/// An hwloc topology; destroyed by the destructor.
class Loaded {
 public:
  explicit Loaded(const hwloc::Calls& calls) noexcept : calls_(calls) {
    if (calls_.topology_init(&topology_) != 0) {
      topology_ = nullptr;
      return;
    }
    good_ = configure() && calls_.topology_load(topology_) == 0;
  }
  ~Loaded() {
    if (topology_) calls_.topology_destroy(topology_);
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  bool good() const noexcept { return good_; }

  std::vector<HwlocMachine::Part> parts(int type) const {
    std::vector<HwlocMachine::Part> parts;
    const int depth = calls_.get_type_depth(topology_, type);
    if (depth == hwloc::no_such_level) return parts;
    for (unsigned i = 0; const hwloc::Object* const object = calls_.get_obj_by_depth(topology_, depth, i); ++i) {
      HwlocMachine::Part part;
      for (int cpu = -1; (cpu = calls_.bitmap_next(object->cpuset, cpu)) >= 0 && cpu < max_processing_units;)
        part.processors.push_back(cpu);
      if (part.processors.empty()) continue;
      part.number = type == hwloc::core ? part.processors[0] : static_cast<int>(object->os_index);
      parts.push_back(std::move(part));
    }
    return parts;
  }

 private:
  bool configure() noexcept {
    // Without a description this component would read /sys, which has been read already, and write to stderr if it is
    // missing.
    if (!hwloc_description() && calls_.topology_set_components(topology_, hwloc::without, "linux") != 0) return false;
    // Processors that are not allowed for this rank are included, so that a core has the same name on all ranks. A NUMA
    // domain has the processors of the object it is attached to; for that, hwloc must be allowed to create groups.
    return calls_.topology_set_flags(topology_, hwloc::include_disallowed) == 0 &&
           calls_.topology_set_all_types_filter(topology_, hwloc::keep_none) == 0 &&
           calls_.topology_set_type_filter(topology_, hwloc::core, hwloc::keep_all) == 0 &&
           calls_.topology_set_type_filter(topology_, hwloc::group, hwloc::keep_structure) == 0;
  }

  const hwloc::Calls& calls_;
  hwloc::Topology* topology_ = nullptr;
  bool good_ = false;
};

}  // namespace

Result<HwlocMachine> hwloc_machine(const char* library) {
  // A library that the process has loaded already is found by its name, from wherever it was loaded.
  const Library opened(dlopen(library, RTLD_LAZY | RTLD_LOCAL));
  if (!opened) return Error{std::string(library) + " can't be loaded"};
  hwloc::Calls calls;
  if (!resolve(opened.get(), calls)) return Error{std::string(library) + " is not hwloc 2.1 or a later 2"};
  if (calls.get_api_version() >> 16 != 2) return Error{std::string(library) + " is not hwloc 2"};
  const Loaded loaded(calls);
  if (!loaded.good()) return Error{"hwloc could not load a topology"};
  return HwlocMachine{loaded.parts(hwloc::core), loaded.parts(hwloc::numa_node)};
}

const char* hwloc_description() noexcept {
  for (const char* name : {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT"})
    if (const char* text = std::getenv(name); text && *text) return name;
  return nullptr;
}

}  // namespace bestride::inline model
