// SPDX-License-Identifier: Apache-2.0
#pragma once
// The MPI functions that datatype/ calls, as pointers to the PMPI_ functions: so the preload library has no undefined
// MPI symbol, and its own calls are not intercepted. Compiled once per MPI ABI; includes no part of MPI other than its
// header.
#include <mpi.h>

#include <type_traits>

namespace bestride::inline datatype {

struct DatatypeCalls {
  decltype(&PMPI_Type_get_envelope) get_envelope = nullptr;
  decltype(&PMPI_Type_get_contents) get_contents = nullptr;
  decltype(&PMPI_Type_get_extent) get_extent = nullptr;
  decltype(&PMPI_Type_size) size = nullptr;
  decltype(&PMPI_Type_contiguous) contiguous = nullptr;
  decltype(&PMPI_Type_create_hvector) create_hvector = nullptr;
  decltype(&PMPI_Type_create_resized) create_resized = nullptr;
  decltype(&PMPI_Type_commit) commit = nullptr;
  decltype(&PMPI_Type_free) free = nullptr;
#if MPI_VERSION >= 3
  decltype(&PMPI_Type_size_x) size_x = nullptr;
  decltype(&PMPI_Type_get_extent_x) get_extent_x = nullptr;
#endif
#if MPI_VERSION >= 4
  // May be null at run time: the library may be older than the header.
  decltype(&PMPI_Type_get_envelope_c) get_envelope_c = nullptr;
  decltype(&PMPI_Type_get_contents_c) get_contents_c = nullptr;
  decltype(&PMPI_Type_contiguous_c) contiguous_c = nullptr;
  decltype(&PMPI_Type_create_hvector_c) create_hvector_c = nullptr;
  decltype(&PMPI_Type_create_resized_c) create_resized_c = nullptr;
#endif

  /// Sets every pointer by `find("PMPI_Type_size")` and so on. Returns false if a required function is missing.
  template <class Find>
  bool resolve(Find&& find) {
    auto set = [&](auto& pointer, const char* symbol) {
      pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(find(symbol));
      return pointer != nullptr;
    };
    bool all = set(get_envelope, "PMPI_Type_get_envelope");
    all &= set(get_contents, "PMPI_Type_get_contents");
    all &= set(get_extent, "PMPI_Type_get_extent");
    all &= set(size, "PMPI_Type_size");
    all &= set(contiguous, "PMPI_Type_contiguous");
    all &= set(create_hvector, "PMPI_Type_create_hvector");
    all &= set(create_resized, "PMPI_Type_create_resized");
    all &= set(commit, "PMPI_Type_commit");
    all &= set(free, "PMPI_Type_free");
#if MPI_VERSION >= 3
    set(size_x, "PMPI_Type_size_x");
    set(get_extent_x, "PMPI_Type_get_extent_x");
#endif
#if MPI_VERSION >= 4
    set(get_envelope_c, "PMPI_Type_get_envelope_c");
    set(get_contents_c, "PMPI_Type_get_contents_c");
    set(contiguous_c, "PMPI_Type_contiguous_c");
    set(create_hvector_c, "PMPI_Type_create_hvector_c");
    set(create_resized_c, "PMPI_Type_create_resized_c");
#endif
    return all;
  }
};

}  // namespace bestride::inline datatype
