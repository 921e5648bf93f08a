// SPDX-License-Identifier: Apache-2.0
#pragma once
// Findings: the output of the doctor, one line each: ok, note (information, no action needed) or problem (cause and
// remedy).
#include <string>
#include <vector>

namespace bestride::inline cli {

struct Finding {
  std::string severity;  ///< "ok", "note", "problem"
  std::string check;     ///< "library", "mpi", "profile", ...
  std::string text;
};

class Findings {
 public:
  /// `print`: each finding is written to stdout as soon as it is known, with its severity in color on a terminal
  /// unless NO_COLOR is set (https://no-color.org).
  explicit Findings(bool print);
  void ok(const std::string& check, const std::string& text) { add("ok", check, text); }
  void note(const std::string& check, const std::string& text) { add("note", check, text); }
  void problem(const std::string& check, const std::string& text) { add("problem", check, text); }
  const std::vector<Finding>& all() const noexcept { return all_; }
  int problems() const noexcept;

 private:
  void add(const char* severity, const std::string& check, const std::string& text);

  bool print_, color_;
  std::vector<Finding> all_;
};

}  // namespace bestride::inline cli
