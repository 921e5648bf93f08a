// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/driver/driver.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <mutex>

#include "base/input_file.hpp"
#include "base/message.hpp"
#include "base/variables.hpp"

namespace bestride::cuda {
namespace {

using GetProcAddress = Code (*)(const char* symbol, void** function, int version, std::uint64_t flags, int* status);

/// Oldest supported driver: the first with context ids. Without them, a reused context handle cannot be told from its
/// predecessor.
constexpr int oldest_version = 12000;

/// Binds the entry points one after the other and remembers the first missing one.
class Binder {
 public:
  explicit Binder(GetProcAddress find) : find_(find) {}

  /// `version`: the driver version whose form of the function is requested (see cudaTypedefs.h).
  template <class F>
  void operator()(F& slot, const char* symbol, int version) {
    void* function = nullptr;
    int status = 0;
    const Code code = find_(symbol, &function, version, 0, &status);
    if ((code != code::success || !function) && !missing_) missing_ = symbol;
    slot = reinterpret_cast<F>(function);
  }
  const char* missing() const { return missing_; }

 private:
  GetProcAddress find_;
  const char* missing_ = nullptr;
};

const char* bind_all(DriverCalls& calls, GetProcAddress find) {
  Binder bind(find);
  bind(calls.cuDriverGetVersion, "cuDriverGetVersion", 2020);
  bind(calls.cuGetErrorName, "cuGetErrorName", 6000);
  bind(calls.cuPointerGetAttributes, "cuPointerGetAttributes", 7000);
  bind(calls.cuMemRangeGetAttribute, "cuMemRangeGetAttribute", 8000);
  bind(calls.cuDeviceGet, "cuDeviceGet", 2000);
  bind(calls.cuDeviceGetCount, "cuDeviceGetCount", 2000);
  bind(calls.cuDeviceGetName, "cuDeviceGetName", 2000);
  bind(calls.cuDeviceGetAttribute, "cuDeviceGetAttribute", 2000);
  bind(calls.cuDevicePrimaryCtxGetState, "cuDevicePrimaryCtxGetState", 7000);
  bind(calls.cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", 7000);
  bind(calls.cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease", 11000);
  bind(calls.cuCtxPushCurrent, "cuCtxPushCurrent", 4000);
  bind(calls.cuCtxPopCurrent, "cuCtxPopCurrent", 4000);
  bind(calls.cuCtxGetDevice, "cuCtxGetDevice", 2000);
  bind(calls.cuCtxGetId, "cuCtxGetId", 12000);
  bind(calls.cuModuleLoadData, "cuModuleLoadData", 2000);
  bind(calls.cuModuleUnload, "cuModuleUnload", 2000);
  bind(calls.cuModuleGetFunction, "cuModuleGetFunction", 2000);
  bind(calls.cuLaunchKernel, "cuLaunchKernel", 4000);
  bind(calls.cuMemAlloc, "cuMemAlloc", 3020);
  bind(calls.cuMemFree, "cuMemFree", 3020);
  bind(calls.cuMemHostAlloc, "cuMemHostAlloc", 2020);
  bind(calls.cuMemFreeHost, "cuMemFreeHost", 2000);
  bind(calls.cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync", 3020);
  bind(calls.cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync", 3020);
  bind(calls.cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync", 3020);
  bind(calls.cuMemcpy2DAsync, "cuMemcpy2DAsync", 3020);
  bind(calls.cuMemcpy3DAsync, "cuMemcpy3DAsync", 3020);
  bind(calls.cuStreamCreate, "cuStreamCreate", 2000);
  bind(calls.cuStreamDestroy, "cuStreamDestroy", 4000);
  bind(calls.cuStreamSynchronize, "cuStreamSynchronize", 2000);
  bind(calls.cuStreamWaitEvent, "cuStreamWaitEvent", 3020);
  bind(calls.cuStreamBeginCapture, "cuStreamBeginCapture", 10010);
  bind(calls.cuStreamEndCapture, "cuStreamEndCapture", 10000);
  bind(calls.cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", 11040);
  bind(calls.cuGraphLaunch, "cuGraphLaunch", 10000);
  bind(calls.cuGraphDestroy, "cuGraphDestroy", 10000);
  bind(calls.cuGraphExecDestroy, "cuGraphExecDestroy", 10000);
  bind(calls.cuEventCreate, "cuEventCreate", 2000);
  bind(calls.cuEventDestroy, "cuEventDestroy", 4000);
  bind(calls.cuEventRecord, "cuEventRecord", 2000);
  bind(calls.cuEventQuery, "cuEventQuery", 2000);
  bind(calls.cuEventSynchronize, "cuEventSynchronize", 2000);
  return bind.missing();
}

/// Number of objects ever mapped into this process, counted by the dynamic linker.
unsigned long long objects_mapped() noexcept {
  unsigned long long adds = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        *static_cast<unsigned long long*>(data) = info->dlpi_adds;
        return 1;
      },
      &adds);
  return adds;
}

/// The process's driver. Trivially destructible, because it may be queried during exit.
struct Found {
  std::atomic<const Driver*> driver{nullptr};
  std::atomic<bool> settled{false};  ///< no driver will be used, even if one is loaded later
  std::atomic<bool> unusable{false};
  std::atomic<unsigned long long> seen{0};
  std::mutex mutex;
};
Found& found() {
  static Found* const all = new Found;
  return *all;
}

/// Looks for the driver. If `load`, loads it when the application has not.
const Driver* look(bool load) noexcept try {
  Found& all = found();
  const std::lock_guard lock(all.mutex);
  if (all.driver || all.settled) return all.driver;
  const Settings& settings = Settings::get();
  if (settings.text("BESTRIDE_GPU") == "off") {
    all.settled = true;
    return nullptr;
  }
  const std::string& path = settings.text("BESTRIDE_CUDA_DRIVER");
  // dlopen() would wait for the writer of a FIFO.
  const char* const not_one = not_a_file(path);
  void* library = *not_one       ? nullptr
                  : path.empty() ? dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL | (load ? 0 : RTLD_NOLOAD))
                                 : dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (!library) {
    if (path.empty()) return nullptr;
    warn_once("cuda driver", "BESTRIDE_CUDA_DRIVER=%s can't be loaded (%s): device memory is left to the MPI library",
              path.c_str(), *not_one ? not_one : dlerror());
    all.settled = true;
    return nullptr;
  }
  Result<std::unique_ptr<const Driver>> bound = Driver::bind(library);
  if (!bound) {
    warn_once("cuda driver", "%s", bound.error().text.c_str());
    all.unusable = true;
    all.settled = true;
    return nullptr;
  }
  all.driver = bound->release();
  return all.driver;
} catch (...) {
  return nullptr;
}

}  // namespace

const Driver* Driver::get() noexcept {
  Found& all = found();
  if (const Driver* driver = all.driver.load(std::memory_order_acquire)) return driver;
  if (all.settled.load(std::memory_order_acquire)) return nullptr;
  const unsigned long long now = objects_mapped();
  if (all.seen.load(std::memory_order_relaxed) == now) return nullptr;
  const Driver* driver = look(false);
  all.seen.store(now, std::memory_order_relaxed);
  return driver;
}

bool Driver::unusable() noexcept { return found().unusable.load(std::memory_order_acquire); }

const Driver* Driver::open() noexcept { return look(true); }

Result<std::unique_ptr<const Driver>> Driver::bind(void* library) noexcept try {
  const std::string off = ": calls with device memory return an MPI error; update the driver, or set BESTRIDE_GPU=off";
  // Owned through a pointer to a mutable object until construction is complete.
  std::unique_ptr<Driver> driver(new Driver);
  const auto get_version = reinterpret_cast<Code (*)(int*)>(dlsym(library, "cuDriverGetVersion"));
  if (!get_version || get_version(&driver->version_) != code::success)
    return Error{"the CUDA driver does not say its version" + off};
  const auto find = reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  if (driver->version_ < oldest_version || !find)
    return Error{"the CUDA driver is for CUDA " + std::to_string(driver->version_ / 1000) + "." +
                 std::to_string(driver->version_ % 1000 / 10) + ", older than 12.0" + off};
  if (const char* missing = bind_all(*driver, find))
    return Error{"the CUDA driver has no " + std::string(missing) + off};
  return std::unique_ptr<const Driver>(std::move(driver));
} catch (...) {
  return Error{"out of memory"};
}

Error Driver::error(const char* call, Code code) const {
  const char* text = nullptr;
  if (cuGetErrorName(code, &text) != code::success || !text) text = "unknown error";
  std::string line = std::string(call) + ": " + text;
  if (code == code::out_of_memory) line += "; lower BESTRIDE_GPU_LIMIT to leave the application more";
  if (code == code::no_binary_for_gpu || code == code::unsupported_ptx_version || code == code::invalid_image)
    line += "; the driver can't run this build's GPU kernels";
  return {std::move(line)};
}

bool is_context_lost(Code code) noexcept {
  return code == code::deinitialized || code == code::invalid_context || code == code::context_is_destroyed ||
         code == code::illegal_address || code == 702 ||
         (code >= 714 && code <= 720);  // launch timeout, and kernel faults, which make their context unusable
}

}  // namespace bestride::cuda
