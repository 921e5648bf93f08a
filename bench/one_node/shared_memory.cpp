// SPDX-License-Identifier: Apache-2.0
#include "shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

SharedMemory::SharedMemory(MPI_Comm comm, std::size_t bytes) : bytes_(bytes) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  char name[] = "/dev/shm/one_node.XXXXXX";
  int file = rank == 0 ? mkstemp(name) : -1;
  if (file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) != 0) MPI_Abort(comm, 1);
  MPI_Bcast(name, sizeof name, MPI_CHAR, 0, comm);
  if (rank != 0) file = open(name, O_RDWR | O_CLOEXEC);
  data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (data_ == MAP_FAILED) {
    std::perror(name);
    MPI_Abort(comm, 1);
  }
  close(file);
  MPI_Barrier(comm);
  if (rank == 0) unlink(name);
}

SharedMemory::~SharedMemory() { munmap(data_, bytes_); }
