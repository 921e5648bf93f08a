// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the user asked zero_step to do.
#include <optional>
#include <string>
#include <vector>

namespace zero_step {

enum class Element { bfloat16, float32 };               ///< how parameters are gathered and used
enum class Form { blocking, nonblocking, persistent };  ///< of the collective calls

struct Options {
  int layers = 4;
  int hidden = 256;
  int vocabulary = 1024;
  int micro = 2;  ///< micro-batches of one step
  int steps = 3;
  double rate = 1e-3;  ///< the learning rate at its highest
  Element element = Element::bfloat16;
  Form form = Form::blocking;
  bool exact = false;   ///< gradients are summed in 64-bit fixed point: the same bits in any order
  bool verify = false;  ///< compare with a reference that every rank computes by itself
  int damage = 0;       ///< words spoiled in the last forward gather of every step, to see the check find them
  std::string json;     ///< empty: no JSON; "-": standard output
  bool help = false;
};

/// Exactly one of the two is set: the options, or one line that says what is wrong with the arguments.
struct Parsed {
  std::optional<Options> options;
  std::string complaint;
};
Parsed parse(const std::vector<std::string>& arguments);

std::string usage();

const char* name_of(Element);
const char* name_of(Form);

}  // namespace zero_step
