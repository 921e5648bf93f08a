// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>

namespace collectives {
namespace {

constexpr const char* kind_names[] = {"allgather",      "allgatherv", "bcast",  "reduce_scatter_block",
                                      "reduce_scatter", "allreduce",  "reduce", "gather",
                                      "scatter",        "alltoall"};
constexpr const char* form_names[] = {"blocking", "nonblocking", "persistent"};
constexpr const char* element_names[] = {"int32", "float32"};
constexpr const char* variant_names[] = {"ours", "library", "library_nonblocking"};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t start = 0, end = 0; end != std::string::npos; start = end + 1) {
    end = text.find(',', start);
    words.push_back(text.substr(start, end - start));
  }
  return words;
}

/// Takes the text of a value; returns what would have been acceptable, or nothing if it was.
using Setter = std::function<std::string(const std::string&)>;

template <class Enum, std::size_t count>
bool find(const char* const (&names)[count], const std::string& text, Enum& value) {
  for (std::size_t i = 0; i < count; ++i)
    if (text == names[i]) return value = Enum(i), true;
  return false;
}

template <std::size_t count>
std::string choices(const char* const (&names)[count]) {
  std::string text;
  for (const char* name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

template <class Enum, std::size_t count>
Setter several_of(std::vector<Enum>& target, const char* const (&names)[count]) {
  return [&](const std::string& text) {
    target.clear();
    for (const std::string& word : split(text)) {
      Enum value{};
      if (!find(names, word, value)) return "some of " + choices(names) + ", with commas between";
      target.push_back(value);
    }
    return std::string();
  };
}

template <class Enum, std::size_t count>
Setter one_of(Enum& target, const char* const (&names)[count]) {
  return
      [&](const std::string& text) { return find(names, text, target) ? std::string() : "one of " + choices(names); };
}

template <class Number>
bool read_all(const std::string& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// "64k,4m,1000": bytes.
Setter sizes(std::vector<std::size_t>& target) {
  return [&target](const std::string& text) {
    target.clear();
    for (std::string word : split(text)) {
      const char unit = word.empty() ? '0' : word.back();
      const int shift = unit == 'k' ? 10 : unit == 'm' ? 20 : 0;
      if (shift) word.pop_back();
      std::size_t size = 0;
      if (!read_all(word, size) || size == 0 || size > (std::size_t(1) << 31 >> shift))
        return std::string("numbers of bytes up to 2048m, as 65536 or 64k or 4m, with commas between");
      target.push_back(size << shift);
    }
    return std::string();
  };
}

Setter whole(int& target, int least, int most) {
  return [&target, least, most](const std::string& text) {
    int number = 0;
    if (read_all(text, number) && number >= least && number <= most) return target = number, std::string();
    return "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  };
}

Setter fraction(double& target) {
  return [&target](const std::string& text) {
    double number = 0;
    if (read_all(text, number) && number >= 0 && number <= 1) return target = number, std::string();
    return std::string("a number from 0 to 1");
  };
}

}  // namespace

Parsed parse(const std::vector<std::string>& arguments) {
  Options options;
  Variant only{};
  bool has_only = false;
  const std::map<std::string, Setter> valued = {
      {"--collectives", several_of(options.kinds, kind_names)},
      {"--bytes", sizes(options.bytes)},
      {"--forms", several_of(options.forms, form_names)},
      {"--type", one_of(options.element, element_names)},
      {"--warmup", whole(options.warmup, 0, 1 << 20)},
      {"--rounds", whole(options.rounds, 0, 1 << 20)},
      {"--change", fraction(options.change)},
      {"--only", [&](const std::string& text) { return has_only = true, one_of(only, variant_names)(text); }},
  };
  for (std::size_t at = 0; at < arguments.size(); ++at) {
    const std::string& key = arguments[at];
    if (key == "--help" || key == "-h") {
      options.help = true;
      continue;
    }
    if (key == "--repeat-content") {
      options.change = 0;
      continue;
    }
    const auto found = valued.find(key);
    if (found == valued.end()) return {{}, "there is no option '" + key + "' (--help lists them)"};
    if (++at == arguments.size()) return {{}, key + " wants a value"};
    if (const auto wanted = found->second(arguments[at]); !wanted.empty())
      return {{}, key + " wants " + wanted + ", not '" + arguments[at] + "'"};
  }
  if (has_only) options.only = only;
  if (options.kinds.empty())
    for (std::size_t i = 0; i < std::size(kind_names); ++i) options.kinds.push_back(Kind(i));
  if (options.rounds == 0 && !options.only) return {{}, "--rounds 0 only makes sense with --only"};
  if (options.change > 0 && options.change < 1 && options.element != Element::int32)
    return {{}, "--change changes 16-bit words, which may turn float32 into NaN: use --type int32"};
  return {options, ""};
}

std::string usage() {
  return "collectives: time of collective operations, ours and the MPI library's in turns, results compared\n"
         "  --collectives LIST   " +
         choices(kind_names) +
         " (all)\n"
         "  --bytes LIST         of the whole vector: gathered, to be summed, broadcast; of alltoall a rank's "
         "(64k,4m)\n"
         "  --forms LIST         of our call: blocking, nonblocking, persistent (blocking)\n"
         "  --type T             int32 | float32; sums of float32 are compared within a tolerance, all else byte by "
         "byte (int32)\n"
         "  --rounds N           measured (5);  --warmup N: before that (1)\n"
         "  --only VARIANT       ours | library | library_nonblocking alone, nothing else on the wire between rounds\n"
         "  --repeat-content     the same contribution every time;  --change F: a fraction F of 16-bit words is new "
         "each time "
         "(all)\n";
}

const char* name_of(Kind value) { return kind_names[int(value)]; }
const char* name_of(Form value) { return form_names[int(value)]; }
const char* name_of(Element value) { return element_names[int(value)]; }
const char* name_of(Variant value) { return variant_names[int(value)]; }

bool reduces(Kind kind) {
  return kind == Kind::reduce_scatter_block || kind == Kind::reduce_scatter || kind == Kind::allreduce ||
         kind == Kind::reduce;
}

}  // namespace collectives
