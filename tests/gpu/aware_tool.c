/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates a GPU-aware MPI library. Preloaded after libbestride.so, it accepts device memory in a few calls, copies it
 * through host memory, and counts the calls that got device memory, which it recognizes by asking the driver. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((visibility("default"))) int aware_tool_given = 0;

static int on_device(const void* buffer) {
  static int (*ask)(void*, int, uint64_t);
  if (!ask) {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (driver) ask = (int (*)(void*, int, uint64_t))dlsym(driver, "cuPointerGetAttribute");
  }
  unsigned type = 0;
  return ask && ask(&type, 2, (uint64_t)(uintptr_t)buffer) == 0 && type == 2;
}

static void copy(void* to, const void* from, size_t size, int to_device) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (to_device)
    ((int (*)(uint64_t, const void*, size_t))dlsym(driver, "cuMemcpyHtoD_v2"))((uint64_t)(uintptr_t)to, from, size);
  else
    ((int (*)(void*, uint64_t, size_t))dlsym(driver, "cuMemcpyDtoH_v2"))(to, (uint64_t)(uintptr_t)from, size);
}

/* The tests pass only contiguous types. */
static size_t bytes_of(int count, MPI_Datatype type) {
  int size;
  PMPI_Type_size(type, &size);
  return (size_t)count * (size_t)size;
}

__attribute__((visibility("default"))) int MPI_Send(const void* buffer, int count, MPI_Datatype type, int to, int tag,
                                                    MPI_Comm comm) {
  if (!on_device(buffer)) return PMPI_Send(buffer, count, type, to, tag, comm);
  ++aware_tool_given;
  void* host = malloc(bytes_of(count, type) + 1);
  copy(host, buffer, bytes_of(count, type), 0);
  const int error = PMPI_Send(host, count, type, to, tag, comm);
  free(host);
  return error;
}

__attribute__((visibility("default"))) int MPI_Recv(void* buffer, int count, MPI_Datatype type, int from, int tag,
                                                    MPI_Comm comm, MPI_Status* status) {
  if (!on_device(buffer)) return PMPI_Recv(buffer, count, type, from, tag, comm, status);
  ++aware_tool_given;
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  void* host = malloc(bytes_of(count, type) + 1);
  const int error = PMPI_Recv(host, count, type, from, tag, comm, status);
  int arrived = 0;
  PMPI_Get_elements(status, MPI_BYTE, &arrived);
  copy(buffer, host, (size_t)arrived, 1);
  free(host);
  return error;
}
