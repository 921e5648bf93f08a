/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_mpi.h"

#include <stdarg.h>

#define EXPORT __attribute__((visibility("default")))

#define TWIN(type, name, parameters) \
  EXPORT type P##name parameters;    \
  EXPORT type name parameters __attribute__((weak, alias("P" #name)));

TWIN(int, MPI_Init, (int* argc, char*** argv))
int PMPI_Init(int* argc, char*** argv) { return argc == 0 && argv == 0 ? 0 : 1; }

TWIN(int, MPI_Sendrecv,
     (long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l))
int PMPI_Sendrecv(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k, long l) {
  return a == 1 && b == 2 && c == 3 && d == 4 && e == 5 && f == 6 && g == 7 && h == 8 && i == 9 && j == 10 && k == 11 &&
         l == -12;
}

#define EVENT                                                                                                  \
  (long a, double p, long b, double q, long c, double r, long d, double s, long e, double t, long f, double u, \
   double v, double w, long g, long h, double x, double y)
TWIN(int, MPI_T_event_read, EVENT)
int PMPI_T_event_read EVENT {
  return a == 1 && b == 2 && c == 3 && d == 4 && e == 5 && f == 6 && g == 7 && h == 8 && p == .5 && q == 1.5 &&
         r == 2.5 && s == 3.5 && t == 4.5 && u == 5.5 && v == 6.5 && w == 7.5 && x == 8.5 && y == 9.5;
}

TWIN(int, MPI_Pcontrol, (const int level, ...))
int PMPI_Pcontrol(const int level, ...) {
  va_list rest;
  va_start(rest, level);
  const double first = va_arg(rest, double);
  const double second = va_arg(rest, double);
  const long third = va_arg(rest, long);
  const double fourth = va_arg(rest, double);
  va_end(rest);
  return level == 3 && first == 1.25 && second == 2.25 && third == 1L << 40 && fourth == -3.25;
}

/* In assembly, because C would not detect a wrong count: the registers that va_start does not save may be on the stack
 * by chance. */
#ifdef __x86_64__
__asm__(
    ".globl PMPI_T_event_copy, MPI_T_event_copy\n"
    ".type PMPI_T_event_copy, @function\n.type MPI_T_event_copy, @function\n"
    "PMPI_T_event_copy:\nMPI_T_event_copy:\n  movzbl %al, %eax\n  ret\n");
#else
TWIN(int, MPI_T_event_copy, (int first, ...))
int PMPI_T_event_copy(int first, ...) { return first == 3 ? 3 : 0; }
#endif

TWIN(double, MPI_Wtime, (void))
double PMPI_Wtime(void) { return 12.25; }

TWIN(long, MPI_Aint_add, (long base, long displacement))
long PMPI_Aint_add(long base, long displacement) { return base + displacement; }

TWIN(int, MPI_Type_commit, (void* type))
int PMPI_Type_commit(void* type) { return type != 0; }

TWIN(int, MPI_Nothing, (void))
int PMPI_Nothing(void) { return 0; }

TWIN(int, MPI_Comm_size, (int comm))
int PMPI_Comm_size(int comm) { return comm; }

TWIN(int, MPI_Comm_rank, (int comm))
int PMPI_Comm_rank(int comm) { return MPI_Comm_size(comm); }

/* Symbols that distinguish the ABIs. */
#if defined(FAKE_MPICH)
EXPORT int MPIR_Dup_fn(void);
int MPIR_Dup_fn(void) { return 0; }
#elif defined(FAKE_OPENMPI)
EXPORT int ompi_mpi_comm_self = 1;
#elif defined(FAKE_ABI)
TWIN(int, MPI_Abi_get_version, (int* major, int* minor))
int PMPI_Abi_get_version(int* major, int* minor) {
  *major = 1;
  *minor = 0;
  return 0;
}
#endif
