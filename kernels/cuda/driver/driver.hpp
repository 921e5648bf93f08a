// SPDX-License-Identifier: Apache-2.0
#pragma once
// Driver: the CUDA driver's entry points, found at run time.
//
// The library has no link-time dependency on CUDA and needs no CUDA header. As long as the application has not loaded
// the driver, there can be no device memory, and this code does not load the driver either: a query then costs one read
// of the dynamic linker's object count and no driver call. This folder never initializes the driver and never creates
// or retains a context. Alternative considered: dlopen in MPI_Init. A process that never uses the GPU would then have
// the driver loaded, and every MPI call would query it.
#include <memory>
#include <string>

#include "base/result.hpp"
#include "kernels/cuda/driver/driver_abi.hpp"

namespace bestride::cuda {

/// The value of a Result of an operation that returns nothing.
struct Done {};

/// One pointer per entry point, named as the function without its version suffix, in the ABI of the driver version that
/// driver.cpp requests.
struct DriverCalls {
  Code (*cuDriverGetVersion)(int* version);
  Code (*cuGetErrorName)(Code code, const char** text);
  Code (*cuPointerGetAttributes)(unsigned count, int* attributes, void** data, Address pointer);
  Code (*cuMemRangeGetAttribute)(void* data, std::size_t size, int attribute, Address base, std::size_t bytes);
  Code (*cuDeviceGet)(DeviceOrdinal* device, int ordinal);
  Code (*cuDeviceGetCount)(int* count);
  Code (*cuDeviceGetName)(char* name, int length, DeviceOrdinal device);
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
  Code (*cuLaunchKernel)(FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                         unsigned block_y, unsigned block_z, unsigned shared_bytes, StreamHandle stream,
                         void** parameters, void** extra);
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

/// Immutable after construction; thread-safe. Never unloaded.
class Driver : public DriverCalls {
 public:
  /// The process's driver. Null if BESTRIDE_GPU=off, if the application has not loaded the driver yet, or if the driver
  /// is too old or lacks an entry point (reported once; GPU support then stays off). If BESTRIDE_CUDA_DRIVER is set,
  /// that file is loaded at the first call instead. Does not initialize the driver. Thread-safe, never throws. Cost:
  /// one atomic load after the driver was found; before that, one dl_iterate_phdr that stops at its first object.
  static const Driver* get() noexcept;

  /// True if get() returned null although a driver is loaded: it is too old or lacks an entry point. Device memory may
  /// then exist that this library cannot move.
  static bool unusable() noexcept;

  /// Loads the driver even if the application has not. For tools and measurements. Otherwise the same rules and result
  /// as get().
  static const Driver* open() noexcept;

  /// Binds the entry points of a library opened by dlopen. The error names the missing entry and the remedy.
  static Result<std::unique_ptr<const Driver>> bind(void* library) noexcept;

  int version() const noexcept { return version_; }  ///< e.g. 12040

  /// An error such as "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY", with the remedy if one is known.
  Error error(const char* call, Code code) const;

 private:
  Driver() = default;
  int version_ = 0;
};

/// True if the driver or the context is destroyed or permanently unusable. Its resources must then be abandoned, not
/// freed.
bool is_context_lost(Code code) noexcept;

}  // namespace bestride::cuda
