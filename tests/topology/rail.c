/* SPDX-License-Identifier: Apache-2.0 */
/* topology_rail: prints the variables of the transport after MPI_Init. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static const char* value(const char* name) {
  const char* text = getenv(name);
  return text ? text : "unset";
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  printf("rank %d: %s %s %s\n", rank, value("UCX_NET_DEVICES"), value("FI_TCP_IFACE"), value("FI_SOCKETS_IFACE"));
  MPI_Finalize();
  return 0;
}
