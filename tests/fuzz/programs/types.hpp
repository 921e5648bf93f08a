// SPDX-License-Identifier: Apache-2.0
#pragma once
// Datatypes of a program: random types that MPICH alone handles correctly, spelled differently on different ranks, and
// created by recorded MPI calls.
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

/// A type and a count: the (count, datatype) of a call.
struct Shape {
  TypeExpression type;
  std::int64_t count = 1;
  Facts facts;
  std::shared_ptr<const test::TypeMap> map;  ///< of one element

  /// nullopt if the type is invalid or one element has more than `leaves` leaves.
  static std::optional<Shape> of(const TypeExpression& type, std::int64_t count, std::size_t leaves = 3000);
  std::int64_t bytes() const { return facts.size * count; }  ///< packed
  Runs runs(std::int64_t times) const;
  Runs runs() const { return runs(count); }
  /// The bytes from low to high that `times` elements may touch.
  std::int64_t low(std::int64_t times) const;
  std::int64_t high(std::int64_t times) const;
};

/// Whether MPICH 4.0.2 handles the type: no part is empty or has a negative extent, and no byte occurs twice in `times`
/// elements.
bool sound(const TypeExpression& type, std::int64_t times);
/// Whether the only basic type has at most 16 bytes. MPICH 4.0.2 then handles other spellings of long messages.
bool uniform(const Shape& shape);

struct ShapeLimits {
  std::int64_t bytes = 4096;       ///< of count elements
  int types = 3;                   ///< Step::types
  bool contiguous_blocks = false;  ///< blocks of the shape follow each other, so the extent must cover the span
};
/// A random shape for the messages of a step.
Shape draw_shape(Random& random, const ShapeLimits& limits);
/// A shape with the same signature: another spelling of the same map, a single element for all of it, or other
/// displacements. May be the shape itself. `same_count`: the count must stay the same.
Shape respell(Random& random, const Shape& shape, int types, bool same_count);
/// A type for the first `leaves` basic elements of the shape.
std::optional<Shape> prefix(Random& random, const Shape& shape, std::int64_t leaves);

/// A random number of bytes of a block for Step::size.
std::int64_t block_bytes(Random& random, int size);

/// A handle that recorded calls create, and that drop() or the end of the program frees.
struct Handle {
  MPI_Datatype h = MPI_DATATYPE_NULL;
  bool owned = false;
  int parts = 0;  ///< derived types that it keeps alive
};
/// MPICH 4.0.2 packs wrong bytes if more than about 512 derived types are alive. If there are many, a type with many
/// parts is therefore built from its type map.
Handle build(Caller& caller, const TypeExpression& type, bool commit = true, bool dup_named = false);
void drop(Caller& caller, Handle& handle);

}  // namespace bestride::fuzz
