// SPDX-License-Identifier: Apache-2.0
#pragma once
// Datatypes of a program: drawn so that MPICH alone handles them, spelled differently by different ranks, made by
// recorded MPI calls.
#include <cstdint>
#include <memory>
#include <optional>

#include "tests/fuzz/programs/buffer.hpp"
#include "tests/support/expressions.hpp"
#include "tests/support/random.hpp"

namespace bestride::fuzz {

using test::Facts;
using test::Random;
using test::TypeExpression;

/// A type and how often it is used: what is given to a call as (count, datatype).
struct Shape {
  TypeExpression type;
  std::int64_t count = 1;
  Facts facts;
  std::shared_ptr<const test::TypeMap> map;  ///< of one element

  /// nullopt: no valid type, or more than `leaves` in one element.
  static std::optional<Shape> of(const TypeExpression& type, std::int64_t count, std::size_t leaves = 3000);
  std::int64_t bytes() const { return facts.size * count; }  ///< packed
  Runs runs(std::int64_t times) const;
  Runs runs() const { return runs(count); }
  /// The bytes from low to high that `times` elements may touch.
  std::int64_t low(std::int64_t times) const;
  std::int64_t high(std::int64_t times) const;
};

/// Can MPICH 4.0.2 be given it? No part without bytes or of a negative extent; `times` elements name no byte twice.
bool sound(const TypeExpression& type, std::int64_t times);
/// One basic type of at most 16 bytes everywhere: then other spellings of long messages are safe in MPICH 4.0.2.
bool uniform(const Shape& shape);

struct ShapeLimits {
  std::int64_t bytes = 4096;       ///< of count elements
  int types = 3;                   ///< Step::types
  bool contiguous_blocks = false;  ///< several blocks of the shape follow each other: extent at least the span
};
/// What messages of a step are made of.
Shape draw_shape(Random& random, const ShapeLimits& limits);
/// An equal signature in another form: another spelling of the same map, one element of it all, or other addresses. May
/// be the shape itself. `same_count`: the count stays.
Shape respell(Random& random, const Shape& shape, int types, bool same_count);
/// The first `leaves` basic elements of the shape as a type of its own.
std::optional<Shape> prefix(Random& random, const Shape& shape, std::int64_t leaves);

/// Bytes of a block for Step::size.
std::int64_t block_bytes(Random& random, int size);

/// A handle made by recorded calls; freed by drop(), or at the end.
struct Handle {
  MPI_Datatype h = MPI_DATATYPE_NULL;
  bool owned = false;
  int parts = 0;  ///< derived types that it keeps alive
};
/// MPICH 4.0.2 packs wrong bytes once some 512 derived types are alive: one that has many parts is then made from its
/// type map.
Handle build(Caller& caller, const TypeExpression& type, bool commit = true, bool dup_named = false);
void drop(Caller& caller, Handle& handle);

}  // namespace bestride::fuzz
