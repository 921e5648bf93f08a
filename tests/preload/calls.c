/* SPDX-License-Identifier: Apache-2.0 */
/* Makes each call of counted.h once, with this process as its peer, and checks the result. Compiled into a program and
 * into a plugin. */
#include "calls.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define REQUIRE(what)      \
  if (!(what)) {           \
    puts("wrong: " #what); \
    return 1;              \
  }

int make_calls(int* argc, char*** argv) {
  int matrix[4][4], column[4], back[4], at = 0, threads;
  char packed[256];
  MPI_Datatype type;
  MPI_Request requests[2];
  MPI_Status status, statuses[2];
  for (int i = 0; i < 16; ++i) matrix[i / 4][i % 4] = i;

  REQUIRE(MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &threads) == MPI_SUCCESS)
  const double before = MPI_Wtime();
  MPI_Type_vector(4, 1, 4, MPI_INT, &type);
  REQUIRE(MPI_Type_commit(&type) == MPI_SUCCESS)
  REQUIRE(MPI_Pack(matrix, 1, type, packed, sizeof packed, &at, MPI_COMM_SELF) == MPI_SUCCESS)
  memcpy(column, packed, sizeof column);
  REQUIRE(at == 16 && column[0] == 0 && column[1] == 4 && column[3] == 12)
  REQUIRE(MPI_Irecv(column, 4, MPI_INT, 0, 7, MPI_COMM_SELF, &requests[0]) == MPI_SUCCESS)
  REQUIRE(MPI_Isend(&matrix[0][1], 1, type, 0, 7, MPI_COMM_SELF, &requests[1]) == MPI_SUCCESS)
  REQUIRE(MPI_Waitall(2, requests, statuses) == MPI_SUCCESS)
  REQUIRE(column[0] == 1 && column[3] == 13 && statuses[0].MPI_TAG == 7)
  /* Twelve arguments, of which six are on the stack. */
  REQUIRE(MPI_Sendrecv(column, 4, MPI_INT, 0, 9, back, 4, MPI_INT, 0, 9, MPI_COMM_SELF, &status) == MPI_SUCCESS)
  REQUIRE(back[0] == 1 && back[3] == 13 && status.MPI_TAG == 9)
  REQUIRE(MPI_Type_free(&type) == MPI_SUCCESS)
  MPI_Pcontrol(1, 2.0, "ignored");
  const double after = MPI_Wtime();
  REQUIRE(after >= before && after - before < 3600 && MPI_Wtick() > 0 && MPI_Wtick() < 1)
  REQUIRE(MPI_Finalize() == MPI_SUCCESS)
  return 0;
}
