// SPDX-License-Identifier: Apache-2.0
#pragma once
// Explanation: all facts that `bestride explain` collects about one (type, count) in one kind of call, before printing.
#include <string>

#include "base/result.hpp"
#include "datatype/expression.hpp"
#include "perfmodel/choose/chooser.hpp"

namespace bestride::inline cli {

struct Question {
  std::string type;  ///< in the syntax of datatype/expression.hpp
  std::int64_t count = 1;
  CallKind call = CallKind::send;
  Distance distance = Distance::node;
  bool device = false;  ///< the buffer is in device memory
  bool aware = false;   ///< and the MPI library takes device memory
};

struct Explanation {
  std::string type;       ///< as parsed
  EvaluatedType element;  ///< of one element
  LayoutPtr layout;       ///< of all `count`
  Shape shape;
  Allowed allowed;
  std::string kernels;          ///< the packer's program
  std::string profile;          ///< path or "built-in"
  std::string profile_problem;  ///< why the requested profile is not used; otherwise ""
  Choice choice;
  bool engine = false;  ///< a message whose fragments are packed in place of the MPI library, whatever `choice` is
  std::string because;

  // For device memory: only set if the question was about it.
  std::string gpu_kernels;  ///< what a launch would do, or why it is not possible
  DeviceAllowed device_allowed;
  DeviceChoice device_choice;
};

/// Errors: in the type expression (with its column), in the count, or a size beyond 62 bits.
Result<Explanation> explain(const Question& question);

}  // namespace bestride::inline cli
