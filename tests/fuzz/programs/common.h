// SPDX-License-Identifier: Apache-2.0
#pragma once
/* Code that the executor and the emitted C programs share: buffer contents, digests, and callbacks of MPI. Plain C,
   because the emitter copies this file into every program. */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
#define FUZZ_LOCAL [[maybe_unused]] static thread_local
#define FUZZ_FUNCTION [[maybe_unused]] static
#else
#define FUZZ_LOCAL __attribute__((unused)) static __thread
#define FUZZ_FUNCTION __attribute__((unused)) static
#endif

FUZZ_FUNCTION uint64_t fuzz_mix(uint64_t z) {
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

/* Takes about a microsecond for each 300 rounds. */
FUZZ_FUNCTION void fuzz_compute(int rounds) {
  uint64_t x = (uint64_t)rounds;
  for (int i = 0; i < rounds; ++i) x = fuzz_mix(x);
  __asm__ volatile("" : : "r"(x)); /* the result is used */
}

/* A number whose comparison or sum is delicate: NaN, both zeros, infinities, or one of a few numbers that often tie. */
FUZZ_FUNCTION double fuzz_odd(uint64_t word) {
  switch (word % 11) {
    case 0:
    case 1: return (word & 64) ? NAN : -NAN;
    case 2:
    case 3: return 0.0;
    case 4:
    case 5: return -0.0;
    case 6: return (word & 64) ? INFINITY : -INFINITY;
    default: return (double)(int)(word >> 20 & 7) - 3;
  }
}

/* The eight bytes of fuzz_fill for the kinds 5 to 10. `second`: of a pair of sixteen bytes. */
FUZZ_FUNCTION uint64_t fuzz_number(uint64_t word, int kind, int second) {
  const double odd = fuzz_odd(word), spread = (double)(int64_t)word / (double)(1 << word % 30);
  const float odds[2] = {(float)odd, (float)fuzz_odd(word >> 8)}, spreads[2] = {(float)spread, (float)(spread / 7)};
  const int ints[2] = {(int)(word % 1000), (int)((word >> 20) % 1000)};
  uint64_t result = word;
  if (kind == 5 || (kind == 7 && !second)) memcpy(&result, &odd, 8);
  if (kind == 6) memcpy(&result, odds, 8);
  if (kind == 7 && second) memcpy(&result, ints, 8);
  if (kind == 8) memcpy(&result, &odds[0], 4), memcpy((char*)&result + 4, &ints[1], 4);
  if (kind == 9) memcpy(&result, &spread, 8);
  if (kind == 10) memcpy(&result, spreads, 8);
  return result;
}

/* Fills a buffer before it is used. kind 0: any bits; 1: doubles, 2: floats, both small multiples of one half; 3: pairs
   of a double and an int; 4: ints below 1000; 5: doubles, 6: floats, 7: pairs of a double and an int, 8: pairs of a
   float and an int, with numbers of fuzz_odd; 9: doubles, 10: floats whose sum depends on the order. */
FUZZ_FUNCTION void fuzz_fill(void* buffer, int64_t length, uint64_t seed, int kind) {
  char* to = (char*)buffer;
  for (int64_t at = 0; at < length; at += 8) {
    uint64_t word = fuzz_mix(seed + (uint64_t)at / 8);
    const double number = (double)(int)(word % 2000) * 0.5 - 300;
    const float small[2] = {(float)(int)(word % 200) - 50, (float)(int)((word >> 20) % 200) - 50};
    const int ints[2] = {(int)(word % 1000), (int)((word >> 20) % 1000)};
    if (kind == 1 || (kind == 3 && at / 8 % 2 == 0)) memcpy(&word, &number, 8);
    if (kind == 2) memcpy(&word, small, 8);
    if (kind == 4 || (kind == 3 && at / 8 % 2 == 1)) memcpy(&word, ints, 8);
    if (kind >= 5) word = fuzz_number(word, kind, at / 8 % 2 == 1);
    memcpy(to + at, &word, (size_t)(length - at < 8 ? length - at : 8));
  }
}

FUZZ_FUNCTION uint64_t fuzz_digest(const void* buffer, int64_t length) {
  const char* from = (const char*)buffer;
  uint64_t digest = (uint64_t)length;
  for (int64_t at = 0; at < length; at += 8) {
    uint64_t word = 0;
    memcpy(&word, from + at, (size_t)(length - at < 8 ? length - at : 8));
    digest = (digest ^ word) * 0x9fb21c651e98df25ull;
    digest ^= digest >> 29;
  }
  return digest;
}

/* The arguments of callbacks since the log was last emptied. */
FUZZ_LOCAL char fuzz_log[2000];
FUZZ_LOCAL MPI_Comm fuzz_expected_comm;
FUZZ_LOCAL int fuzz_refuse_delete;

FUZZ_FUNCTION void fuzz_note(const char* what, int a, int b) {
  const size_t used = strlen(fuzz_log);
  snprintf(fuzz_log + used, sizeof fuzz_log - used, "%s(%d,%d)", what, a, b);
}
/* The error class that the delete callback returns. MPICH's MPI_Type_free does not return it, and no other call here
   has this class. It appears later in place of other errors (README.md, "What the generator avoids"). It is printed as
   fuzz_stale, which compare.py accepts for any class. */
enum { fuzz_refused = MPI_ERR_SPAWN, fuzz_stale = -999 };
FUZZ_FUNCTION int fuzz_class(int code) {
  int number = 0;
  if (code != MPI_SUCCESS) PMPI_Error_class(code, &number);
  return number == fuzz_refused ? fuzz_stale : number;
}

FUZZ_FUNCTION void fuzz_comm_handler(MPI_Comm* comm, int* code, ...) {
  fuzz_note("handler", fuzz_class(*code), *comm == fuzz_expected_comm);
}
FUZZ_FUNCTION void fuzz_other_handler(MPI_Comm* comm, int* code, ...) {
  fuzz_note("other", fuzz_class(*code), *comm == fuzz_expected_comm);
}
#ifdef __cplusplus
FUZZ_FUNCTION void fuzz_throwing_handler(MPI_Comm*, int* code, ...) { throw fuzz_class(*code); }
#endif

FUZZ_FUNCTION int fuzz_type_copy(MPI_Datatype type, int keyval, void* extra, void* in, void* out, int* flag) {
  fuzz_note("copy", (int)(intptr_t)extra, (int)(intptr_t)in);
  *(void**)out = (char*)in + 1;
  *flag = (intptr_t)in % 2 == 0;
  return MPI_SUCCESS;
}
FUZZ_FUNCTION int fuzz_type_delete(MPI_Datatype type, int keyval, void* value, void* extra) {
  fuzz_note("delete", (int)(intptr_t)extra, (int)(intptr_t)value);
  if (!fuzz_refuse_delete) return MPI_SUCCESS;
  fuzz_refuse_delete = 0;
  return fuzz_refused;
}
FUZZ_FUNCTION int fuzz_comm_copy(MPI_Comm comm, int keyval, void* extra, void* in, void* out, int* flag) {
  fuzz_note("comm_copy", (int)(intptr_t)extra, (int)(intptr_t)in);
  *(void**)out = (char*)in + 1;
  *flag = 1;
  return MPI_SUCCESS;
}
FUZZ_FUNCTION int fuzz_comm_delete(MPI_Comm comm, int keyval, void* value, void* extra) {
  fuzz_note("comm_delete", (int)(intptr_t)extra, (int)(intptr_t)value);
  return MPI_SUCCESS;
}

/* Commutative, on ints. */
FUZZ_FUNCTION void fuzz_op_xor_sum(void* in, void* inout, int* n, MPI_Datatype* type) {
  const unsigned* x = (const unsigned*)in;
  unsigned* y = (unsigned*)inout;
  for (int i = 0; i < *n; ++i) y[i] = y[i] + x[i];
}
/* Associative, not commutative: pairs of unsigned as maps t -> a t + b. */
FUZZ_FUNCTION void fuzz_op_compose(void* in, void* inout, int* n, MPI_Datatype* type) {
  const unsigned* x = (const unsigned*)in;
  unsigned* y = (unsigned*)inout;
  for (int i = 0; i < *n; ++i, x += 2, y += 2) {
    const unsigned a = x[0] * y[0], b = x[1] * y[0] + y[1];
    y[0] = a;
    y[1] = b;
  }
}
