// SPDX-License-Identifier: Apache-2.0
#pragma once
// Findings: the output of the doctor, one line each: ok, note (information, no action needed) or problem (cause and
// remedy).
#include <string>

namespace bestride {

class Findings {
 public:
  void ok(const std::string& what, const std::string& text) { say("ok", what, text); }
  void note(const std::string& what, const std::string& text) { say("note", what, text); }
  void problem(const std::string& what, const std::string& text);
  int problems() const noexcept { return problems_; }

 private:
  static void say(const char* severity, const std::string& what, const std::string& text);
  int problems_ = 0;
};

}  // namespace bestride
