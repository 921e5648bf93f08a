// SPDX-License-Identifier: Apache-2.0
// Compares driver_abi.hpp with the toolkit's header: every constant and the layout of every structure. All checks
// happen at compile time.
#include <cuda.h>
#include <cudaTypedefs.h>

#include <type_traits>

#include "kernels/cuda/driver/driver.hpp"

namespace bestride::cuda {

static_assert(sizeof(CUresult) == sizeof(Code) && sizeof(CUdevice) == sizeof(DeviceOrdinal) &&
              sizeof(CUdeviceptr) == sizeof(Address));
static_assert(code::success == CUDA_SUCCESS && code::invalid_value == CUDA_ERROR_INVALID_VALUE &&
              code::out_of_memory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(code::not_initialized == CUDA_ERROR_NOT_INITIALIZED && code::deinitialized == CUDA_ERROR_DEINITIALIZED);
static_assert(code::no_device == CUDA_ERROR_NO_DEVICE && code::invalid_device == CUDA_ERROR_INVALID_DEVICE);
static_assert(code::invalid_image == CUDA_ERROR_INVALID_IMAGE && code::invalid_context == CUDA_ERROR_INVALID_CONTEXT);
static_assert(code::no_binary_for_gpu == CUDA_ERROR_NO_BINARY_FOR_GPU &&
              code::unsupported_ptx_version == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
static_assert(code::invalid_handle == CUDA_ERROR_INVALID_HANDLE && code::not_found == CUDA_ERROR_NOT_FOUND &&
              code::not_ready == CUDA_ERROR_NOT_READY);
static_assert(code::illegal_address == CUDA_ERROR_ILLEGAL_ADDRESS &&
              code::context_is_destroyed == CUDA_ERROR_CONTEXT_IS_DESTROYED);
static_assert(code::launch_failed == CUDA_ERROR_LAUNCH_FAILED && code::not_supported == CUDA_ERROR_NOT_SUPPORTED &&
              code::unknown == CUDA_ERROR_UNKNOWN);
static_assert(CUDA_ERROR_LAUNCH_TIMEOUT == 702 && CUDA_ERROR_HARDWARE_STACK_ERROR == 714 &&
              CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE == 720);  // is_context_lost

static_assert(attribute::context == CU_POINTER_ATTRIBUTE_CONTEXT &&
              attribute::memory_type == CU_POINTER_ATTRIBUTE_MEMORY_TYPE);
static_assert(attribute::device_pointer == CU_POINTER_ATTRIBUTE_DEVICE_POINTER &&
              attribute::buffer_id == CU_POINTER_ATTRIBUTE_BUFFER_ID);
static_assert(attribute::is_managed == CU_POINTER_ATTRIBUTE_IS_MANAGED &&
              attribute::device_ordinal == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
static_assert(attribute::range_start == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR &&
              attribute::range_size == CU_POINTER_ATTRIBUTE_RANGE_SIZE);
static_assert(memory_type::host == CU_MEMORYTYPE_HOST && memory_type::device == CU_MEMORYTYPE_DEVICE &&
              memory_type::unified == CU_MEMORYTYPE_UNIFIED);
static_assert(range_attribute::preferred_location == CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION);
static_assert(range_attribute::last_prefetch_location == CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION);
static_assert(CU_DEVICE_CPU == -1 && CU_DEVICE_INVALID == -2);
static_assert(device_attribute::max_pitch == CU_DEVICE_ATTRIBUTE_MAX_PITCH);
static_assert(device_attribute::multiprocessors == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(device_attribute::capability_major == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(device_attribute::capability_minor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(stream_non_blocking == CU_STREAM_NON_BLOCKING && event_disable_timing == CU_EVENT_DISABLE_TIMING);
static_assert(host_alloc_portable == CU_MEMHOSTALLOC_PORTABLE &&
              stream_capture_thread_local == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
static_assert(CU_GET_PROC_ADDRESS_DEFAULT == 0);

static_assert(sizeof(Copy2D) == sizeof(CUDA_MEMCPY2D) &&
              offsetof(Copy2D, source_type) == offsetof(CUDA_MEMCPY2D, srcMemoryType));
static_assert(offsetof(Copy2D, source_host) == offsetof(CUDA_MEMCPY2D, srcHost) &&
              offsetof(Copy2D, source_device) == offsetof(CUDA_MEMCPY2D, srcDevice));
static_assert(offsetof(Copy2D, source_pitch) == offsetof(CUDA_MEMCPY2D, srcPitch) &&
              offsetof(Copy2D, target_x) == offsetof(CUDA_MEMCPY2D, dstXInBytes));
static_assert(offsetof(Copy2D, target_type) == offsetof(CUDA_MEMCPY2D, dstMemoryType) &&
              offsetof(Copy2D, target_host) == offsetof(CUDA_MEMCPY2D, dstHost));
static_assert(offsetof(Copy2D, target_device) == offsetof(CUDA_MEMCPY2D, dstDevice) &&
              offsetof(Copy2D, target_pitch) == offsetof(CUDA_MEMCPY2D, dstPitch));
static_assert(offsetof(Copy2D, width) == offsetof(CUDA_MEMCPY2D, WidthInBytes) &&
              offsetof(Copy2D, height) == offsetof(CUDA_MEMCPY2D, Height));
static_assert(sizeof(Copy3D) == sizeof(CUDA_MEMCPY3D) &&
              offsetof(Copy3D, source_type) == offsetof(CUDA_MEMCPY3D, srcMemoryType));
static_assert(offsetof(Copy3D, source_host) == offsetof(CUDA_MEMCPY3D, srcHost) &&
              offsetof(Copy3D, source_device) == offsetof(CUDA_MEMCPY3D, srcDevice));
static_assert(offsetof(Copy3D, source_pitch) == offsetof(CUDA_MEMCPY3D, srcPitch) &&
              offsetof(Copy3D, source_height) == offsetof(CUDA_MEMCPY3D, srcHeight));
static_assert(offsetof(Copy3D, target_type) == offsetof(CUDA_MEMCPY3D, dstMemoryType) &&
              offsetof(Copy3D, target_device) == offsetof(CUDA_MEMCPY3D, dstDevice));
static_assert(offsetof(Copy3D, target_pitch) == offsetof(CUDA_MEMCPY3D, dstPitch) &&
              offsetof(Copy3D, target_height) == offsetof(CUDA_MEMCPY3D, dstHeight));
static_assert(offsetof(Copy3D, width) == offsetof(CUDA_MEMCPY3D, WidthInBytes) &&
              offsetof(Copy3D, depth) == offsetof(CUDA_MEMCPY3D, Depth));

// ---- Each entry point has the parameters of the version that driver.cpp requests

/// The bytes of a parameter; 0 for every pointer, because the types that they point to have other names.
template <class T>
constexpr std::size_t size() {
  if constexpr (std::is_pointer_v<T>)
    return 0;
  else
    return sizeof(T);
}
template <class Own, class Theirs>
struct SameShape : std::false_type {};
template <class... A, class R, class... B>
struct SameShape<Code (*)(A...), R (*)(B...)> {
  static constexpr bool same() {
    if constexpr (sizeof...(A) == sizeof...(B))
      return sizeof(R) == sizeof(Code) && ((size<A>() == size<B>()) && ...);
    else
      return false;
  }
  static constexpr bool value = same();
};
template <class Own, class Theirs>
constexpr bool same(Own DriverCalls::*, Theirs) {
  return SameShape<Own, Theirs>::value;
}

using D = DriverCalls;
static_assert(same(&D::cuDriverGetVersion, PFN_cuDriverGetVersion_v2020{}) &&
              same(&D::cuGetErrorName, PFN_cuGetErrorName_v6000{}));
static_assert(same(&D::cuPointerGetAttributes, PFN_cuPointerGetAttributes_v7000{}) &&
              same(&D::cuMemRangeGetAttribute, PFN_cuMemRangeGetAttribute_v8000{}));
static_assert(same(&D::cuDeviceGet, PFN_cuDeviceGet_v2000{}) &&
              same(&D::cuDeviceGetAttribute, PFN_cuDeviceGetAttribute_v2000{}));
static_assert(same(&D::cuDeviceGetCount, PFN_cuDeviceGetCount_v2000{}) &&
              same(&D::cuDeviceGetName, PFN_cuDeviceGetName_v2000{}));
static_assert(same(&D::cuDevicePrimaryCtxGetState, PFN_cuDevicePrimaryCtxGetState_v7000{}));
static_assert(same(&D::cuDevicePrimaryCtxRetain, PFN_cuDevicePrimaryCtxRetain_v7000{}));
static_assert(same(&D::cuDevicePrimaryCtxRelease, PFN_cuDevicePrimaryCtxRelease_v11000{}));
static_assert(same(&D::cuCtxPushCurrent, PFN_cuCtxPushCurrent_v4000{}) &&
              same(&D::cuCtxPopCurrent, PFN_cuCtxPopCurrent_v4000{}));
static_assert(same(&D::cuCtxGetDevice, PFN_cuCtxGetDevice_v2000{}) && same(&D::cuCtxGetId, PFN_cuCtxGetId_v12000{}));
static_assert(same(&D::cuModuleLoadData, PFN_cuModuleLoadData_v2000{}) &&
              same(&D::cuModuleUnload, PFN_cuModuleUnload_v2000{}));
static_assert(same(&D::cuModuleGetFunction, PFN_cuModuleGetFunction_v2000{}) &&
              same(&D::cuLaunchKernel, PFN_cuLaunchKernel_v4000{}));
static_assert(same(&D::cuMemAlloc, PFN_cuMemAlloc_v3020{}) && same(&D::cuMemFree, PFN_cuMemFree_v3020{}));
static_assert(same(&D::cuMemHostAlloc, PFN_cuMemHostAlloc_v2020{}) &&
              same(&D::cuMemFreeHost, PFN_cuMemFreeHost_v2000{}));
static_assert(same(&D::cuMemcpyHtoDAsync, PFN_cuMemcpyHtoDAsync_v3020{}) &&
              same(&D::cuMemcpyDtoHAsync, PFN_cuMemcpyDtoHAsync_v3020{}));
static_assert(same(&D::cuMemcpyDtoDAsync, PFN_cuMemcpyDtoDAsync_v3020{}) &&
              same(&D::cuMemcpy2DAsync, PFN_cuMemcpy2DAsync_v3020{}));
static_assert(same(&D::cuMemcpy3DAsync, PFN_cuMemcpy3DAsync_v3020{}));
static_assert(same(&D::cuStreamCreate, PFN_cuStreamCreate_v2000{}) &&
              same(&D::cuStreamDestroy, PFN_cuStreamDestroy_v4000{}));
static_assert(same(&D::cuStreamSynchronize, PFN_cuStreamSynchronize_v2000{}) &&
              same(&D::cuStreamWaitEvent, PFN_cuStreamWaitEvent_v3020{}));
static_assert(same(&D::cuStreamBeginCapture, PFN_cuStreamBeginCapture_v10010{}) &&
              same(&D::cuStreamEndCapture, PFN_cuStreamEndCapture_v10000{}));
static_assert(same(&D::cuGraphInstantiateWithFlags, PFN_cuGraphInstantiateWithFlags_v11040{}) &&
              same(&D::cuGraphLaunch, PFN_cuGraphLaunch_v10000{}));
static_assert(same(&D::cuGraphDestroy, PFN_cuGraphDestroy_v10000{}) &&
              same(&D::cuGraphExecDestroy, PFN_cuGraphExecDestroy_v10000{}));
static_assert(same(&D::cuEventCreate, PFN_cuEventCreate_v2000{}) &&
              same(&D::cuEventDestroy, PFN_cuEventDestroy_v4000{}));
static_assert(same(&D::cuEventRecord, PFN_cuEventRecord_v2000{}) && same(&D::cuEventQuery, PFN_cuEventQuery_v2000{}));
static_assert(same(&D::cuEventSynchronize, PFN_cuEventSynchronize_v2000{}));

}  // namespace bestride::cuda
