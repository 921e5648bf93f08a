// SPDX-License-Identifier: Apache-2.0
#pragma once
// Driver: the CUDA driver's entry points, found at run time.
//
// The library has no link-time dependency on CUDA and needs none of its headers. As long as the application has not loaded the
// driver itself, there can be no device memory, and the driver is not loaded either: a question then costs one look at the dynamic
// linker's count of objects and no driver call. The room never initialises the driver and never makes or retains a context.
// Alternative that lost: dlopen at MPI_Init. A process that never uses the GPU would carry the driver, and every call
// would ask it.
#include <memory>
#include <string>

#include "base/result.hpp"
#include "kernels/cuda/driver_abi.hpp"

namespace bestride::cuda {

/// The value of a Result that only says "it worked".
struct Done {};

/// One pointer per entry point, by its name without version suffix, in the ABI of the driver version asked for in driver.cpp.
struct DriverCalls {
  Code (*cuDriverGetVersion)(int* version);
  Code (*cuGetErrorName)(Code code, const char** text);
  Code (*cuPointerGetAttributes)(unsigned count, int* attributes, void** data, Address pointer);
  Code (*cuMemRangeGetAttribute)(void* data, std::size_t size, int attribute, Address base, std::size_t bytes);
  Code (*cuDeviceGet)(DeviceOrdinal* device, int ordinal);
  Code (*cuDeviceGetAttribute)(int* value, int attribute, DeviceOrdinal device);
  Code (*cuDevicePrimaryCtxGetState)(DeviceOrdinal device, unsigned* flags, int* active);
  Code (*cuDevicePrimaryCtxRetain)(ContextHandle* context, DeviceOrdinal device);
  Code (*cuDevicePrimaryCtxRelease)(DeviceOrdinal device);
  Code (*cuCtxPushCurrent)(ContextHandle context);
  Code (*cuCtxPopCurrent)(ContextHandle* context);
  Code (*cuCtxGetDevice)(DeviceOrdinal* device);
  Code (*cuCtxGetId)(ContextHandle context, unsigned long long* id);
  Code (*cuModuleLoadData)(ModuleHandle* module, const void* image);
  Code (*cuModuleUnload)(ModuleHandle module);
  Code (*cuModuleGetFunction)(FunctionHandle* function, ModuleHandle module, const char* name);
  Code (*cuLaunchKernel)(FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                         unsigned block_z, unsigned shared_bytes, StreamHandle stream, void** parameters, void** extra);
  Code (*cuMemAlloc)(Address* address, std::size_t size);
  Code (*cuMemFree)(Address address);
  Code (*cuMemHostAlloc)(void** address, std::size_t size, unsigned flags);
  Code (*cuMemFreeHost)(void* address);
  Code (*cuMemcpyHtoDAsync)(Address target, const void* source, std::size_t size, StreamHandle stream);
  Code (*cuMemcpyDtoHAsync)(void* target, Address source, std::size_t size, StreamHandle stream);
  Code (*cuMemcpyDtoDAsync)(Address target, Address source, std::size_t size, StreamHandle stream);
  Code (*cuMemcpy2DAsync)(const Copy2D* copy, StreamHandle stream);
  Code (*cuMemcpy3DAsync)(const Copy3D* copy, StreamHandle stream);
  Code (*cuStreamCreate)(StreamHandle* stream, unsigned flags);
  Code (*cuStreamDestroy)(StreamHandle stream);
  Code (*cuStreamSynchronize)(StreamHandle stream);
  Code (*cuStreamWaitEvent)(StreamHandle stream, EventHandle event, unsigned flags);
  Code (*cuStreamBeginCapture)(StreamHandle stream, int mode);
  Code (*cuStreamEndCapture)(StreamHandle stream, GraphHandle* graph);
  Code (*cuGraphInstantiateWithFlags)(GraphExecHandle* exec, GraphHandle graph, unsigned long long flags);
  Code (*cuGraphLaunch)(GraphExecHandle exec, StreamHandle stream);
  Code (*cuGraphDestroy)(GraphHandle graph);
  Code (*cuGraphExecDestroy)(GraphExecHandle exec);
  Code (*cuEventCreate)(EventHandle* event, unsigned flags);
  Code (*cuEventDestroy)(EventHandle event);
  Code (*cuEventRecord)(EventHandle event, StreamHandle stream);
  Code (*cuEventQuery)(EventHandle event);
  Code (*cuEventSynchronize)(EventHandle event);
};

/// Immutable once made; thread-safe. Never unloaded.
class Driver : public DriverCalls {
 public:
  /// The process's driver, or null: BESTRIDE_GPU=off, or the application has not loaded the driver so far, or it is too old or
  /// lacks an entry (said once; the GPU part stays off for good). With BESTRIDE_CUDA_DRIVER set, that file is loaded at the first
  /// call instead of waiting for the application. Does not initialise the driver. Thread-safe, never throws; after the driver
  /// was found one atomic load, before that one dl_iterate_phdr stopped at its first object.
  static const Driver* get() noexcept;

  /// After get() returned null: a driver is there, and it can't be used (too old, lacks an entry). There may be device memory, then, that
  /// nothing here can move.
  static bool unusable() noexcept;

  /// Loads the driver even though nobody else did: for tools and measurements. Same rules and result as get() otherwise.
  static const Driver* open() noexcept;

  /// Binds the entry points of a library opened by dlopen. The error names what is missing and what to do.
  static Result<std::unique_ptr<const Driver>> bind(void* library) noexcept;

  int version() const noexcept { return version_; }  ///< e.g. 12040

  /// "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY" and, where there is one, the remedy.
  Error error(const char* call, Code code) const;

 private:
  Driver() = default;
  int version_ = 0;
};

/// The driver, or the context, is gone or spoilt for good: whatever was made in it must be left alone, not freed.
bool is_gone(Code code) noexcept;

}  // namespace bestride::cuda
