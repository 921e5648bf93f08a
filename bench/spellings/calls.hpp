// SPDX-License-Identifier: Apache-2.0
#pragma once
// The measured calls, each as a small function between two ranks.
#include <memory>
#include <string>
#include <vector>

#include "spelling.hpp"

namespace spellings {

/// One side of a call: `count` elements of `type` for each peer. The blocks of two peers are `step` bytes apart.
struct Side {
  char* at;
  Spelled spelled;
  MPI_Aint step;
};

/// A call with buffers for two blocks on both sides. Collective over the two ranks.
class Call {
 public:
  virtual ~Call() = default;
  /// The spelling that users have on each side: the tiled one if the call has a block per peer.
  virtual bool many_out() const { return false; }
  virtual bool many_in() const { return false; }
  /// False if the call takes only MPI_DOUBLE.
  virtual bool takes(const Shape&) const { return true; }
  virtual void operator()(const Side& out, const Side& in) = 0;
};

struct NamedCall {
  std::string name;
  std::unique_ptr<Call> call;
};

/// The peer's memory that one-sided calls access: of the caller, and of the MPI library (shared memory on one host).
struct Windows {
  MPI_Win created, allocated;
  Windows(void* memory, MPI_Aint size);
  ~Windows();
};

std::vector<NamedCall> all_calls(const Windows& windows);

}  // namespace spellings
