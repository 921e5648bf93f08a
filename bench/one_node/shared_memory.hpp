// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory that all ranks of a communicator on one node share. Not a window of MPI, because Bestride carries out
// collectives in another way while a program has one.
#include <mpi.h>

#include <cstddef>

class SharedMemory {
 public:
  /// `bytes` bytes, zeroed; collective. Ends the job if there is no memory.
  SharedMemory(MPI_Comm comm, std::size_t bytes);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();
  /// Aligned to a page.
  void* data() const noexcept { return data_; }

 private:
  std::size_t bytes_;
  void* data_;
};
