/* SPDX-License-Identifier: Apache-2.0 */
/* Has the symbols of a program with a statically linked MPI library: it defines MPI_Init and PMPI_Init. */
int PMPI_Init(int* argc, char*** argv) { return argc == 0 && argv == 0; }
int MPI_Init(int* argc, char*** argv) __attribute__((weak, alias("PMPI_Init")));

int main(int argc, char** argv) { return MPI_Init(&argc, &argv); }
