// SPDX-License-Identifier: Apache-2.0
#pragma once
// The type map of an expression, element by element, from the definitions in the standard: a reference that shares no
// code with the layouts except the extents, which are compared with those of the MPI library.
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "datatype/named.hpp"
#include "tests/support/expressions.hpp"

namespace bestride::test {

struct Leaf {
  const NamedType* type = nullptr;
  std::int64_t offset = 0;
  bool operator==(const Leaf&) const = default;
};
using TypeMap = std::vector<Leaf>;

/// nullopt if the type is invalid or has more than `limit` leaves.
std::optional<TypeMap> type_map(const TypeExpression& type, std::size_t limit = std::size_t{1} << 22);

struct ByteRun {
  std::int64_t offset = 0, length = 0;
  bool operator==(const ByteRun&) const = default;
};
/// The bytes in packing order, without the gaps inside pair types. Adjacent runs are merged.
std::vector<ByteRun> runs_of(const TypeMap& map);

/// `count` elements, each displaced by `extent`.
std::vector<ByteRun> runs_of(const TypeMap& map, std::int64_t count, std::int64_t extent);

/// Whether a byte occurs twice. Such a type may be used for sending, but not for receiving.
bool overlaps(std::vector<ByteRun> runs);

/// A run of equal types in a type signature.
struct SignatureRun {
  const NamedType* type = nullptr;
  std::int64_t count = 0;
};
std::vector<SignatureRun> signature_of(const TypeMap& map);

}  // namespace bestride::test
