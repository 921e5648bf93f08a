/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a test may ask of the stand-in driver beyond the driver's own interface. Thread-safe. */
#ifdef __cplusplus
extern "C" {
#endif

/* Replaces the failures to force: the form of FAKE_CUDA_FAIL; "" for none. Counting starts anew. */
void fake_cuda_fail(const char* specification);
/* How often an entry was called since the last fake_cuda_fail. Names as exported: "cuMemAlloc_v2". */
int fake_cuda_calls(const char* entry);
/* Pause before each piece of asynchronous work. */
void fake_cuda_delay(int microseconds);
/* 1: no asynchronous work starts; 0: it goes on. */
void fake_cuda_hold(int on);
/* 1: every call answers CUDA_ERROR_DEINITIALIZED, as at the end of a process. */
void fake_cuda_shut_down(int on);
/* Allocations, streams, events and graphs made and not destroyed. A context takes its allocations along, not the others. */
int fake_cuda_live(void);
/* What cuDriverGetVersion says, and an entry cuGetProcAddress does not find ("" for none). */
void fake_cuda_pretend(int version, const char* missing);
/* Compute capability of all devices, e.g. 80. */
void fake_cuda_capability(int capability);

#ifdef __cplusplus
}
#endif
