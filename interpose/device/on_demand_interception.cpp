// SPDX-License-Identifier: Apache-2.0
#include "interpose/device/on_demand_interception.hpp"

#include <link.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "base/message.hpp"
#include "base/variables.hpp"

namespace bestride::inline interpose {
namespace {

std::atomic<bool> collectives_intercepted{false};
std::atomic<bool> intercepted{false};

ListOnDemand list_group = nullptr;

void intercept(OnDemandGroup group) noexcept {
  try {
    const std::vector<bestride_interception> all = list_group(group);
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

void set_on_demand_groups(ListOnDemand list) noexcept { list_group = list; }

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

void intercept_collectives() noexcept {
  if (preload_services && !collectives_intercepted.exchange(true)) intercept(OnDemandGroup::collectives);
}

void intercept_on_demand() noexcept {
  if (!preload_services || intercepted.exchange(true)) return;
  intercept_collectives();
  intercept(OnDemandGroup::refusing);
}

}  // namespace bestride::inline interpose
