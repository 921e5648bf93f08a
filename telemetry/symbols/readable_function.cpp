// SPDX-License-Identifier: Apache-2.0
#include <cxxabi.h>

#include <cstdlib>
#include <memory>

#include "telemetry/symbols/symbolizer.hpp"

namespace bestride::inline telemetry {
namespace {

/// "ns::f<int>(char, int) const" -> "ns::f<int>". The parenthesis of the arguments is the last one that is open on the
/// outermost level, apart from those in "operator()" and "(anonymous namespace)".
std::string without_arguments(const std::string& name) {
  int angle = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name.compare(i, 8, "operator") == 0) {
      i += 8;
      while (i < name.size() && (name[i] == '<' || name[i] == '>')) ++i;
      if (name.compare(i, 2, "()") == 0) i += 2;
      --i;
      continue;
    }
    if (name.compare(i, 21, "(anonymous namespace)") == 0) {
      i += 20;
      continue;
    }
    if (name[i] == '<') ++angle;
    if (name[i] == '>') --angle;
    if (name[i] == '(' && angle == 0) {
      // A function local to another one continues: "f(int)::{lambda()#1}::operator()() const".
      int depth = 0;
      std::size_t end = i;
      for (; end < name.size(); ++end) {
        depth += name[end] == '(' ? 1 : name[end] == ')' ? -1 : 0;
        if (depth == 0) break;
      }
      if (name.compare(end + 1, 2, "::") == 0 || name.compare(end + 1, 8, " const::") == 0) {
        i = end;
        continue;
      }
      return name.substr(0, i);
    }
  }
  return name;
}

/// "void f<int>" -> "f<int>": the names of templates begin with the type of their result.
std::string without_result(const std::string& name) {
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name.compare(i, 8, "operator") == 0) break;
    if (name[i] == '<' || name[i] == '(') ++depth;
    if (name[i] == '>' || name[i] == ')') --depth;
    if (name[i] == ' ' && depth == 0) begin = i + 1;
  }
  return name.substr(begin);
}

}  // namespace

std::string readable_function(const std::string& name) {
  // gfortran lower-cases all names, so the upper-case separator is unambiguous.
  if (const std::size_t at = name.find("_MOD_"); name.starts_with("__") && at != std::string::npos && at > 2)
    return name.substr(2, at - 2) + "::" + name.substr(at + 5);
  if (!name.starts_with("_Z")) return name;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 && text ? without_result(without_arguments(text.get())) : name;
}

}  // namespace bestride::inline telemetry
