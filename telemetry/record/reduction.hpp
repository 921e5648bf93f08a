// SPDX-License-Identifier: Apache-2.0
#pragma once
// The operation and the basic type of a reduction as a number that is the same on all ranks.
#include <cstdint>

namespace bestride::inline telemetry {

enum class ReductionOp : std::uint8_t {
  unknown,
  max,
  min,
  sum,
  prod,
  land,
  band,
  lor,
  bor,
  lxor,
  bxor,
  minloc,
  maxloc,
  replace,
  no_op,
  user,  ///< created by MPI_Op_create
};
enum class BasicType : std::uint8_t { unknown, integer, floating, complex, logical, bytes };

constexpr std::uint16_t reduction_code(ReductionOp operation, BasicType type) noexcept {
  return static_cast<std::uint16_t>(static_cast<unsigned>(operation) | static_cast<unsigned>(type) << 8);
}
constexpr ReductionOp reduction_op_of(std::uint16_t code) noexcept {
  return (code & 0xff) <= static_cast<unsigned>(ReductionOp::user) ? static_cast<ReductionOp>(code & 0xff)
                                                                   : ReductionOp::unknown;
}
constexpr BasicType type_of(std::uint16_t code) noexcept {
  return code >> 8 <= static_cast<int>(BasicType::bytes) ? static_cast<BasicType>(code >> 8) : BasicType::unknown;
}
/// False if both are known and differ.
constexpr bool may_agree(std::uint16_t a, std::uint16_t b) noexcept {
  const auto agree = [](auto x, auto y) { return x == y || x == decltype(x)::unknown || y == decltype(x)::unknown; };
  return agree(reduction_op_of(a), reduction_op_of(b)) && agree(type_of(a), type_of(b));
}
/// Adds a reduction to the hash of those that a rank has begun on a communicator, 0 at first: equal on all members of
/// an intracommunicator after the same number of collective calls, unless one of them has made a different reduction.
/// Arguments that may differ between members are left out, so sizes and types are added for predefined operations only.
/// `bytes`: the number of elements times the size of their type, 0 if that is not known; `root`: or no_rank.
constexpr std::uint32_t add_to_hash(std::uint32_t hash, std::uint16_t code, std::int32_t root,
                                    std::uint64_t bytes) noexcept {
  const ReductionOp operation = reduction_op_of(code);
  if (operation == ReductionOp::unknown) return hash;
  const BasicType type = type_of(code);
  const bool is_number = type == BasicType::integer || type == BasicType::floating || type == BasicType::complex;
  std::uint64_t word = static_cast<unsigned>(operation) | std::uint64_t{static_cast<std::uint32_t>(root)} << 32;
  if (operation != ReductionOp::user) word ^= (is_number ? static_cast<unsigned>(type) << 8 : 0) | bytes << 16;
  const std::uint64_t mixed = (word + hash) * 0x9e3779b97f4a7c15;
  return static_cast<std::uint32_t>(mixed >> 32) ^ static_cast<std::uint32_t>(mixed);
}
/// "MPI_SUM", "a user's operation"; "" if it is not known.
constexpr const char* name(ReductionOp operation) noexcept {
  constexpr const char* names[] = {
      "",        "MPI_MAX",  "MPI_MIN",  "MPI_SUM",    "MPI_PROD",   "MPI_LAND",    "MPI_BAND",  "MPI_LOR",
      "MPI_BOR", "MPI_LXOR", "MPI_BXOR", "MPI_MINLOC", "MPI_MAXLOC", "MPI_REPLACE", "MPI_NO_OP", "a user's operation"};
  return names[static_cast<unsigned>(operation)];
}
/// "integers", ...; "" if it is not known.
constexpr const char* name(BasicType type) noexcept {
  constexpr const char* names[] = {"", "integers", "floating-point numbers", "complex numbers", "logicals", "bytes"};
  return names[static_cast<unsigned>(type)];
}

}  // namespace bestride::inline telemetry
