// SPDX-License-Identifier: Apache-2.0
// Driver entries: initialization, devices, contexts, errors.
#include <cstring>

#include "tests/fake_cuda/memory.hpp"
#include "tests/fake_cuda/stream.hpp"

using namespace fake;
namespace abi = bestride::cuda;

namespace {

bool known_device(int device) { return device >= 0 && device < state().devices; }

Code create(void** context, int device, const char* entry) {
  if (const Code failed = entered(entry)) return failed;
  if (!known_device(device)) return code::invalid_device;
  Context* made = make_context(device, false);
  push_context(made);
  *context = made;
  return code::success;
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

Code cuInit(unsigned flags) {
  // Counted and made to fail like other entries, but allowed before initialization.
  const Code failed = entered("cuInit");
  if (failed != code::success && failed != code::not_initialized) return failed;
  if (flags != 0) return code::invalid_value;
  if (state().devices == 0) return code::no_device;
  state().initialized = true;
  return code::success;
}

Code cuDriverGetVersion(int* version) {
  *version = state().version;
  return code::success;
}

Code cuGetErrorName(Code value, const char** text) {
  *text = name_of(value);
  return *text ? code::success : code::invalid_value;
}
Code cuGetErrorString(Code value, const char** text) { return cuGetErrorName(value, text); }

Code cuDeviceGetCount(int* count) {
  if (const Code failed = entered("cuDeviceGetCount")) return failed;
  *count = state().devices;
  return code::success;
}

Code cuDeviceGet(int* device, int ordinal) {
  if (const Code failed = entered("cuDeviceGet")) return failed;
  if (!known_device(ordinal)) return code::invalid_device;
  *device = ordinal;
  return code::success;
}

Code cuDeviceGetName(char* name, int length, int device) {
  if (const Code failed = entered("cuDeviceGetName")) return failed;
  if (!known_device(device) || length < 1) return code::invalid_device;
  std::strncpy(name, "Stand-in", static_cast<std::size_t>(length) - 1);
  name[length - 1] = 0;
  return code::success;
}

Code cuDeviceTotalMem_v2(std::size_t* bytes, int device) {
  if (const Code failed = entered("cuDeviceTotalMem_v2")) return failed;
  if (!known_device(device)) return code::invalid_device;
  *bytes = std::size_t{16} << 30;
  return code::success;
}

Code cuDeviceGetAttribute(int* value, int which, int device) {
  if (const Code failed = entered("cuDeviceGetAttribute")) return failed;
  if (!known_device(device)) return code::invalid_device;
  switch (which) {
    case abi::device_attribute::max_pitch: *value = 2147483647; return code::success;
    case abi::device_attribute::multiprocessors: *value = 4; return code::success;
    case abi::device_attribute::capability_major: *value = state().capability / 10; return code::success;
    case abi::device_attribute::capability_minor: *value = state().capability % 10; return code::success;
    case 41: *value = 1; return code::success;  // unified addressing
    default: *value = 0; return code::success;
  }
}

Code cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  if (const Code failed = entered("cuDevicePrimaryCtxGetState")) return failed;
  if (!known_device(device)) return code::invalid_device;
  const std::lock_guard lock(state().mutex);
  *flags = 0;
  *active = state().primaries[static_cast<std::size_t>(device)].context != nullptr;
  return code::success;
}

Code cuDevicePrimaryCtxRetain(void** context, int device) {
  if (const Code failed = entered("cuDevicePrimaryCtxRetain")) return failed;
  if (!known_device(device)) return code::invalid_device;
  const std::lock_guard lock(state().mutex);
  State::Primary& primary = state().primaries[static_cast<std::size_t>(device)];
  if (!primary.context) primary.context = make_context(device, true);
  ++primary.retained;
  *context = primary.context;
  return code::success;
}

Code cuDevicePrimaryCtxReset_v2(int device) {
  if (const Code failed = entered_anyhow("cuDevicePrimaryCtxReset_v2")) return failed;
  if (!known_device(device)) return code::invalid_device;
  Context* old = nullptr;
  {
    const std::lock_guard lock(state().mutex);
    old = state().primaries[static_cast<std::size_t>(device)].context;
    state().primaries[static_cast<std::size_t>(device)].context = nullptr;
  }
  if (old) destroy_context(old);
  return code::success;
}

Code cuDevicePrimaryCtxRelease_v2(int device) {
  if (const Code failed = entered_anyhow("cuDevicePrimaryCtxRelease_v2")) return failed;
  if (!known_device(device)) return code::invalid_device;
  Context* old = nullptr;
  {
    const std::lock_guard lock(state().mutex);
    State::Primary& primary = state().primaries[static_cast<std::size_t>(device)];
    if (primary.retained == 0) return code::invalid_context;
    if (--primary.retained == 0) std::swap(old, primary.context);
  }
  if (old) destroy_context(old);
  return code::success;
}

Code cuCtxCreate_v2(void** context, unsigned, int device) { return create(context, device, "cuCtxCreate_v2"); }
Code cuCtxCreate_v4(void** context, void*, unsigned, int device) { return create(context, device, "cuCtxCreate_v4"); }

Code cuCtxDestroy_v2(void* handle) {
  if (const Code failed = entered_anyhow("cuCtxDestroy_v2")) return failed;
  Context* context = known_context(handle);
  if (!context || !context->alive) return code::invalid_context;
  if (current_context() == context) pop_context();
  destroy_context(context);
  return code::success;
}

Code cuCtxPushCurrent_v2(void* handle) {
  if (const Code failed = entered_anyhow("cuCtxPushCurrent_v2")) return failed;
  Context* context = known_context(handle);
  if (!context) return code::invalid_context;
  if (!context->alive) return code::context_is_destroyed;
  push_context(context);
  return code::success;
}

Code cuCtxPopCurrent_v2(void** context) {
  if (state().shut_down) return code::deinitialized;
  Context* top = pop_context();
  if (!top) return code::invalid_context;
  if (context) *context = top;
  return code::success;
}

Code cuCtxSetCurrent(void* handle) {
  if (const Code failed = entered_anyhow("cuCtxSetCurrent")) return failed;
  Context* context = handle ? known_context(handle) : nullptr;
  if (handle && (!context || !context->alive)) return code::invalid_context;
  replace_context(context);
  return code::success;
}

Code cuCtxGetCurrent(void** context) {
  if (state().shut_down) return code::deinitialized;
  *context = current_context();
  return code::success;
}

Code cuCtxGetDevice(int* device) {
  Context* context = nullptr;
  if (const Code failed = entered_with_context("cuCtxGetDevice", &context)) return failed;
  *device = context->device;
  return code::success;
}

Code cuCtxGetId(void* handle, unsigned long long* id) {
  if (const Code failed = entered_anyhow("cuCtxGetId")) return failed;
  Context* context = handle ? known_context(handle) : current_context();
  if (!context) return code::invalid_context;
  if (!context->alive) return code::context_is_destroyed;
  *id = context->id;
  return code::success;
}

Code cuCtxSynchronize() {
  Context* context = nullptr;
  if (const Code failed = entered_with_context("cuCtxSynchronize", &context)) return failed;
  return synchronize(context);
}

#pragma GCC visibility pop
}
