// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/number_operations.hpp"
#include "interpose/mpi/quirks.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <type_traits>

#include "interpose/objects/predefined_types.hpp"

namespace bestride::inline interpose {
namespace {

template <class T, class Combine>
void apply(const std::byte* __restrict in, std::byte* __restrict inout, std::int64_t count) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t i = 0; i < count; ++i) {
    T a, b;
    __builtin_memcpy(&a, in + i * size, sizeof a);
    __builtin_memcpy(&b, inout + i * size, sizeof b);
    b = static_cast<T>(Combine{}(a, b));
    __builtin_memcpy(inout + i * size, &b, sizeof b);
  }
}

/// The function that applies a lambda without captures.
template <class T, class Combine>
NumberOperation each(Combine) noexcept {
  return &apply<T, Combine>;
}

/// Sums and products wrap around, so they are computed without a sign, in at least 32 bits.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) < 8, std::uint32_t, std::uint64_t>;

template <class T>
NumberOperation bitwise(MPI_Op op) noexcept {
  if (op == MPI_BAND) return each<T>([](T a, T b) { return a & b; });
  if (op == MPI_BOR) return each<T>([](T a, T b) { return a | b; });
  if (op == MPI_BXOR) return each<T>([](T a, T b) { return a ^ b; });
  return nullptr;
}

template <class T>
NumberOperation arithmetic(MPI_Op op) noexcept {
  if (op == MPI_SUM) return each<T>([](T a, T b) { return Wrapping<T>(a) + Wrapping<T>(b); });
  if (op == MPI_PROD) return each<T>([](T a, T b) { return Wrapping<T>(a) * Wrapping<T>(b); });
  if (op == MPI_MAX) return each<T>([](T a, T b) { return std::max(a, b); });
  if (op == MPI_MIN) return each<T>([](T a, T b) { return std::min(a, b); });
  if (op == MPI_LAND) return each<T>([](T a, T b) { return a && b; });
  if (op == MPI_LOR) return each<T>([](T a, T b) { return a || b; });
  if (op == MPI_LXOR) return each<T>([](T a, T b) { return !a != !b; });
  return bitwise<T>(op);
}

bool is_unsigned(MPI_Datatype type) noexcept {
  const std::initializer_list<MPI_Datatype> all = {MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT,     MPI_UNSIGNED,
                                                   MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG, MPI_UINT8_T,
                                                   MPI_UINT16_T,      MPI_UINT32_T,           MPI_UINT64_T};
  return std::find(all.begin(), all.end(), type) != all.end();
}

/// `parts`: 2 if complex.
template <class Number, int parts>
void add(const std::byte* in, std::byte* inout, std::int64_t count) {
  apply<Number, decltype([](Number a, Number b) { return a + b; })>(in, inout, parts * count);
}

/// The unsigned integer of a number's size.
template <class Number>
using Bits = std::conditional_t<sizeof(Number) == 4, std::uint32_t, std::uint64_t>;

/// All bits set, or none.
template <class Number>
Bits<Number> mask(bool all) noexcept {
  return -static_cast<Bits<Number>>(all);
}

/// `beats(a, b)`: a is the more extreme one. If neither is, they have the same bits, or are zeros, or one is a NaN;
/// then the result has the bits of both: a NaN stays one, and -0 wins.
template <class Number, class Beats>
void select(const std::byte* __restrict in, std::byte* __restrict inout, std::int64_t count) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(Number));
  for (std::int64_t i = 0; i < count; ++i) {
    Number a, b;
    Bits<Number> of_a, of_b;
    __builtin_memcpy(&a, in + i * size, sizeof a);
    __builtin_memcpy(&b, inout + i * size, sizeof b);
    __builtin_memcpy(&of_a, &a, sizeof a);
    __builtin_memcpy(&of_b, &b, sizeof b);
    of_b = (of_a & ~mask<Number>(Beats{}(b, a))) | (of_b & ~mask<Number>(Beats{}(a, b)));
    __builtin_memcpy(inout + i * size, &of_b, sizeof of_b);
  }
}

template <class Number>
NumberOperation extreme(MPI_Op op) noexcept {
  if (op == MPI_MAX) return &select<Number, decltype([](Number a, Number b) { return a > b; })>;
  if (op == MPI_MIN) return &select<Number, decltype([](Number a, Number b) { return a < b; })>;
  return nullptr;
}

template <class Number>
bool any_depends_on_order(const std::byte* results, std::int64_t count) noexcept {
  Bits<Number> found = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    Number number;
    Bits<Number> bits;
    __builtin_memcpy(&number, results + i * static_cast<std::int64_t>(sizeof number), sizeof number);
    __builtin_memcpy(&bits, &number, sizeof bits);
    // +0 has no bits.
    found |= bits & ~mask<Number>(std::fabs(number) >= std::numeric_limits<Number>::min());
  }
  return found != 0;
}

