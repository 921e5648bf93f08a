// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/gpu.hpp"

#include <dlfcn.h>

#include <chrono>
#include <cstdlib>

namespace gpu {

namespace abi = bestride::cuda;

template <class... A>
void Gpu::call(const char* name, A... arguments) const {
  const auto function = reinterpret_cast<Code (*)(A...)>(dlsym(library_, name));
  if (!function) throw Failed(std::string("the CUDA driver has no ") + name);
  const Code code = function(arguments...);
  if (code == abi::code::success) return;
  const auto name_of = reinterpret_cast<Code (*)(Code, const char**)>(dlsym(library_, "cuGetErrorName"));
  const char* text = nullptr;
  if (!name_of || name_of(code, &text) != abi::code::success || !text) text = "unknown error";
  throw Failed(std::string(name) + ": " + text);
}

Gpu::Gpu(int ordinal) {
  const char* path = std::getenv("BESTRIDE_CUDA_DRIVER");
  library_ = dlopen(path && *path ? path : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!library_) throw Failed(std::string("no CUDA driver: ") + dlerror());
  stand_in_ = dlsym(library_, "fake_cuda_calls") != nullptr;
  call("cuInit", 0u);
  call("cuDriverGetVersion", &driver_version_);
  int count = 0, device = 0, major = 0, minor = 0;
  call("cuDeviceGetCount", &count);
  if (count == 0) throw Failed("no CUDA device");
  call("cuDeviceGet", &device, ordinal % count);
  char text[256] = "";
  call("cuDeviceGetName", static_cast<char*>(text), int{sizeof text}, device);
  name_ = text;
  call("cuDeviceGetAttribute", &multiprocessors_, abi::device_attribute::multiprocessors, device);
  call("cuDeviceGetAttribute", &major, abi::device_attribute::capability_major, device);
  call("cuDeviceGetAttribute", &minor, abi::device_attribute::capability_minor, device);
  capability_ = 10 * major + minor;
  abi::ContextHandle context = nullptr;
  call("cuDevicePrimaryCtxRetain", &context, device);
  call("cuCtxSetCurrent", context);
  call("cuStreamCreate", &stream_, abi::stream_non_blocking);
  call("cuEventCreate", &before_, 0u);
  call("cuEventCreate", &after_, 0u);
}

std::size_t Gpu::available() const {
  std::size_t available = 0, total = 0;
  call("cuMemGetInfo_v2", &available, &total);
  return available;
}

Address Gpu::allocate(std::size_t bytes) const {
  Address address = 0;
  call("cuMemAlloc_v2", &address, bytes);
  return address;
}

void* Gpu::allocate_pinned(std::size_t bytes) const {
  void* address = nullptr;
  call("cuMemHostAlloc", &address, bytes, abi::host_alloc_portable);
  return address;
}

void Gpu::write(Address target, const void* source, std::size_t bytes) const {
  call("cuMemcpyHtoD_v2", target, source, bytes);
  call("cuCtxSynchronize");
}
void Gpu::read(void* target, Address source, std::size_t bytes) const {
  call("cuMemcpyDtoH_v2", target, source, bytes);
}
void Gpu::fill(Address target, unsigned char value, std::size_t bytes) const {
  call("cuMemsetD8_v2", target, value, bytes);
  call("cuCtxSynchronize");
}

void Gpu::copy(Address target, Address source, std::size_t bytes) const {
  call("cuMemcpyAsync", target, source, bytes, stream_);
}

FunctionHandle Gpu::function(const void* image, const char* name) {
  if (!module_) call("cuModuleLoadData", &module_, image);
  FunctionHandle function = nullptr;
  call("cuModuleGetFunction", &function, module_, name);
  return function;
}

void Gpu::launch(FunctionHandle function, unsigned grid, void* parameter) const {
  void* parameters[] = {parameter};
  call("cuLaunchKernel", function, grid, 1u, 1u, 256u, 1u, 1u, 0u, stream_, static_cast<void**>(parameters),
       static_cast<void**>(nullptr));
}

void Gpu::synchronize() const { call("cuStreamSynchronize", stream_); }

double Gpu::device_seconds(const std::function<void()>& enqueue) const {
  float milliseconds = 0;
  call("cuEventRecord", before_, stream_);
  enqueue();
  call("cuEventRecord", after_, stream_);
  call("cuEventSynchronize", after_);
  call("cuEventElapsedTime", &milliseconds, before_, after_);
  return milliseconds * 1e-3;
}

double Gpu::host_seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace gpu
