// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/programs/step.hpp"

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace bestride::fuzz {
namespace {

constexpr const char* names[] = {
    "comm_make",       "comm_use",    "comm_free",  "type_make", "type_use",        "type_free",
    "messages",        "exchange",    "collective", "neighbor",  "persistent_make", "persistent_start",
    "persistent_free", "partitioned", "window",     "file",      "complete",        "cancel",
    "errors",          "throwing",    "pack",       "recommit",  "big_receive",     "mismatched",
};
static_assert(std::size(names) == kinds);

[[noreturn]] void refuse(const std::string& line) {
  std::fprintf(stderr, "fuzz_programs: not a program: %s\n", line.c_str());
  std::exit(2);
}

}  // namespace

const char* name_of(Kind kind) { return names[static_cast<int>(kind)]; }

std::string Program::text() const {
  std::ostringstream out;
  out << "program ranks=" << ranks << " threads=" << threads << " buffer=" << buffer << '\n';
  for (const Step& s : steps)
    out << name_of(s.kind) << " seed=" << s.seed << " size=" << s.size << " types=" << s.types << " spell=" << s.spell
        << " pmpi=" << s.pmpi << " pend=" << s.pend << " thread=" << s.thread << " number=" << s.number << '\n';
  return out.str();
}

std::vector<Program> Program::parse(std::string_view text) {
  std::vector<Program> programs;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word[0] == '#') continue;
    Step step;
    const bool header = word == "program";
    if (header) programs.emplace_back();
    if (programs.empty()) refuse(line);
    Program& program = programs.back();
    if (!header) {
      int kind = 0;
      while (kind < kinds && word != names[kind]) ++kind;
      if (kind == kinds) refuse(line);
      step.kind = static_cast<Kind>(kind);
    }
    while (words >> word) {
      const auto equals = word.find('=');
      if (equals == std::string::npos) refuse(line);
      const std::string key = word.substr(0, equals);
      const std::uint64_t value = std::strtoull(word.c_str() + equals + 1, nullptr, 10);
      const int number = static_cast<int>(value);
      if (key == "ranks")
        program.ranks = number;
      else if (key == "threads")
        program.threads = number != 0;
      else if (key == "buffer")
        program.buffer = number != 0;
      else if (key == "seed")
        step.seed = value;
      else if (key == "size")
        step.size = number;
      else if (key == "types")
        step.types = number;
      else if (key == "spell")
        step.spell = number;
      else if (key == "pmpi")
        step.pmpi = number;
      else if (key == "pend")
        step.pend = number;
      else if (key == "thread")
        step.thread = number;
      else if (key == "number")
        step.number = number;
      else
        refuse(line);
    }
    if (!header) program.steps.push_back(step);
  }
  if (programs.empty()) refuse("no line that begins with program");
  return programs;
}

}  // namespace bestride::fuzz
