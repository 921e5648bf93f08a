// SPDX-License-Identifier: Apache-2.0
#include "interpose/device/lazy_interception.hpp"

#include <link.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "base/message.hpp"
#include "base/variables.hpp"

namespace bestride::inline interpose {
namespace {

std::atomic<bool> collectives_intercepted{false};
std::atomic<bool> intercepted{false};

void intercept(std::initializer_list<std::span<const LazyEntry>> groups) noexcept {
  try {
    std::vector<bestride_interception> all;
    for (const std::span<const LazyEntry> some : groups)
      for (const LazyEntry& each : some)
        if (*each.library) all.push_back(each.interception);
    preload_services->intercept(all.data(), all.size());
  } catch (...) {
    warn_once("gpu.late",
              "no memory to intercept collectives, one-sided calls and files: they are left to the MPI library");
  }
}

/// By the names of the loaded objects. If the driver is not loaded, dlopen() with RTLD_NOLOAD would search all library
/// paths, which may be on a network file system.
bool driver_is_loaded() noexcept {
  return dl_iterate_phdr(
             [](dl_phdr_info* object, std::size_t, void*) {
               const char* const slash = std::strrchr(object->dlpi_name, '/');
               const char* const name = slash ? slash + 1 : object->dlpi_name;
               return std::strncmp(name, "libcuda.so", 10) == 0 ? 1 : 0;
             },
             nullptr) != 0;
}

}  // namespace

bool gpu_possible() noexcept try {
  const Settings& settings = Settings::get();
  if (settings.text("BESTRIDE_GPU") == "off") return false;
  if (!settings.text("BESTRIDE_CUDA_DRIVER").empty()) return true;
  // The device files of the driver, of WSL and of integrated GPUs. None of them is opened.
  for (const char* device : {"/dev/nvidiactl", "/dev/dxg", "/dev/nvgpu", "/dev/nvhost-gpu"})
    if (access(device, F_OK) == 0) return true;
  return driver_is_loaded();
} catch (...) {
  return false;
}

void intercept_collectives_lazily() noexcept {
  if (preload_services && !collectives_intercepted.exchange(true)) intercept({lazy_data_movement(), lazy_reductions()});
}

void intercept_lazily() noexcept {
  if (!preload_services || intercepted.exchange(true)) return;
  intercept_collectives_lazily();
  intercept({lazy_unsupported()});
}

}  // namespace bestride::inline interpose
