// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <mpi.h>

#include "apps/common/command_line.hpp"

namespace zero_step {
namespace {

using namespace command_line;

constexpr Named<Element> elements[] = {{Element::bfloat16, "bf16"}, {Element::float32, "float32"}};
constexpr Named<Form> forms[] = {
    {Form::blocking, "blocking"}, {Form::nonblocking, "nonblocking"}, {Form::persistent, "persistent"}};

}  // namespace

Parsed parse(const std::vector<std::string>& arguments) {
  Options options;
  const command_line::Valued valued = {
      {"--layers", whole(options.layers, 1, 1024)},
      {"--hidden", whole(options.hidden, 4, 1 << 14)},
      {"--vocabulary", whole(options.vocabulary, 1, 1 << 20)},
      {"--micro", whole(options.micro, 1, 1024)},
      {"--steps", whole(options.steps, 1, 1 << 20)},
      {"--damage", whole(options.damage, 0, 16)},
      {"--rate", number(options.rate, 1e-9, 1)},
      {"--type", one_of(options.element, elements)},
      {"--form", one_of(options.form, forms)},
      {"--json", file_name(options.json)},
  };
  const command_line::Flags flags = {
      {"--exact", [&] { options.exact = true; }},
      {"--verify", [&] { options.verify = true; }},
      {"--help", [&] { options.help = true; }},
      {"-h", [&] { options.help = true; }},
  };
  if (std::string problem = command_line::parse(arguments, valued, flags); !problem.empty()) return {{}, problem};
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

const char* name_of(Element value) { return name_in(elements, value); }
const char* name_of(Form value) { return name_in(forms, value); }

}  // namespace zero_step
