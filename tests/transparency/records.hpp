// SPDX-License-Identifier: Apache-2.0
#pragma once
// Messages of structs with gaps, and a check that a datatype still describes them.
#include <mpi.h>

#include <vector>

#include "tests/support/harness.hpp"

namespace bestride::test {

/// 24 bytes, of which 13 are packed.
struct Record {
  int number;
  double value;
  char letter;
};

/// A committed type with extent sizeof(Record). The caller frees it. `integer`, `real`: the types of int and double.
MPI_Datatype make_record_type(MPI_Datatype integer = MPI_INT, MPI_Datatype real = MPI_DOUBLE);

/// `count` consecutive records of a fixed sequence, from number `first` on.
std::vector<Record> records(int count, int first = 0);
/// The number of records that differ from records(count, first).
int wrong_records(const Record* got, int count, int first = 0);

/// From an eager message to a rendezvous message of several fragments.
inline constexpr int record_counts[] = {16, 1024, 5000, 100000};

/// Two ranks exchange Records. Each rank receives, sends and packs with `type`, while its peer uses a type that it
/// created itself.
void check_record_type(MPI_Datatype type, MPI_Comm comm = MPI_COMM_WORLD);
/// Local to this rank: MPI_Pack, MPI_Unpack and a message to MPI_COMM_SELF.
void check_record_type_alone(MPI_Datatype type);

}  // namespace bestride::test
