// SPDX-License-Identifier: Apache-2.0
#pragma once
// The calls that are measured, each as one small function between two ranks.
#include <memory>
#include <string>
#include <vector>

#include "spelling.hpp"

namespace spellings {

/// One side of a call: `count` elements of `type` for each peer, `step` bytes from one to the next.
struct Side {
  char* at;
  Spelled spelled;
  MPI_Aint step;
};

/// A call with room for two blocks on both sides. Collective over the two ranks.
class Call {
 public:
  virtual ~Call() = default;
  /// Which spelling users would have on each side: the tiled one where the call has a block a peer.
  virtual bool many_out() const { return false; }
  virtual bool many_in() const { return false; }
  /// False: it takes MPI_DOUBLE only.
  virtual bool takes(const Shape&) const { return true; }
  virtual void operator()(const Side& out, const Side& in) = 0;
};

struct NamedCall {
  std::string name;
  std::unique_ptr<Call> call;
};

/// Memory of the peer's that one-sided calls aim at: the caller's own, and the library's (shared memory on one host).
struct Windows {
  MPI_Win created, allocated;
  Windows(void* memory, MPI_Aint size);
  ~Windows();
};

std::vector<NamedCall> all_calls(const Windows& windows);

}  // namespace spellings
