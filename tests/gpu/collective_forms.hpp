// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every collective that has a buffer, in all its forms, with one signature; and the MPI library's own function (PMPI_)
// for comparison.
#include <mpi.h>

#include <vector>

namespace bestride::test {

enum class Form { library, blocking, nonblocking, persistent, blocking_c, nonblocking_c, persistent_c };
inline constexpr Form every_form[] = {Form::blocking,   Form::nonblocking,   Form::persistent,
                                      Form::blocking_c, Form::nonblocking_c, Form::persistent_c};
const char* name(Form form);
inline bool is_persistent(Form form) { return form == Form::persistent || form == Form::persistent_c; }

/// One direction. `counts` and `at` (in extents, in bytes for w-forms) are for v- and w-forms, `types` for w-forms.
struct Ends {
  void* buffer = nullptr;
  int count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::vector<int> counts, at;
  std::vector<MPI_Datatype> types;
};
struct Arguments {
  Ends out, in;
  MPI_Op op = MPI_OP_NULL;
  int root = 0;
  MPI_Comm comm = MPI_COMM_NULL;
};

/// How many blocks a direction has.
enum class Blocks {
  none,
  one,
  each,  ///< one for each peer
  mine,  ///< one for each member of the own group
};
struct Collective {
  const char* name;
  Blocks out, in;
  bool varying, typed;  ///< v- or w-form, w-form
  bool reduces;
  enum class Root { none, receives, sends } root;
  enum class InPlace { no, everywhere, at_root } in_place;
  bool on_intercomm;
  /// Makes the call and completes it; `again` (persistent forms) is called between two starts. Returns the first error.
  int (*run)(Form form, const Arguments& arguments, void (*again)());
  bool local = false;  ///< blocking only, without a communicator
};
/// The last element has a null name.
extern const Collective collectives[];

}  // namespace bestride::test
