// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command-line options of zero_step.
#include <optional>
#include <string>
#include <vector>

namespace zero_step {

enum class Element { bfloat16, float32 };               ///< type of the parameters when gathered and used
enum class Form { blocking, nonblocking, persistent };  ///< of the collective calls

struct Options {
  int layers = 4;
  int hidden = 256;
  int vocabulary = 1024;
  int micro = 2;  ///< micro-batches per step
  int steps = 3;
  double rate = 1e-3;  ///< maximum learning rate
  Element element = Element::bfloat16;
  Form form = Form::blocking;
  bool exact = false;   ///< sum gradients in 64-bit fixed point: the same bits in any order
  bool verify = false;  ///< compare with a reference that every rank computes without communication
  int damage = 0;       ///< words overwritten in the last forward gather of every step, to test the check
  std::string json;     ///< empty: no JSON; "-": standard output
  bool help = false;
};

/// Exactly one of the two is set: the options, or a one-line error message.
struct Parsed {
  std::optional<Options> options;
  std::string error;
};
Parsed parse(const std::vector<std::string>& arguments);

std::string usage();

const char* name_of(Element);
const char* name_of(Form);

}  // namespace zero_step
