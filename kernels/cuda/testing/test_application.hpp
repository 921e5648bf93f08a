// SPDX-License-Identifier: Apache-2.0
#pragma once
// The application in the tests of this folder. It loads a driver (the stand-in, or the machine's if
// BESTRIDE_TEST_CUDA=real), creates contexts and allocates memory through it, and fails the test on any error of its
// own calls.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cuda/device/device.hpp"
#include "kernels/cuda/testing/test_bytes.hpp"

namespace bestride::cuda::test {

class Application {
 public:
  /// Loads the driver and, unless told not to, initializes it. One per process.
  static Application& get() {
    static Application* const one = new Application;
    return *one;
  }

  template <class F>
  F entry(const char* name) const {
    return reinterpret_cast<F>(dlsym(library_, name));
  }
  /// Calls an entry point that returns a code; 0 on success.
  template <class... A>
  Code call(const char* name, A... arguments) const {
    const auto function = entry<Code (*)(A...)>(name);
    return function ? function(arguments...) : code::not_found;
  }

  bool real() const { return real_; }
  bool loaded() const { return library_ != nullptr; }
  void* library() const { return library_; }

  int devices() const {
    int count = 0;
    call("cuDeviceGetCount", &count);
    return count;
  }
  bool initialize() { return call("cuInit", 0u) == code::success && devices() > 0; }
  /// Makes the primary context of a device current, and retains it until the process ends.
  ContextHandle use_device(int device) {
    ContextHandle context = nullptr;
    EXPECT_EQ(call("cuDevicePrimaryCtxRetain", &context, device), code::success);
    EXPECT_EQ(call("cuCtxSetCurrent", context), code::success);
    return context;
  }
  ContextHandle make_context(int device) {
    ContextHandle context = nullptr;
    EXPECT_EQ(call("cuCtxCreate_v2", &context, 0u, device), code::success);
    return context;
  }

  // Controls of the stand-in (tests/fake_cuda/control.h); on hardware they do nothing.
  void fail(const char* specification) const { control("fake_cuda_fail", specification); }
  void hold(bool on) const { control("fake_cuda_hold", on ? 1 : 0); }
  void shut_down(bool on) const { control("fake_cuda_shut_down", on ? 1 : 0); }
  void capability(int value) const { control("fake_cuda_capability", value); }
  int calls(const char* name) const {
    const auto function = entry<int (*)(const char*)>("fake_cuda_calls");
    return function ? function(name) : 0;
  }
  int live() const {
    const auto function = entry<int (*)()>("fake_cuda_live");
    return function ? function() : 0;
  }

 private:
  Application() {
    const char* which = std::getenv("BESTRIDE_TEST_CUDA");
    real_ = which && std::string(which) == "real";
    library_ = dlopen(real_ ? "libcuda.so.1" : BESTRIDE_FAKE_CUDA, RTLD_NOW | RTLD_GLOBAL);
    if (!library_) ADD_FAILURE() << dlerror();
  }
  template <class A>
  void control(const char* name, A argument) const {
    if (const auto function = entry<void (*)(A)>(name)) function(argument);
  }

  void* library_ = nullptr;
  bool real_ = false;
};

/// Memory of any kind that the application allocates, written and read through its own copies. The context must be
/// current at construction; it may be destroyed before this object.
class TestMemory {
 public:
  TestMemory(MemoryKind kind, std::size_t size) : kind_(kind), bytes_(size) {
    Application& app = Application::get();
    app.call("cuCtxGetCurrent", &context_);
    switch (kind) {
      case MemoryKind::device: EXPECT_EQ(app.call("cuMemAlloc_v2", &address_, size), code::success); break;
      case MemoryKind::managed: EXPECT_EQ(app.call("cuMemAllocManaged", &address_, size, 1u), code::success); break;
      case MemoryKind::pinned:
        EXPECT_EQ(app.call("cuMemHostAlloc", reinterpret_cast<void**>(&address_), size, 1u), code::success);
        break;
      default: address_ = reinterpret_cast<Address>(std::malloc(size));
    }
  }
  ~TestMemory() { release(); }
  TestMemory(const TestMemory&) = delete;
  TestMemory& operator=(const TestMemory&) = delete;

  void release() {
    Application& app = Application::get();
    if (address_ == 0) return;
    if (kind_ == MemoryKind::host) {
      std::free(data());
    } else if (app.call("cuCtxPushCurrent_v2", context_) == code::success) {
      if (kind_ == MemoryKind::pinned)
        app.call("cuMemFreeHost", data());
      else
        app.call("cuMemFree_v2", address_);
      ContextHandle popped = nullptr;
      app.call("cuCtxPopCurrent_v2", &popped);
    }
    address_ = 0;
  }

  Address address() const { return address_; }
  unsigned char* data() const { return reinterpret_cast<unsigned char*>(address_); }
  std::size_t size() const { return bytes_; }

  void write(const std::vector<unsigned char>& from) const {
    ContextHandle popped = nullptr;
    Application::get().call("cuCtxPushCurrent_v2", context_);
    EXPECT_EQ(Application::get().call("cuMemcpyHtoD_v2", address_, static_cast<const void*>(from.data()), from.size()),
              code::success);
    Application::get().call("cuCtxSynchronize");
    Application::get().call("cuCtxPopCurrent_v2", &popped);
  }
  std::vector<unsigned char> read() const {
    std::vector<unsigned char> to(bytes_);
    ContextHandle popped = nullptr;
    Application::get().call("cuCtxPushCurrent_v2", context_);
    EXPECT_EQ(Application::get().call("cuMemcpyDtoH_v2", static_cast<void*>(to.data()), address_, bytes_),
              code::success);
    Application::get().call("cuCtxPopCurrent_v2", &popped);
    return to;
  }

 private:
  MemoryKind kind_;
  std::size_t bytes_;
  Address address_ = 0;
  ContextHandle context_ = nullptr;
};

/// Base class of tests that need a device: device 0's primary context is current, no failure is set.
class OnDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    Application& app = Application::get();
    if (!app.loaded() || !app.initialize()) GTEST_SKIP() << "no CUDA device";
    app.fail("");
    context_ = app.use_device(0);
  }
  void TearDown() override {
    Application::get().hold(false);
    Application::get().fail("");
  }
  Application& app() const { return Application::get(); }
  /// The library's Device of the current context.
  DevicePtr device() const {
    const TestMemory some(MemoryKind::device, 512);
    Result<DevicePtr> made = Device::of(where(some.data()));
    EXPECT_TRUE(made) << made.error().text;
    return made ? *made : nullptr;
  }
  /// True on the stand-in, which tests that force failures need.
  bool stand_in() const { return !app().real(); }

  ContextHandle context_ = nullptr;
};

}  // namespace bestride::cuda::test
