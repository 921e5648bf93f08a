// SPDX-License-Identifier: Apache-2.0
// bestride_back_open: the one symbol this object exports, and the table of what it engages.
#include <new>
#include <vector>

#include "base/message.hpp"
#include "base/variables.hpp"
#include "interpose/back/entries.hpp"
#include "interpose/back/fail.hpp"
#include "interpose/back/gpu/late.hpp"
#include "interpose/back/runtime.hpp"
#include "interpose/back/services.hpp"

namespace bestride {

constinit const bestride_front_services* front_services = nullptr;

namespace {

/// What the library has of engaged.def. May throw std::bad_alloc.
std::vector<bestride_engagement> engagements() {
  std::vector<bestride_engagement> all;
  const auto engage = [&all](const char* name, void* entry, void** next_slot, bool in_library) {
    if (in_library) all.push_back({name, entry, next_slot});
  };
#define BESTRIDE_ENGAGE(name)                                                  \
  engage("MPI_" #name, reinterpret_cast<void*>(&bestride_entry_##name), \
         reinterpret_cast<void**>(&next.name), real.name != nullptr);
#define BESTRIDE_ENGAGE_BOTH(name) \
  BESTRIDE_ENGAGE(name)            \
  engage("PMPI_" #name, reinterpret_cast<void*>(&bestride_profiling_entry_##name), reinterpret_cast<void**>(&real.name), \
         real.name != nullptr);
#include "interpose/back/engaged.def"
  return all;
}

}  // namespace
}  // namespace bestride

extern "C" __attribute__((visibility("default"))) const bestride_back* bestride_back_open(
    const bestride_front_services* services) {
  using namespace bestride;
  if (!services || services->version != BESTRIDE_SERVICES_VERSION) return nullptr;
  front_services = services;
  try {
    set_failing(Settings::get().text("BESTRIDE_TEST_FAIL"));
    if (!resolve_real_calls(services->library_symbol)) {
      say_once("back.symbols", "the MPI library lacks functions every MPI library has; nothing is accelerated");
      return nullptr;
    }
    if (fail_here(FailPoint::start)) throw std::bad_alloc();
    static std::vector<bestride_engagement> all = engagements();
    new (&runtime_storage.runtime) Runtime;
    if (gpu_may_come()) engage_late();
    static const bestride_back back = {BESTRIDE_SERVICES_VERSION, BESTRIDE_ABI_NAME, all.size(), all.data()};
    return &back;
  } catch (...) {
    say_once("back.memory", "no memory to start; nothing is accelerated");
    return nullptr;
  }
}
