/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* An MPI library of a few functions for what no real one shows: each ABI, each register an argument may come in, a
 * function that is missing. The prototypes are the tests' own; only the names are MPI's. */
#ifdef __cplusplus
extern "C" {
#endif

/* 1 if all arguments arrived as `fake_arguments_*` in fake_program.c gives them. */
int MPI_Sendrecv(long, long, long, long, long, long, long, long, long, long, long, long);
int MPI_T_event_read(long, double, long, double, long, double, long, double, long, double, long, double, double, double,
                     long, long, double, double);
int MPI_Pcontrol(const int level, ...); /* three doubles and a long follow */
int MPI_T_event_copy(int, ...);         /* how many vector registers the caller says it uses (x86-64), else 3 */
double MPI_Wtime(void);                 /* 12.25 */
long MPI_Aint_add(long, long);          /* 64 bits come back */
int MPI_Type_commit(void*);             /* 1; a test backend answers 77 */
int MPI_Comm_rank(int);                 /* the argument; calls MPI_Comm_size by its global name, as libraries do */
int MPI_Comm_size(int);                 /* the argument */

#ifdef __cplusplus
}
#endif
