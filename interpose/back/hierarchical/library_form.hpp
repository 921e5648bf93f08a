// SPDX-License-Identifier: Apache-2.0
#pragma once
// The MPI library's own collective, in the form that is called, or a blocking one by its nonblocking form, carried to its end here.
//
// Members must take the same form: MPI does not match one with the other. So it is chosen where the hierarchy is (spread.hpp), by what all of them have
// alike, and every way to the library's function goes through by_library(), also that of a call whose buffers are staged or whose types are respelled.
#include <mpi.h>

#include <type_traits>

#include "interpose/back/calls.hpp"
#include "interpose/back/hierarchical/pending.hpp"

namespace bestride {

enum class LibraryForm : bool { as_called, tested };

/// &Calls::Ibcast of &Calls::Bcast; nullptr of what is never called by another form.
template <auto slot>
inline constexpr auto nonblocking_form = nullptr;
#define BESTRIDE_NONBLOCKING_FORM(Name, Iname) \
  template <> \
  inline constexpr auto nonblocking_form<&Calls::Name> = &Calls::Iname;
#if MPI_VERSION >= 4
#define BESTRIDE_NONBLOCKING_FORMS(Name, Iname) BESTRIDE_NONBLOCKING_FORM(Name, Iname) BESTRIDE_NONBLOCKING_FORM(Name##_c, Iname##_c)
#else
#define BESTRIDE_NONBLOCKING_FORMS(Name, Iname) BESTRIDE_NONBLOCKING_FORM(Name, Iname)
#endif
BESTRIDE_NONBLOCKING_FORMS(Allgather, Iallgather)
BESTRIDE_NONBLOCKING_FORMS(Bcast, Ibcast)
BESTRIDE_NONBLOCKING_FORMS(Gather, Igather)
BESTRIDE_NONBLOCKING_FORMS(Scatter, Iscatter)
BESTRIDE_NONBLOCKING_FORMS(Alltoall, Ialltoall)
BESTRIDE_NONBLOCKING_FORMS(Reduce_scatter, Ireduce_scatter)
BESTRIDE_NONBLOCKING_FORMS(Reduce_scatter_block, Ireduce_scatter_block)
BESTRIDE_NONBLOCKING_FORMS(Allreduce, Iallreduce)
BESTRIDE_NONBLOCKING_FORMS(Reduce, Ireduce)
#undef BESTRIDE_NONBLOCKING_FORMS
#undef BESTRIDE_NONBLOCKING_FORM

/// The call's error. Carries our own pending collectives on while it tests. As thread safe as the library's call.
template <auto slot, class... Arguments>
int by_library([[maybe_unused]] LibraryForm form, Arguments... arguments) {
  if constexpr (!std::is_null_pointer_v<decltype(nonblocking_form<slot>)>)
    if (form == LibraryForm::tested) [[unlikely]] {
      MPI_Request request = MPI_REQUEST_NULL;
      const int error = (next.*nonblocking_form<slot>)(arguments..., &request);
      if (error != MPI_SUCCESS) return error;
      return test_in_turns([&request](int* flag) { return next.Test(&request, flag, MPI_STATUS_IGNORE); });
    }
  return (next.*slot)(arguments...);
}

}  // namespace bestride
