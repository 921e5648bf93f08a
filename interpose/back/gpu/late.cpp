// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/gpu/late.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <initializer_list>
#include <vector>

#include "base/message.hpp"
#include "base/variables.hpp"

namespace bestride {
namespace {

std::atomic<bool> collectives_engaged{false};
std::atomic<bool> engaged{false};

void engage(std::initializer_list<std::span<const LateEntry>> groups) noexcept {
  try {
    std::vector<bestride_engagement> all;
    for (const std::span<const LateEntry> some : groups)
      for (const LateEntry& each : some)
        if (*each.library) all.push_back(each.engagement);
    front_services->lead(all.data(), all.size());
  } catch (...) {
    say_once("gpu.late", "no memory to engage collectives, one-sided calls and files: they are left to the MPI library");
  }
}

}  // namespace

bool gpu_may_come() noexcept try {
  const Settings& settings = Settings::get();
  if (settings.text("BESTRIDE_GPU") == "off") return false;
  if (!settings.text("BESTRIDE_CUDA_DRIVER").empty()) return true;
  // The driver's own device, WSL's, and the integrated GPUs'. None of them is opened.
  for (const char* device : {"/dev/nvidiactl", "/dev/dxg", "/dev/nvgpu", "/dev/nvhost-gpu"})
    if (access(device, F_OK) == 0) return true;
  if (void* loaded = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD)) {
    dlclose(loaded);
    return true;
  }
  dlerror();
  return false;
} catch (...) {
  return false;
}

void engage_late_collectives() noexcept {
  if (front_services && !collectives_engaged.exchange(true)) engage({late_moved(), late_reduced()});
}

void engage_late() noexcept {
  if (!front_services || engaged.exchange(true)) return;
  engage_late_collectives();
  engage({late_refused()});
}

}  // namespace bestride
