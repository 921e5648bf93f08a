/* SPDX-License-Identifier: Apache-2.0 */
/* Makes an MPI library GPU-aware: preloaded into the measuring program, it stages device memory of the stand-in driver.
   Only the calls that this program makes with such memory, and one receive at a time. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>

typedef unsigned long long Address;

static void* driver(const char* entry) {
  void* library = dlopen(getenv("BESTRIDE_CUDA_DRIVER"), RTLD_LAZY | RTLD_NOLOAD);
  return library ? dlsym(library, entry) : NULL;
}

static int on_device(const void* buffer) {
  int (*attribute)(void*, int, Address) = driver("cuPointerGetAttribute");
  unsigned type = 0;
  return attribute && attribute(&type, 2, (Address)buffer) == 0 && type == 2;
}

int MPIX_Query_cuda_support(void) { return 1; }

int MPI_Send(const void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
  if (!on_device(buffer)) return PMPI_Send(buffer, count, type, peer, tag, comm);
  int (*copy)(void*, Address, size_t) = driver("cuMemcpyDtoH_v2");
  void* host = malloc((size_t)count);
  copy(host, (Address)buffer, (size_t)count);
  int code = PMPI_Send(host, count, type, peer, tag, comm);
  free(host);
  return code;
}

static void deliver(void* buffer, void* host, int count) {
  int (*copy)(Address, const void*, size_t) = driver("cuMemcpyHtoD_v2");
  copy((Address)buffer, host, (size_t)count);
  free(host);
}

int MPI_Recv(void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Status* status) {
  if (!on_device(buffer)) return PMPI_Recv(buffer, count, type, peer, tag, comm, status);
  void* host = malloc((size_t)count);
  int code = PMPI_Recv(host, count, type, peer, tag, comm, status);
  deliver(buffer, host, count);
  return code;
}

static struct {
  MPI_Request request;
  void *buffer, *host;
  int count;
} posted;

int MPI_Irecv(void* buffer, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request) {
  if (!on_device(buffer)) return PMPI_Irecv(buffer, count, type, peer, tag, comm, request);
  posted.host = malloc((size_t)count);
  posted.buffer = buffer;
  posted.count = count;
  int code = PMPI_Irecv(posted.host, count, type, peer, tag, comm, request);
  posted.request = *request;
  return code;
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  int mine = posted.host && *request == posted.request;
  int code = PMPI_Wait(request, status);
  if (mine) deliver(posted.buffer, posted.host, posted.count), posted.host = NULL;
  return code;
}
