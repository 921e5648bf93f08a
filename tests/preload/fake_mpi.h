/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* An MPI library of a few functions for cases that real libraries do not have: each ABI, arguments in each register, a
 * missing function. Only the names are those of MPI; the prototypes are not. */
#ifdef __cplusplus
extern "C" {
#endif

/* 1 if all arguments arrived as fake_program.c passes them. */
int MPI_Sendrecv(long, long, long, long, long, long, long, long, long, long, long, long);
int MPI_T_event_read(long, double, long, double, long, double, long, double, long, double, long, double, double, double,
                     long, long, double, double);
int MPI_Pcontrol(const int level, ...); /* three doubles and a long follow */
int MPI_T_event_copy(int, ...);         /* the caller's number of vector registers (x86-64), else 3 */
double MPI_Wtime(void);                 /* 12.25 */
long MPI_Aint_add(long, long);          /* returns 64 bits */
int MPI_Type_commit(void*);             /* 1; a test backend returns 77 */
int MPI_Comm_rank(int);                 /* the argument; calls MPI_Comm_size by its global name, as libraries do */
int MPI_Comm_size(int);                 /* the argument */

#ifdef __cplusplus
}
#endif
