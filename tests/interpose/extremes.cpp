// SPDX-License-Identifier: Apache-2.0
// Minimum, maximum and sum of NaN, -0, infinities, the largest and denormal numbers: the bits are those of the MPI
// library's own function, which takes the same numbers before. They depend on the library's algorithm, and on the rank.
#include <dlfcn.h>
#include <mpi.h>

#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include "tests/support/harness.hpp"

using namespace bestride::test;

namespace {

template <class Function>
Function* of_library(const char* name) {
  static void* const library = dlopen("libmpich.so.12", RTLD_NOLOAD | RTLD_NOW);
  return reinterpret_cast<Function*>(library ? dlsym(library, name) : nullptr);
}
#define OF_LIBRARY(name) of_library<decltype(PMPI_##name)>("PMPI_" #name)

std::uint64_t random_state = 1;
std::uint64_t random_bits() {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  return random_state >> 33;
}

/// `special`: how many of 1024 numbers are not ordinary.
template <class Number>
Number any_number(unsigned special) {
  using Limits = std::numeric_limits<Number>;
  if (random_bits() % 1024 >= special) return static_cast<Number>(random_bits() % 7) - 3;
  const auto nan = [](std::uint64_t sign_and_quiet) {
    if constexpr (sizeof(Number) == 4)
      return std::bit_cast<Number>(static_cast<std::uint32_t>(
          0x7f800001u | (sign_and_quiet & 2) << 30 | (sign_and_quiet & 1) << 22 | (random_bits() & 0xff) << 4));
    else if constexpr (sizeof(Number) == 8)
      return std::bit_cast<Number>(0x7ff0000000000001u | (sign_and_quiet & 2) << 62 | (sign_and_quiet & 1) << 51 |
                                   (random_bits() & 0xff) << 4);
    else
      return Limits::quiet_NaN();
  };
  switch (random_bits() % 12) {
    case 0:
    case 1: return Number(-0.0);
    case 2: return 0;
    case 3: return Limits::infinity();
    case 4: return -Limits::infinity();
    case 5: return Limits::denorm_min();
    case 6: return -Limits::denorm_min();
    case 7: return random_bits() % 2 ? Limits::min() / 4 : Limits::max();
    default: return nan(random_bits());
  }
}

template <class Number>
struct Pair {
  Number value;
  int index;
};

/// Fills `count` elements with zeroed gaps.
template <class Number>
void fill(Number* to, int count, unsigned special) {
  std::memset(static_cast<void*>(to), 0, sizeof(Number) * static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const Number number = any_number<Number>(special);
    std::memcpy(to + i, &number, sizeof(Number) == 16 ? 10 : sizeof(Number));
  }
}
template <class Number>
void fill(Pair<Number>* to, int count, unsigned special) {
  std::memset(static_cast<void*>(to), 0, sizeof(Pair<Number>) * static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    fill(&to[i].value, 1, special);
    to[i].index = static_cast<int>(random_bits() % 5);
  }
}

template <class Number>
void fill(std::complex<Number>* to, int count, unsigned special) {
  fill(reinterpret_cast<Number*>(to), 2 * count, special);
}

/// One form of a reduction: calls it through Bestride, or the library's own.
using Form = std::function<void(bool own, const void* in, void* out, int count, MPI_Datatype, MPI_Op, MPI_Comm)>;

void allreduce(bool own, const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  (own ? OF_LIBRARY(Allreduce) : &MPI_Allreduce)(in, out, count, type, op, comm);
}
void iallreduce(bool own, const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  MPI_Request request;
  (own ? OF_LIBRARY(Iallreduce) : &MPI_Iallreduce)(in, out, count, type, op, comm, &request);
  (own ? OF_LIBRARY(Wait) : &MPI_Wait)(&request, MPI_STATUS_IGNORE);
}
void reduce(bool own, const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  (own ? OF_LIBRARY(Reduce) : &MPI_Reduce)(in, out, count, type, op, 1, comm);
}
void reduce_scatter_block(bool own, const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  int ranks;
  MPI_Comm_size(comm, &ranks);
  (own ? OF_LIBRARY(Reduce_scatter_block) : &MPI_Reduce_scatter_block)(in, out, count / ranks, type, op, comm);
}
void reduce_scatter(bool own, const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  int ranks;
  MPI_Comm_size(comm, &ranks);
  std::vector<int> counts(static_cast<std::size_t>(ranks), count / ranks);
  (own ? OF_LIBRARY(Reduce_scatter) : &MPI_Reduce_scatter)(in, out, counts.data(), type, op, comm);
}
#if MPI_VERSION >= 4
void allreduce_init(bool own, const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  MPI_Request request;
  (own ? OF_LIBRARY(Allreduce_init) : &MPI_Allreduce_init)(in, out, count, type, op, comm, MPI_INFO_NULL, &request);
  (own ? OF_LIBRARY(Start) : &MPI_Start)(&request);
  (own ? OF_LIBRARY(Wait) : &MPI_Wait)(&request, MPI_STATUS_IGNORE);
  (own ? OF_LIBRARY(Request_free) : &MPI_Request_free)(&request);
}
#endif

/// `ordinary`: calls with ordinary numbers only, at first. Then calls with few others follow, then with many.
template <class Element>
void check(const Form& form, MPI_Datatype type, std::initializer_list<MPI_Op> ops, bool in_place = false,
           int ordinary = 5) {
  if (!OF_LIBRARY(Allreduce)) return;
  random_state = static_cast<std::uint64_t>(world_rank()) + 1;
  for (const MPI_Op op : ops)
    for (const int count : {1, 7, 700, 9000}) {
      MPI_Comm comm;
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      const auto elements = static_cast<std::size_t>(count);
      const std::size_t bytes = elements * sizeof(Element);
      std::vector<Element> in(elements), expected(elements), got(elements);
      for (int round = 0; round < ordinary + 7; ++round) {
        fill(in.data(), count, round < ordinary ? 0 : round < ordinary + 4 ? 1 : 300);
        std::memset(static_cast<void*>(expected.data()), 0, bytes);
        std::memset(static_cast<void*>(got.data()), 0, bytes);
        if (in_place) expected = got = in;
        form(true, in_place ? MPI_IN_PLACE : in.data(), expected.data(), count, type, op, comm);
        form(false, in_place ? MPI_IN_PLACE : in.data(), got.data(), count, type, op, comm);
        CHECK(std::memcmp(expected.data(), got.data(), bytes) == 0);
      }
      MPI_Comm_free(&comm);
    }
}
template <class Number>
void check_pairs(const Form& form, MPI_Datatype type) {
  check<Pair<Number>>(form, type, {MPI_MAXLOC, MPI_MINLOC});
}
void check_all(const Form& form) {
  check<double>(form, MPI_DOUBLE, {MPI_MAX, MPI_MIN});
  check<float>(form, MPI_FLOAT, {MPI_MAX, MPI_MIN});
  check<long double>(form, MPI_LONG_DOUBLE, {MPI_MAX, MPI_MIN});
  check_pairs<double>(form, MPI_DOUBLE_INT);
  check_pairs<float>(form, MPI_FLOAT_INT);
}

/// After 16 calls sums of `ordinary` numbers no longer go to the library, if it adds in an order that is known.
void check_sums(const Form& form, bool in_place = false) {
  check<double>(form, MPI_DOUBLE, {MPI_SUM}, in_place, 20);
  check<float>(form, MPI_FLOAT, {MPI_SUM}, in_place, 20);
  check<std::complex<double>>(form, MPI_C_DOUBLE_COMPLEX, {MPI_SUM}, in_place, 20);
  check<std::complex<float>>(form, MPI_C_FLOAT_COMPLEX, {MPI_SUM}, in_place, 20);
}

MPI_CASE(allreduce_of_extremes) { check_all(&allreduce); }
MPI_CASE(allreduce_of_extremes_in_place) {
  check<double>(&allreduce, MPI_DOUBLE, {MPI_MAX, MPI_MIN}, true);
  check<float>(&allreduce, MPI_FLOAT, {MPI_MAX, MPI_MIN}, true);
}
MPI_CASE(iallreduce_of_extremes) { check_all(&iallreduce); }
MPI_CASE(reduce_of_extremes) { check_all(&reduce); }
MPI_CASE(allreduce_of_sums) { check_sums(&allreduce); }
MPI_CASE(allreduce_of_sums_in_place) { check_sums(&allreduce, true); }
MPI_CASE(reduce_of_sums) { check_sums(&reduce); }
/// Every few calls one rank has a NaN, so that all calls between them are carried out again.
MPI_CASE(rare_nans) {
  if (!OF_LIBRARY(Allreduce)) return;
  for (const bool to_all : {true, false})
    for (const int count : {100, 250, 3000}) {
      const auto numbers = static_cast<std::size_t>(count);
      for (int round = 0; round < 60; ++round) {
        std::vector<double> in(numbers, world_rank()), expected(numbers), got(numbers);
        if (round % 7 == 6 && (round / 7 + 1) % world_size() == world_rank())
          in[numbers / 2] = round % 2 ? std::numeric_limits<double>::quiet_NaN() : -INFINITY;
        const auto call = [&](bool own, double* out) {
          (to_all ? &allreduce : &reduce)(own, in.data(), out, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        };
        call(true, expected.data());
        call(false, got.data());
        CHECK(std::memcmp(expected.data(), got.data(), numbers * sizeof(double)) == 0);
      }
    }
}
MPI_CASE(reduce_scatter_of_extremes) {
  check_all(&reduce_scatter);
  check_all(&reduce_scatter_block);
}
#if MPI_VERSION >= 4
MPI_CASE(persistent_allreduce_of_extremes) { check_all(&allreduce_init); }
#endif

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv); }
