// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/gpu/late.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "base/message.hpp"
#include "base/variables.hpp"

namespace bestride {
namespace {

std::atomic<bool> engaged{false};

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

void engage_late() noexcept {
  if (!front_services || engaged.exchange(true)) return;
  try {
    std::vector<bestride_engagement> all;
    for (const std::span<const LateEntry> some : {late_moved(), late_reduced(), late_refused()})
      for (const LateEntry& each : some)
        if (*each.library) all.push_back(each.engagement);
    front_services->lead(all.data(), all.size());
  } catch (...) {
    say_once("gpu.late", "no memory to engage collectives, one-sided calls and files: those with device memory are left to the MPI library");
  }
}

}  // namespace bestride
