// SPDX-License-Identifier: Apache-2.0
#pragma once
// The MPI functions that discovery calls, as pointers to the PMPI_ functions: so the preload library has no undefined
// MPI symbol, and its own calls are not intercepted. Compiled once per MPI ABI; includes no part of MPI other than its
// header.
#include <mpi.h>

#include <type_traits>

namespace bestride::inline model {

struct DiscoverCalls {
  decltype(&PMPI_Comm_rank) comm_rank = nullptr;
  decltype(&PMPI_Comm_size) comm_size = nullptr;
  decltype(&PMPI_Comm_split_type) comm_split_type = nullptr;
  decltype(&PMPI_Comm_free) comm_free = nullptr;
  decltype(&PMPI_Comm_get_errhandler) get_errhandler = nullptr;
  decltype(&PMPI_Comm_set_errhandler) set_errhandler = nullptr;
  decltype(&PMPI_Errhandler_free) errhandler_free = nullptr;
  decltype(&PMPI_Allreduce) allreduce = nullptr;
  decltype(&PMPI_Bcast) bcast = nullptr;
  decltype(&PMPI_Allgather) allgather = nullptr;

  /// Sets every pointer by `find("PMPI_Bcast")` and so on. Returns false if one is missing.
  template <class Find>
  bool resolve(Find&& find) {
    auto set = [&](auto& pointer, const char* symbol) {
      pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(find(symbol));
      return pointer != nullptr;
    };
    bool all = set(comm_rank, "PMPI_Comm_rank");
    all &= set(comm_size, "PMPI_Comm_size");
    all &= set(comm_split_type, "PMPI_Comm_split_type");
    all &= set(comm_free, "PMPI_Comm_free");
    all &= set(get_errhandler, "PMPI_Comm_get_errhandler");
    all &= set(set_errhandler, "PMPI_Comm_set_errhandler");
    all &= set(errhandler_free, "PMPI_Errhandler_free");
    all &= set(allreduce, "PMPI_Allreduce");
    all &= set(bcast, "PMPI_Bcast");
    all &= set(allgather, "PMPI_Allgather");
    return all;
  }
};

}  // namespace bestride::inline model
