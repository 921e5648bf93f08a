// SPDX-License-Identifier: Apache-2.0
#include "gpu.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>

extern "C" const unsigned char halo3d_image[];  // the kernels: a fatbin, or a line of text in a build without nvcc

namespace halo3d {
namespace {

using Code = int;               // CUresult
using Address = std::uint64_t;  // CUdeviceptr

std::byte* pointer(Address address) { return reinterpret_cast<std::byte*>(address); }
Address address(const std::byte* memory) { return reinterpret_cast<Address>(memory); }

Gpu& the_one() {
  static Gpu* const one = new Gpu;  // never destroyed, because the driver may be unloaded first
  return *one;
}

}  // namespace

template <class... A>
void Gpu::call(const char* name, A... arguments) {
  const auto function = reinterpret_cast<Code (*)(A...)>(dlsym(library_, name));
  if (!function) throw std::runtime_error(std::string("the CUDA driver has no ") + name);
  const Code code = function(arguments...);
  if (code == 0) return;
  const auto name_of = reinterpret_cast<Code (*)(Code, const char**)>(dlsym(library_, "cuGetErrorName"));
  const char* text = nullptr;
  if (!name_of || name_of(code, &text) != 0 || !text) text = "unknown error";
  throw std::runtime_error(std::string(name) + ": " + text);
}

void Gpu::prepare(int number) {
  library_ = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!library_) throw std::runtime_error("no CUDA driver (libcuda.so.1) was found");
  int count = 0, device = 0;
  void* context = nullptr;
  call("cuInit", 0u);
  call("cuDeviceGetCount", &count);
  if (count == 0) throw std::runtime_error("no CUDA device");
  call("cuDeviceGet", &device, number % count);
  char name[256] = "";
  call("cuDeviceGetName", static_cast<char*>(name), int{sizeof name}, device);
  name_ = name;
  call("cuDevicePrimaryCtxRetain", &context, device);
  call("cuCtxSetCurrent", context);
  try {
    call("cuModuleLoadData", &module_, static_cast<const void*>(halo3d_image));
  } catch (const std::runtime_error& failed) {
    constexpr unsigned char fatbin[] = {0x50, 0xED, 0x55, 0xBA};
    if (std::equal(std::begin(fatbin), std::end(fatbin), halo3d_image)) throw;
    throw std::runtime_error("its kernels were left out of this build: there was no nvcc");
  }
}

std::string Gpu::open(int number) {
  try {
    the_one().prepare(number);
    return "";
  } catch (const std::runtime_error& failed) {
    return failed.what();
  }
}

Gpu& Gpu::get() { return the_one(); }

std::byte* Gpu::allocate(std::size_t bytes) {
  Address made = 0;
  call("cuMemAlloc_v2", &made, bytes);
  return pointer(made);
}
void Gpu::free(std::byte* memory) {
  // Runs in a destructor, so errors are ignored; an earlier call has reported a failing driver.
  const auto function = reinterpret_cast<Code (*)(Address)>(dlsym(library_, "cuMemFree_v2"));
  if (function) function(address(memory));
}
void Gpu::write(std::byte* target, const void* source, std::size_t bytes) {
  call("cuMemcpyHtoD_v2", address(target), source, bytes);
}
void Gpu::read(void* target, const std::byte* source, std::size_t bytes) {
  call("cuMemcpyDtoH_v2", target, address(source), bytes);
}
void Gpu::synchronize() { call("cuCtxSynchronize"); }

void Gpu::launch(const char* kernel, std::size_t elements, void* parameter) {
  constexpr std::size_t block = 256, most = 8192;  // enough blocks for any device
  void *function = nullptr, *stream = nullptr, *parameters[] = {parameter};
  call("cuModuleGetFunction", &function, module_, kernel);
  const unsigned grid = unsigned(std::clamp<std::size_t>((elements + block - 1) / block, 1, most));
  call("cuLaunchKernel", function, grid, 1u, 1u, unsigned{block}, 1u, 1u, 0u, stream, static_cast<void**>(parameters),
       static_cast<void**>(nullptr));
}

bool takes_device_pointers() {
  if (dlsym(RTLD_DEFAULT, "bestride_slot_target")) return true;
  const auto aware = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"));
  return aware && aware() == 1;
}

}  // namespace halo3d
