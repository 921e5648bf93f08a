// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include "apps/common/command_line.hpp"

namespace collectives {
namespace {

using namespace command_line;

constexpr Named<Kind> kinds[] = {{Kind::allgather, "allgather"},
                                 {Kind::allgatherv, "allgatherv"},
                                 {Kind::bcast, "bcast"},
                                 {Kind::reduce_scatter_block, "reduce_scatter_block"},
                                 {Kind::reduce_scatter, "reduce_scatter"},
                                 {Kind::allreduce, "allreduce"},
                                 {Kind::reduce, "reduce"},
                                 {Kind::gather, "gather"},
                                 {Kind::scatter, "scatter"},
                                 {Kind::alltoall, "alltoall"}};
constexpr Named<Form> forms[] = {
    {Form::blocking, "blocking"}, {Form::nonblocking, "nonblocking"}, {Form::persistent, "persistent"}};
constexpr Named<Element> elements[] = {{Element::int32, "int32"}, {Element::float32, "float32"}};
constexpr Named<Variant> variants[] = {
    {Variant::ours, "ours"}, {Variant::library, "library"}, {Variant::library_nonblocking, "library_nonblocking"}};

}  // namespace

Parsed parse(const std::vector<std::string>& arguments) {
  Options options;
  Variant only{};
  bool has_only = false;
  const command_line::Valued valued = {
      {"--collectives", several_of(options.kinds, kinds)},
      {"--bytes", sizes(options.bytes)},
      {"--forms", several_of(options.forms, forms)},
      {"--type", one_of(options.element, elements)},
      {"--warmup", whole(options.warmup, 0, 1 << 20)},
      {"--rounds", whole(options.rounds, 0, 1 << 20)},
      {"--change", number(options.change, 0, 1)},
      {"--only", [&](const std::string& text) { return has_only = true, one_of(only, variants)(text); }},
  };
  const command_line::Flags flags = {
      {"--repeat-content", [&] { options.change = 0; }},
      {"--help", [&] { options.help = true; }},
      {"-h", [&] { options.help = true; }},
  };
  if (std::string problem = command_line::parse(arguments, valued, flags); !problem.empty()) return {{}, problem};
  if (has_only) options.only = only;
  if (options.kinds.empty())
    for (const auto& kind : kinds) options.kinds.push_back(kind.value);
  if (options.rounds == 0 && !options.only) return {{}, "--rounds 0 only makes sense with --only"};
  if (options.change > 0 && options.change < 1 && options.element != Element::int32)
    return {{}, "--change changes 16-bit words, which may turn float32 into NaN: use --type int32"};
  return {options, ""};
}

std::string usage() {
  return "collectives: time of collective operations, ours and the MPI library's in turns, with compared results\n"
         "  --collectives LIST   " +
         choices(kinds) +
         " (all)\n"
         "  --bytes LIST         size of the whole vector: gathered, summed or broadcast; alltoall: of each rank "
         "(64k,4m)\n"
         "  --forms LIST         form of our call: blocking, nonblocking, persistent (blocking)\n"
         "  --type T             int32 | float32; sums of float32 are compared within a tolerance, all others byte by "
         "byte (int32)\n"
         "  --rounds N           measured rounds (5);  --warmup N: rounds before them (1)\n"
         "  --only VARIANT       only ours | library | library_nonblocking, with no other traffic between rounds\n"
         "  --repeat-content     the same contribution every time;  --change F: a fraction F of 16-bit words is new "
         "each time "
         "(all)\n";
}

const char* name_of(Kind value) { return name_in(kinds, value); }
const char* name_of(Form value) { return name_in(forms, value); }
const char* name_of(Element value) { return name_in(elements, value); }
const char* name_of(Variant value) { return name_in(variants, value); }

bool reduces(Kind kind) {
  return kind == Kind::reduce_scatter_block || kind == Kind::reduce_scatter || kind == Kind::allreduce ||
         kind == Kind::reduce;
}

}  // namespace collectives
