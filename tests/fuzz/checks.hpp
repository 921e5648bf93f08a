// SPDX-License-Identifier: Apache-2.0
#pragma once
// Properties that hold for every datatype, one function each. A check returns nullopt if the property holds, otherwise
// one line that describes the violation.
#include <mpi.h>

#include <optional>
#include <string>

#include "datatype/decode.hpp"
#include "kernels/packer.hpp"
#include "tests/support/memory.hpp"
#include "tests/support/mpi_types.hpp"
#include "tests/support/random.hpp"

namespace bestride::test {

using Complaint = std::optional<std::string>;

/// The type under test and its properties.
struct Subject {
  const TypeExpression& expression;
  std::int64_t count;
  MPI_Datatype handle;  ///< committed
  DecodedType decoded;
  Facts facts;
  std::vector<ByteRun> runs;  ///< of `count` elements, from the type map
  bool named_twice;           ///< a byte occurs twice in the type map, so unpacking is not compared with MPI
  bool library_can;           ///< the MPI library packs this type correctly and does not crash
};

/// The MPI functions that the datatype room uses, which here count the handles that are obtained and freed.
const DatatypeCalls& counted_calls();
/// The number of derived handles that get_contents returned and that were not freed.
long handles_held();

/// Whether a part of the type has no bytes. MPICH 4.0.2 divides by zero when it packs such a type.
bool has_empty_part(const TypeExpression& type);
/// Whether a part of the type has a negative extent. MPICH 4.0.2 treats some of these as contiguous and packs other
/// bytes.
bool has_backward_part(const TypeExpression& type);
/// How often the library's MPI_Pack packed fewer bytes than the type has, without an error. MPICH 4.0.2 does so for
/// contiguous types while more than 512 derived types are alive: it reads the size of the basic type from the handle's
/// bits.
long library_packed_short();

Complaint check_decoded(const Subject& subject);
/// Types with equal keys are decoded alike, in the whole run.
Complaint check_key(const Subject& subject);
/// How many keys were those of an earlier type.
long keys_seen_again();
Complaint check_second_spelling(const Subject& subject, Random& random);
Complaint check_pack(const Subject& subject, Random& random);
Complaint check_unpack(const Subject& subject, Random& random);
Complaint check_ranges(const Subject& subject, Random& random);
Complaint check_respelled(const Subject& subject, Random& random);

}  // namespace bestride::test
