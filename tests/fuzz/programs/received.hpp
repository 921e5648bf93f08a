// SPDX-License-Identifier: Apache-2.0
#pragma once
// The results of a completed receive.
#include "tests/fuzz/programs/context.hpp"

namespace bestride::fuzz {

struct Received {
  BufferPtr buffer;
  Shape posted;
  Handle type;  ///< null if it was freed before completion
  int source = 0, tag = 0;
  std::int64_t bytes = 0;     ///< bytes that arrive
  std::int64_t elements = 0;  ///< basic elements that arrive
  bool blocking = false;
};

/// False for subarrays and darrays: MPICH 4.0.2 fails an assertion or crashes in MPI_Get_elements and
/// MPI_Pack_external_size.
bool elements_known(const TypeExpression& type);
BufferPtr make_buffer(Context& context, const Shape& shape, std::int64_t times, std::uint64_t seed, int kind = 0);
/// Checks buffer, source, tag and counts, and frees the type.
void report_received(Context& context, Received& received, Status& status, const std::string& label);
/// Adds the sender's bytes to the expected contents of the receive buffer.
void expect_from(Received& received, const Image& sender, const Runs& sent);
/// A live type of this size that all ranks have, or else a random type.
Shape pick_shape(Context& context, Random& common, const Step& step, std::int64_t bytes);
/// Frees the type now if the step allows it and this rank's random choice is to do so. True if it was freed.
bool free_early(Context& context, const Step& step, Handle& type);

}  // namespace bestride::fuzz
