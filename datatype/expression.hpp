// SPDX-License-Identifier: Apache-2.0
#pragma once
// A small language for datatypes, used by `bestride explain`, tests and benchmarks: "vector(1000,1,2,double)".
//
//   type       := name | constructor
//   name       := byte char short int long float double int64 float_int double_int long_int short_int 2int complex ...
//                 (all: named_types(); the C names of MPI without MPI_, blanks as underscores)
//   constructor:= contiguous(n,T) | vector(n,bl,stride,T) | hvector(n,bl,bytes,T)
//               | indexed([bl...],[disp...],T) | hindexed([bl...],[bytes...],T)
//               | indexed_block(bl,[disp...],T) | hindexed_block(bl,[bytes...],T)
//               | struct([bl...],[bytes...],[T...]) | subarray([sizes],[subsizes],[starts],c|fortran,T)
//               | darray(size,rank,[gsizes],[block|cyclic|none...],[dargs],[psizes],c|fortran,T)
//               | resized(lb,extent,T) | dup(T)
//
// Numbers are 64-bit decimal, may be negative, and may have a suffix K, M, G (powers of 1024) or an exponent (1e6).
// Blanks are ignored. In dargs `dflt` stands for MPI_DISTRIBUTE_DFLT_DARG. Lists may also be written in braces.
//
// Also accepted are MPI's names of types (MPI_DOUBLE), calls of MPI's constructors with MPI's arguments
// ("MPI_Type_create_resized(MPI_INT,0,8)", "MPI_Type_indexed(2,{1,2},{0,4},MPI_INT)", with or without the last argument
// ",&type"), and a layout as a report prints it ("16 x 8192 | 8 B"), which becomes hvectors of bytes.
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "datatype/build.hpp"
#include "datatype/layout.hpp"

namespace bestride::inline datatype {

/// A parsed type: a tree that does not depend on MPI. Immutable.
struct TypeExpression {
  enum class Combiner : std::uint8_t {
    named,
    contiguous,
    vector,
    hvector,
    indexed,
    hindexed,
    indexed_block,
    hindexed_block,
    structure,
    subarray,
    darray,
    resized,
    dup,
  };
  enum class Distribution : std::uint8_t { none, block, cyclic };
  /// The value of `dflt` in a darray's dargs.
  static constexpr std::int64_t default_argument = std::numeric_limits<std::int64_t>::min();
  /// parse_type() and evaluate() are recursive and refuse types that are nested deeper.
  static constexpr int max_depth = 512;

  Combiner combiner = Combiner::named;
  std::string name;                    ///< named: the name in the language
  std::vector<std::int64_t> integers;  ///< scalar arguments in the order of the language
  std::vector<std::int64_t> a, b, c;   ///< list arguments in order
  std::vector<Distribution> distributions;
  bool fortran_order = false;
  std::vector<TypeExpression> children;

  std::string text() const;  ///< the text in the language; parse_type(text()) gives the same tree
  bool operator==(const TypeExpression&) const = default;
};

/// Errors state the column and what was expected there.
Result<TypeExpression> parse_type(std::string_view text);

/// A number as in a type expression: "-8", "64K", "1e6".
Result<std::int64_t> parse_number(std::string_view text);

/// The result that decode() gives for the MPI type, computed without MPI. Where the standard does not define the bounds
/// (a type without bytes, the padding at the end of a struct) they are MPICH's.
struct EvaluatedType {
  Placed bytes;
  std::int64_t lower_bound = 0;
  std::int64_t extent = 0;
  std::int64_t unit_bytes = 0;  ///< as in DecodedType
};
/// Checks every array and count as the MPI constructor does. Errors: a negative count or block length, an out-of-range
/// subarray, overflow.
Result<EvaluatedType> evaluate(const TypeExpression& type);

}  // namespace bestride::inline datatype
