// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/device_buffer.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bestride::test {
namespace {

void* driver = nullptr;

template <class... A>
int call(const char* entry, A... arguments) {
  const auto function = reinterpret_cast<int (*)(A...)>(dlsym(driver, entry));
  return function ? function(arguments...) : -1;
}

void need(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "FAILED: %s\n", what);
  std::_Exit(3);
}

}  // namespace

const char* name(Kind kind) {
  constexpr const char* names[] = {"host", "device", "managed"};
  return names[static_cast<int>(kind)];
}

bool start_cuda() {
  driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  void* context = nullptr;
  if (driver && call("cuInit", 0u) == 0 && call("cuDevicePrimaryCtxRetain", &context, 0) == 0 &&
      call("cuCtxSetCurrent", context) == 0)
    return true;
  std::fprintf(stderr, "FAILED: no CUDA driver or device\n");
  return false;
}

void fail_cuda(const char* specification) {
  if (const auto fail = reinterpret_cast<void (*)(const char*)>(dlsym(driver, "fake_cuda_fail"))) fail(specification);
}

DeviceBuffer::DeviceBuffer(Kind kind, std::size_t bytes) : kind_(kind), bytes_(bytes) {
  unsigned long long address = 0;
  switch (kind) {
    case Kind::host: address = reinterpret_cast<unsigned long long>(std::malloc(bytes)); break;
    case Kind::device: need(call("cuMemAlloc_v2", &address, bytes) == 0, "cuMemAlloc"); break;
    case Kind::managed: need(call("cuMemAllocManaged", &address, bytes, 1u) == 0, "cuMemAllocManaged"); break;
  }
  data_ = reinterpret_cast<char*>(address);
}

DeviceBuffer::~DeviceBuffer() {
  if (kind_ == Kind::host)
    std::free(data_);
  else
    call("cuMemFree_v2", reinterpret_cast<unsigned long long>(data_));
}

void DeviceBuffer::write(const std::vector<char>& bytes) const {
  if (kind_ == Kind::host) {
    std::memcpy(data_, bytes.data(), bytes_);
    return;
  }
  need(call("cuMemcpyHtoD_v2", reinterpret_cast<unsigned long long>(data_), static_cast<const void*>(bytes.data()),
            bytes_) == 0,
       "cuMemcpyHtoD");
  need(call("cuCtxSynchronize") == 0, "cuCtxSynchronize");
}

std::vector<char> DeviceBuffer::read() const {
  std::vector<char> bytes(bytes_);
  if (kind_ == Kind::host)
    std::memcpy(bytes.data(), data_, bytes_);
  else
    need(call("cuMemcpyDtoH_v2", static_cast<void*>(bytes.data()), reinterpret_cast<unsigned long long>(data_),
              bytes_) == 0,
         "cuMemcpyDtoH");
  return bytes;
}

}  // namespace bestride::test
