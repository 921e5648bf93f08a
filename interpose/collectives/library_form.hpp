// SPDX-License-Identifier: Apache-2.0
#pragma once
// The MPI library's own collective, either in the form that was called or, for a blocking call, in its nonblocking
// form, which is completed here.
//
// Members must take the same form, because MPI does not match one form with the other. So the form is chosen together
// with the hierarchy (dispatch.hpp), from data that are the same on all members. Every path to the library's function
// goes through by_library(), including calls whose buffers are staged or whose types are respelled.
#include <mpi.h>

#include <type_traits>

#include "interpose/collectives/pending.hpp"
#include "interpose/mpi/functions.hpp"
#include "interpose/mpi/nested_calls.hpp"

namespace bestride::inline interpose {

enum class LibraryForm : bool { as_called, tested };

/// &Calls::Ibcast for &Calls::Bcast, and so on; nullptr for functions that have only one form here.
template <auto slot>
inline constexpr auto nonblocking_form = nullptr;
#define BESTRIDE_NONBLOCKING_FORM(Name, Iname) \
  template <>                                  \
  inline constexpr auto nonblocking_form<&Calls::Name> = &Calls::Iname;
#if MPI_VERSION >= 4
#define BESTRIDE_NONBLOCKING_FORMS(Name, Iname) \
  BESTRIDE_NONBLOCKING_FORM(Name, Iname) BESTRIDE_NONBLOCKING_FORM(Name##_c, Iname##_c)
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

/// Returns the error of the call. Advances our own pending collectives between tests. As thread safe as the library's
/// call.
template <Calls& via, auto slot, class... Arguments>
int by_library([[maybe_unused]] LibraryForm form, Arguments... arguments) {
  const InLibraryCall inside;
  if constexpr (!std::is_null_pointer_v<decltype(nonblocking_form<slot>)>)
    if (form == LibraryForm::tested) [[unlikely]] {
      MPI_Request request = MPI_REQUEST_NULL;
      const int error = (via.*nonblocking_form<slot>)(arguments..., &request);
      if (error != MPI_SUCCESS) return error;
      return poll_until_complete([&request](int* flag) { return via.Test(&request, flag, MPI_STATUS_IGNORE); });
    }
  return (via.*slot)(arguments...);
}

}  // namespace bestride::inline interpose
