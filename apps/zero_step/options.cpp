// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <mpi.h>

#include <charconv>
#include <functional>
#include <map>

namespace zero_step {
namespace {

/// Parses the text of a value. Returns a description of acceptable values if it is invalid, or an empty string.
using Setter = std::function<std::string(const std::string&)>;

template <class Number>
bool read_all(const std::string& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

Setter whole(int& target, int least, int most) {
  return [&target, least, most](const std::string& text) {
    int number = 0;
    if (read_all(text, number) && number >= least && number <= most) return target = number, std::string();
    return "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  };
}

Setter positive(double& target) {
  return [&target](const std::string& text) {
    double number = 0;
    if (read_all(text, number) && number > 0 && number < 1) return target = number, std::string();
    return std::string("a number between 0 and 1");
  };
}

template <class Enum>
Setter one_of(Enum& target, std::vector<Enum> values) {
  return [&target, values](const std::string& text) {
    std::string choices;
    for (const Enum value : values) {
      if (text == name_of(value)) return target = value, std::string();
      choices += (choices.empty() ? "" : ", ") + std::string(name_of(value));
    }
    return "one of " + choices;
  };
}

Setter any_text(std::string& target) {
  return [&target](const std::string& text) {
    return target = text, std::string(text.empty() ? "a file name, or -" : "");
  };
}

}  // namespace

Parsed parse(const std::vector<std::string>& arguments) {
  Options options;
  const std::map<std::string, Setter> valued = {
      {"--layers", whole(options.layers, 1, 1024)},
      {"--hidden", whole(options.hidden, 4, 1 << 14)},
      {"--vocabulary", whole(options.vocabulary, 1, 1 << 20)},
      {"--micro", whole(options.micro, 1, 1024)},
      {"--steps", whole(options.steps, 1, 1 << 20)},
      {"--damage", whole(options.damage, 0, 16)},
      {"--rate", positive(options.rate)},
      {"--type", one_of(options.element, std::vector{Element::bfloat16, Element::float32})},
      {"--form", one_of(options.form, std::vector{Form::blocking, Form::nonblocking, Form::persistent})},
      {"--json", any_text(options.json)},
  };
  const std::map<std::string, bool*> bare = {
      {"--exact", &options.exact}, {"--verify", &options.verify}, {"--help", &options.help}, {"-h", &options.help}};
  for (std::size_t at = 0; at < arguments.size(); ++at) {
    std::string key = arguments[at];
    if (const auto found = bare.find(key); found != bare.end()) {
      *found->second = true;
      continue;
    }
    const auto equals = key.find('=');
    std::optional<std::string> value;
    if (equals != std::string::npos) value = key.substr(equals + 1), key = key.substr(0, equals);
    const auto found = valued.find(key);
    if (found == valued.end()) return {{}, "there is no option '" + arguments[at] + "' (--help lists them)"};
    if (!value && ++at < arguments.size()) value = arguments[at];
    if (!value) return {{}, key + " wants a value"};
    if (const auto wanted = found->second(*value); !wanted.empty())
      return {{}, key + " wants " + wanted + ", not '" + *value + "'"};
  }
  if (options.damage && !options.verify) return {{}, "--damage is only seen with --verify"};
  if (options.form == Form::persistent && MPI_VERSION < 4)
    return {{}, "--form persistent: this MPI has no persistent collectives"};
  return {options, ""};
}

std::string usage() {
  return "zero_step: a training step with parameters, gradients and optimizer state partitioned over all ranks\n"
         "  --layers N --hidden N     transformer layers and their width (4, 256);  --vocabulary N: rows of the "
         "embedding (1024)\n"
         "  --micro N --steps N       micro-batches of a step, steps (2, 3)\n"
         "  --type T                  bf16 | float32: how parameters are gathered (bf16); the optimizer keeps float32\n"
         "  --form F                  blocking | nonblocking | persistent; the last two gather the next layer ahead "
         "(blocking)\n"
         "  --exact                   gradients in 64-bit fixed point: bitwise the same result in any order of "
         "summation\n"
         "  --verify                  compare with a reference that every rank computes without communication\n"
         "  --rate X                  learning rate at its highest (0.001)\n"
         "  --json FILE               the report as JSON; - for standard output\n"
         "  --damage N                with --verify: spoil N gathered words a step, to see the check find them\n";
}

const char* name_of(Element value) { return value == Element::bfloat16 ? "bf16" : "float32"; }
const char* name_of(Form value) {
  return value == Form::blocking ? "blocking" : value == Form::nonblocking ? "nonblocking" : "persistent";
}

}  // namespace zero_step
