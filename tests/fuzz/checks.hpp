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

/// One type under test with everything known about it.
struct Subject {
  const TypeExpression& expression;
  std::int64_t count;
  MPI_Datatype handle;  ///< committed
  DecodedType decoded;
  Facts facts;
  std::vector<ByteRun> runs;  ///< of `count` elements, from the type map
  bool named_twice;           ///< a byte is named twice: unpacking is not compared with MPI
  bool library_can;           ///< the MPI library's own pack is right and does not crash for this type
};

/// The MPI functions of the datatype room, with the handles obtained and freed counted.
const DatatypeCalls& counted_calls();
/// Derived handles obtained by get_contents and not freed since the start.
long handles_held();

/// Is a part of the type without bytes? MPICH 4.0.2 divides by zero when it packs such a type.
bool has_empty_part(const TypeExpression& type);
/// Has a part of the type a negative extent? MPICH 4.0.2 takes some of these for contiguous and packs other bytes.
bool has_backward_part(const TypeExpression& type);
/// How often the library's MPI_Pack packed fewer bytes than the type has, without an error. MPICH 4.0.2 does so for
/// contiguous types while more than 512 derived types are alive: it reads the size of the basic type out of the
/// handle's bits.
long library_packed_short();

Complaint check_decoded(const Subject& subject);
Complaint check_second_spelling(const Subject& subject, Random& random);
Complaint check_pack(const Subject& subject, Random& random);
Complaint check_unpack(const Subject& subject, Random& random);
Complaint check_ranges(const Subject& subject, Random& random);
Complaint check_respelled(const Subject& subject, Random& random);

}  // namespace bestride::test
