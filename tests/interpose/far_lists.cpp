// SPDX-License-Identifier: Apache-2.0
// A long index list is decoded once the MPI library has spent more time on its messages than decoding takes, long
// before its 64th use. This ucp_dt_create_generic stands before UCX's and sees, by a bit of the state of a message,
// which of Bestride's functions pack it. Each block lies in a cache line of its own, so the library takes some
// nanoseconds for each, on any machine.
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "tests/support/ucx_generic_type.hpp"

namespace {

UcxOperations given;
long by_library = 0, by_engine = 0;  ///< messages

void finish(void* state) {
  ++((reinterpret_cast<std::uintptr_t>(state) & 1) != 0 ? by_library : by_engine);
  given.finish(state);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) signed char ucp_dt_create_generic(const UcxOperations* operations,
                                                                                    void* context,
                                                                                    std::uint64_t* type) {
  const signed char status = create_in_ucx(operations, context, type);
  if (status != 0) return status;
  given = *operations;
  generic_type(*type).operations.finish = &finish;
  return status;
}

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  constexpr int blocks = 20000, uses = 60, apart = 16;
  std::vector<int> lengths(blocks), displacements(blocks);
  for (int i = 0; i < blocks; ++i) {
    lengths[static_cast<std::size_t>(i)] = 1 + i * i % 3;
    displacements[static_cast<std::size_t>(i)] = apart * i + i * i % 5;
  }
  MPI_Datatype list = MPI_DATATYPE_NULL;
  MPI_Type_indexed(blocks, lengths.data(), displacements.data(), MPI_DOUBLE, &list);
  MPI_Type_commit(&list);
  std::vector<double> data(static_cast<std::size_t>(blocks) * apart);
  int wrong = 0;
  for (int use = 0; use < uses; ++use) {
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = rank == 0 ? static_cast<double>(i) + use : -1;
    if (rank == 0)
      MPI_Send(data.data(), 1, list, 1, 0, MPI_COMM_WORLD);
    else
      MPI_Recv(data.data(), 1, list, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < blocks && rank == 1; ++i)
      for (int k = 0; k < apart; ++k) {
        const int at = apart * i + k, from = displacements[static_cast<std::size_t>(i)];
        const bool inside = at >= from && at < from + lengths[static_cast<std::size_t>(i)];
        wrong += data[static_cast<std::size_t>(at)] != (inside ? at + use : -1);
      }
  }
  MPI_Type_free(&list);
  if (wrong != 0) std::printf("rank %d: %d values are wrong\n", rank, wrong);
  const bool good = wrong == 0 && by_library >= 1 && by_library < uses && by_engine == uses - by_library;
  if (!good) std::printf("rank %d: %ld messages by the library, %ld by the engine\n", rank, by_library, by_engine);
  MPI_Finalize();
  return good ? 0 : 1;
}
