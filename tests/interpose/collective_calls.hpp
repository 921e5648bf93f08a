// SPDX-License-Identifier: Apache-2.0
#pragma once
// The intercepted collectives, each in all its forms, and the MPI library's own function (PMPI_) for comparison.
#include <mpi.h>

#include <vector>

namespace bestride::test {

/// No persistent form: persistent collectives are not intercepted, and MPICH 4.0.2 handles derived types wrongly if one
/// is started twice.
enum class Form { library, blocking, nonblocking, blocking_c, nonblocking_c };
inline constexpr Form intercepted_forms[] = {Form::blocking, Form::nonblocking, Form::blocking_c, Form::nonblocking_c};
const char* name(Form form);

/// One direction. `counts` and `at` (in extents, in bytes for w-forms) are for v- and w-forms, `types` for w-forms.
struct Direction {
  void* buffer = nullptr;
  int count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::vector<int> counts, at;
  std::vector<MPI_Datatype> types;
};

struct CollectiveCall {
  const char* name;
  /// Whether a rank has one block per rank; otherwise it has one block.
  bool many_out, many_in;
  bool v, w;
  bool rooted;
  /// Makes the call, waits for it, and returns its error code.
  int (*run)(Form form, const Direction& out, const Direction& in, int root, MPI_Comm comm);
};

extern const CollectiveCall collective_calls[9];

/// Unless nullptr, called between a nonblocking call and the wait for it.
extern void (*after_the_call)();

}  // namespace bestride::test
