// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a receive shows once it is complete.
#include "tests/fuzz/programs/context.hpp"

namespace bestride::fuzz {

struct Received {
  BufferPtr buffer;
  Shape posted;
  Handle type;  ///< null where it was freed before completion
  int source = 0, tag = 0;
  std::int64_t bytes = 0;     ///< that arrive
  std::int64_t elements = 0;  ///< basic elements that arrive
  bool blocking = false;
};

/// No subarray, no darray: MPICH 4.0.2 fails an assertion or ends in MPI_Get_elements and MPI_Pack_external_size.
bool elements_known(const TypeExpression& type);
BufferPtr make_buffer(Context& context, const Shape& shape, std::int64_t times, std::uint64_t seed, int kind = 0);
/// Buffer, source, tag and counts, against what they must be; frees the type.
void report_received(Context& context, Received& received, Status& status, const std::string& label);
/// Puts the sender's bytes into what the receiver expects.
void expect_from(Received& received, const Image& sender, const Runs& sent);
/// A live type of all ranks if there is one of this size, else a drawn one.
Shape pick_shape(Context& context, Random& common, const Step& step, std::int64_t bytes);
/// Frees the type now where the step and this rank's draw say so; true if it is gone.
bool free_early(Context& context, const Step& step, Handle& type);

}  // namespace bestride::fuzz
