// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every way in which MPI can exchange one typed buffer between two ranks.
#include <string>

#include "tests/support/random.hpp"
#include "tests/support/typed_data.hpp"

namespace bestride::test {

struct Exchange {
  TypedData& out;
  TypedData& in;
  int peer;
  int tag;
  MPI_Status status{};
  bool status_is_set = false;
  int error = MPI_SUCCESS;  ///< the first error code of any call
};

/// A named way to exchange a buffer. Every rank uses the same ways in the same order.
struct ExchangeCall {
  const char* name;
  void (*run)(Exchange&, Random&);
  bool library_packs;  ///< the MPI library sends a contiguous copy: only for short messages, see typed_data.hpp
  bool collective;     ///< the signatures must be equal: no short messages
};
std::span<const ExchangeCall> exchanges();

/// Completes all requests by a random mixture of the completion calls; statuses in the order of the requests.
int complete(std::vector<MPI_Request>& requests, std::vector<MPI_Status>& statuses, Random& random);

/// A communicator in which each of two ranks is the only neighbor of the other. Created by the first call, which is
/// collective.
MPI_Comm neighbors();
void free_neighbors();

}  // namespace bestride::test
