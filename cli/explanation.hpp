// SPDX-License-Identifier: Apache-2.0
#pragma once
// Explanation: everything `bestride explain` knows of one (type, count) in one kind of call, before it is printed.
#include <string>

#include "base/result.hpp"
#include "datatype/expression.hpp"
#include "perfmodel/chooser.hpp"

namespace bestride {

struct Question {
  std::string type;  ///< in the language of datatype/expression.hpp
  std::int64_t count = 1;
  CallKind call = CallKind::send;
  Distance distance = Distance::node;
  bool device = false;  ///< the buffer is in device memory
  bool aware = false;   ///< and MPI takes device memory
};

struct Explanation {
  std::string type;       ///< as parsed
  EvaluatedType element;  ///< of one element
  LayoutPtr layout;       ///< of all `count`
  Shape shape;
  Allowed allowed;
  std::string kernels;    ///< the packer's program
  std::string profile;    ///< path or "built-in"
  std::string profile_trouble;  ///< why the profile that was to be used isn't; else ""
  Choice choice;
  std::string because;

  // Of device memory: only if the question was about it.
  std::string gpu_kernels;     ///< what a launch would do, or why it can't
  DeviceAllowed device_allowed;
  DeviceChoice device_choice;
};

/// Errors: the type expression (with its column), the count, a size beyond 62 bits.
Result<Explanation> explain(const Question& question);

}  // namespace bestride