/// True if a number's magnitude is `least` or more, or it is a NaN. Without floating-point operations, so that a NaN
/// raises no exception, and with operations that exist as vectors on every x86-64.
template <class Number>
bool any_reaches(const std::byte* numbers, std::int64_t count, Number least) noexcept {
  constexpr Bits<Number> sign = Bits<Number>{1} << (8 * sizeof(Number) - 1);
  const Bits<Number> missing = sign - std::bit_cast<Bits<Number>>(least);
  constexpr std::int64_t at_a_time = 1024;
  for (std::int64_t first = 0; first < count; first += at_a_time) {
    Bits<Number> found = 0;
    for (std::int64_t i = first; i < std::min(count, first + at_a_time); ++i) {
      Bits<Number> bits;
      __builtin_memcpy(&bits, numbers + i * static_cast<std::int64_t>(sizeof bits), sizeof bits);
      found |= (bits & ~sign) + missing;
    }
    if (found & sign) return true;
  }
  return false;
}
/// The least bits of a NaN without its sign.
template <class Number>
Number least_nan() noexcept {
  return std::bit_cast<Number>(std::bit_cast<Bits<Number>>(std::numeric_limits<Number>::infinity()) + 1);
}

bool is_real(MPI_Datatype type) noexcept {
  const Predefined* const known = predefined(type);
  return known && known->kind == NumberKind::floating;
}

}  // namespace

NumberOperation integer_operation(MPI_Op op, MPI_Datatype type) noexcept {
  const Predefined* const known = predefined(type);
  if (!known) return nullptr;
  if (known->kind == NumberKind::bytes) return bitwise<std::uint8_t>(op);
  if (known->kind != NumberKind::integer) return nullptr;
  // Whether MPI_CHAR has a sign depends on the library's compiler.
  if (quirks::unsigned_are_compared_as_signed && (op == MPI_MAX || op == MPI_MIN) &&
      (is_unsigned(type) || type == MPI_CHAR))
    return nullptr;
  switch (known->size) {
    case 1: return arithmetic<std::int8_t>(op);
    case 2: return arithmetic<std::int16_t>(op);
    case 4: return arithmetic<std::int32_t>(op);
    case 8: return arithmetic<std::int64_t>(op);
  }
  return nullptr;
}

std::int64_t floating_bytes(MPI_Datatype type) noexcept {
  const Predefined* const known = predefined(type);
  if (!known || (known->kind != NumberKind::floating && known->kind != NumberKind::complex)) return 0;
  const std::int64_t bytes = known->kind == NumberKind::complex ? known->size / 2 : known->size;
  return bytes == 4 || bytes == 8 ? bytes : 0;
}

NumberOperation floating_extreme(MPI_Op op, MPI_Datatype type) noexcept {
  if (!is_real(type)) return nullptr;
  switch (floating_bytes(type)) {
    case 4: return extreme<float>(op);
    case 8: return extreme<double>(op);
    default: return nullptr;
  }
}

bool depends_on_order(const std::byte* results, std::int64_t count, MPI_Datatype type) noexcept {
  return floating_bytes(type) == 4 ? any_depends_on_order<float>(results, count)
                                   : any_depends_on_order<double>(results, count);
}

NumberOperation floating_sum(MPI_Op op, MPI_Datatype type) noexcept {
  const std::int64_t bytes = floating_bytes(type);
  if (op != MPI_SUM || bytes == 0) return nullptr;
  const bool complex = predefined(type)->size > bytes;
  if (bytes == 4) return complex ? &add<float, 2> : &add<float, 1>;
  return complex ? &add<double, 2> : &add<double, 1>;
}

bool any_nan(const std::byte* results, std::int64_t count, MPI_Datatype type) noexcept {
  const std::int64_t bytes = floating_bytes(type), numbers = count * (predefined(type)->size / bytes);
  return bytes == 4 ? any_reaches(results, numbers, least_nan<float>())
                    : any_reaches(results, numbers, least_nan<double>());
}

bool sum_may_be_nan(const std::byte* elements, std::int64_t count, MPI_Datatype type, int ranks) noexcept {
  const std::int64_t bytes = floating_bytes(type), numbers = count * (predefined(type)->size / bytes);
  // Twice as many, because each addition may round up.
  const auto below = [ranks]<class Number>(Number largest) { return largest / static_cast<Number>(2 * ranks); };
  return bytes == 4 ? any_reaches(elements, numbers, below(std::numeric_limits<float>::max()))
                    : any_reaches(elements, numbers, below(std::numeric_limits<double>::max()));
}

}  // namespace bestride::inline interpose
