// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/device/gpu_session.hpp"

#include <dlfcn.h>

#include "base/input_file.hpp"
#include "base/variables.hpp"
#include "kernels/cuda/kernels/work.hpp"
#include "perfmodel/profile/gpu_machine.hpp"

namespace bestride::inline perfmodel {
namespace {

using cuda::Code;

/// The driver library, found and loaded by the rules of kernels/cuda/driver/driver.cpp.
struct Library {
  void* handle = nullptr;
  std::string problem;
  bool stand_in() const { return dlsym(handle, "fake_cuda_live") != nullptr; }  // tests/fake_cuda/control.h
  Code initialize() const {
    const auto init = reinterpret_cast<Code (*)(unsigned)>(dlsym(handle, "cuInit"));
    return init ? init(0) : cuda::code::not_found;
  }
};

Library find_library() {
  const Settings& settings = Settings::get();
  if (settings.text("BESTRIDE_GPU") == "off") return {nullptr, "BESTRIDE_GPU=off"};
  const std::string& named = settings.text("BESTRIDE_CUDA_DRIVER");
  // dlopen() would wait for the writer of a FIFO.
  void* const handle =
      *not_a_file(named) ? nullptr : dlopen(named.empty() ? "libcuda.so.1" : named.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle) return {handle, ""};
  return {nullptr,
          named.empty() ? "no CUDA driver (libcuda.so.1) here" : "BESTRIDE_CUDA_DRIVER=" + named + " can't be loaded"};
}

/// Number of devices; if 0, *problem states the reason.
int count_devices(const Library& library, const cuda::Driver& driver, std::string* problem, bool* broken) {
  int count = 0;
  Code code = library.initialize();
  if (code == cuda::code::success) code = driver.cuDeviceGetCount(&count);
  if (code == cuda::code::no_device || (code == cuda::code::success && count == 0)) {
    *problem = "the CUDA driver sees no device";
    return 0;
  }
  if (code == cuda::code::success) return count;
  *problem = driver.error("cuInit", code).text;
  *broken = true;
  return 0;
}

std::string device_text(const cuda::Driver& driver, int device) {
  char name[256] = "unknown device";
  int major = 0, minor = 0;
  driver.cuDeviceGetName(name, sizeof name, device);
  name[sizeof name - 1] = 0;
  driver.cuDeviceGetAttribute(&major, cuda::device_attribute::capability_major, device);
  driver.cuDeviceGetAttribute(&minor, cuda::device_attribute::capability_minor, device);
  return std::string(name) + ", capability " + std::to_string(major) + "." + std::to_string(minor);
}

}  // namespace

GpuSummary look_at_gpus() {
  GpuSummary summary;
  const Library library = find_library();
  summary.problem = library.problem;
  summary.broken = !library.handle && !Settings::get().text("BESTRIDE_CUDA_DRIVER").empty() &&
                   Settings::get().text("BESTRIDE_GPU") != "off";
  if (!library.handle) return summary;
  const auto driver = cuda::Driver::bind(library.handle);
  if (!driver) {
    summary.problem = driver.error().text;
    summary.broken = true;
    return summary;
  }
  summary.version = (*driver)->version();
  summary.stand_in = library.stand_in();
  const int count = count_devices(library, **driver, &summary.problem, &summary.broken);
  for (int device = 0; device < count; ++device) summary.devices.push_back(device_text(**driver, device));
  if (count > 0) summary.name = gpu_name(**driver, 0);
  return summary;
}

Result<GpuSession> GpuSession::open(int rank) {
  GpuSession session;
  const Library library = find_library();
  if (!library.handle) return Error{library.problem};
  session.driver_ = cuda::Driver::open();
  if (!session.driver_) return Error{"the CUDA driver can't be used"};
  session.stand_in_ = library.stand_in();
  std::string problem;
  bool broken = false;
  const int count = count_devices(library, *session.driver_, &problem, &broken);
  if (count == 0) return Error{problem};
  session.ordinal_ = rank % count;
  const cuda::Driver& driver = *session.driver_;
  cuda::ContextHandle context = nullptr;
  if (const Code code = driver.cuDevicePrimaryCtxRetain(&context, session.ordinal_))
    return driver.error("cuDevicePrimaryCtxRetain", code);
  session.current_ = true;
  if (const Code code = driver.cuCtxPushCurrent(context)) return driver.error("cuCtxPushCurrent", code);
  cuda::Address some = 0;
  if (const Code code = driver.cuMemAlloc(&some, 256)) return driver.error("cuMemAlloc", code);
  Result<cuda::DevicePtr> device = cuda::Device::of(cuda::where(reinterpret_cast<const void*>(some)));
  driver.cuMemFree(some);
  if (!device) return device.error();
  session.device_ = *device;
  const Result<cuda::FunctionHandle> kernel = session.device_->kernel(cuda::small_kernel);
  if (!kernel) return kernel.error();
  session.name_ = gpu_name(driver, session.ordinal_);
  if (session.name_.empty()) return Error{"the GPU does not say its name"};
  return session;
}

GpuSession::GpuSession(GpuSession&& other) noexcept
    : driver_(other.driver_),
      ordinal_(other.ordinal_),
      current_(other.current_),
      device_(std::move(other.device_)),
      name_(std::move(other.name_)),
      stand_in_(other.stand_in_) {
  other.current_ = false;
}

GpuSession::~GpuSession() {
  if (!current_) return;
  device_.reset();
  cuda::Device::release_all();
  cuda::ContextHandle popped = nullptr;
  driver_->cuCtxPopCurrent(&popped);
  driver_->cuDevicePrimaryCtxRelease(ordinal_);
}

}  // namespace bestride::inline perfmodel
