/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Functions of the stand-in driver for tests, beyond the driver's own interface. Thread-safe. */
#ifdef __cplusplus
extern "C" {
#endif

/* Sets the failures to inject, in the form of FAKE_CUDA_FAIL; "": none. Resets the counts. */
void fake_cuda_fail(const char* specification);
/* Number of calls of an entry since the last fake_cuda_fail. Names as exported: "cuMemAlloc_v2". */
int fake_cuda_calls(const char* entry);
/* Pause before each piece of asynchronous work. */
void fake_cuda_delay(int microseconds);
/* 1: no asynchronous work starts; 0: it continues. */
void fake_cuda_hold(int on);
/* 1: every call returns CUDA_ERROR_DEINITIALIZED, as at the end of a process. */
void fake_cuda_shut_down(int on);
/* Number of allocations, streams, events and graphs that were not destroyed. Destroying a context frees its
 * allocations, but not the others. */
int fake_cuda_live(void);
/* The result of cuDriverGetVersion, and an entry that cuGetProcAddress does not find ("": none). */
void fake_cuda_pretend(int version, const char* missing);
/* Compute capability of all devices, e.g. 80. */
void fake_cuda_capability(int capability);

/* Kernels of a program's own modules. A module's image is machine code of the device, which the stand-in can't run; so
 * the program exports the same kernels compiled for the host, and cuModuleGetFunction finds them there by name:
 *
 *   extern "C" const fake_cuda_kernel fake_cuda_kernels[] = {{"name", sizeof(Parameter), function}, {0, 0, 0}};
 *
 * with default visibility, in an executable linked with -Wl,--export-dynamic-symbol=fake_cuda_kernels. A kernel takes
 * one parameter, by value. `run` does the work of all threads of a launch, on a stream's thread; it returns what the
 * hardware would report (0: success). Programs that include no header of this project declare the three for themselves.
 */
struct fake_cuda_launch {
  unsigned grid, block; /* along x; they have no other dimension */
  /* Where the host finds [address, address + bytes); null if that is not wholly inside one allocation the launch
   * reaches: return 700. */
  void* (*at)(const struct fake_cuda_launch*, unsigned long long address, unsigned long long bytes);
};
struct fake_cuda_kernel {
  const char* name;
  unsigned long long parameter_bytes;
  int (*run)(const struct fake_cuda_launch*, const void* parameter);
};

#ifdef __cplusplus
}
#endif
