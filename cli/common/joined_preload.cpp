// SPDX-License-Identifier: Apache-2.0
#include "cli/common/joined_preload.hpp"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "cli/common/shell.hpp"

namespace bestride::inline cli {
namespace {

using Words = std::vector<std::string>;
constexpr std::string_view variable = "LD_PRELOAD", assignment = "LD_PRELOAD=", own_name = "libbestride.so";

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// "-genv" for "--genv", which Hydra takes, too.
std::string_view with_one_dash(std::string_view option) { return option.starts_with("--") ? option.substr(1) : option; }

class Joining {
 public:
  Joining(Words& command, const Environment& set) : command_(command), set_(set) {
    for (const auto& [name, value] : set)
      if (name == variable) library_ = own_library(value);
  }

  Words run() {
    for (std::size_t i = 0; i < command_.size(); ++i) {
      if (base_name(command_[i]) == "env") i = join_env(i);
      if (i >= command_.size()) break;
      join_option(i);
    }
    pass_through_hydra();
    for (const std::string& word : command_)
      if (word.find(assignment) != word.npos && word.find(own_name) == word.npos)
        notes_.push_back("'" + word + "' sets LD_PRELOAD, so the library may not be loaded; add " + library_ +
                         " to its value");
    return std::move(notes_);
  }

 private:
  /// The entry of a list that is this library.
  static std::string own_library(const std::string& list) {
    const std::size_t at = list.find(own_name);
    if (at == list.npos) return "";
    const std::size_t before = list.find_last_of(" :", at), begin = before == list.npos ? 0 : before + 1;
    return list.substr(begin, at + own_name.size() - begin);
  }

  /// Puts the library before a value of LD_PRELOAD that begins at `at` in `word`.
  void join_at(std::string& word, std::size_t at) {
    const std::string value = word.substr(at, word.find(',', at) - at);
    if (value.find(own_name) == value.npos) word.insert(at, library_ + (value.empty() ? "" : ":"));
  }

  /// In a list "A=1,LD_PRELOAD=x" that begins at `from`.
  void join_in_list(std::string& word, std::size_t from) {
    for (std::size_t at = from; at < word.size(); at = word.find(',', at) + 1) {
      if (word.compare(at, assignment.size(), assignment) == 0) join_at(word, at + assignment.size());
      if (word.find(',', at) == word.npos) break;
    }
  }

  /// An option that sets a variable: in the same word, in the next one, or with the value in the next but one.
  void join_option(std::size_t i) {
    const std::string option = command_[i];
    for (const std::string_view prefix : {"--export=", "--env="})
      if (option.starts_with(prefix)) return join_in_list(command_[i], prefix.size());
    if (i + 1 >= command_.size() || !is_one_of(with_one_dash(option), {"-genv", "-env", "-x", "-e", "-E", "-export"}))
      return;
    if (command_[i + 1] == variable && i + 2 < command_.size() && is_one_of(with_one_dash(option), {"-genv", "-env"}))
      join_at(command_[i + 2], 0);
    else
      join_in_list(command_[i + 1], 0);
  }

  /// `env` at `begin`, with its options and assignments. Returns the place of the program.
  std::size_t join_env(std::size_t begin) {
    bool clears = false, removes = false;
    std::size_t at = begin + 1, first_assignment = 0;
    for (; at < command_.size(); ++at) {
      const std::string& word = command_[at];
      const bool is_option = word.starts_with('-');
      if (!is_option && word.find('=') == word.npos) break;
      if (!is_option && first_assignment == 0) first_assignment = at;
      if (is_one_of(word, {"-", "-i", "--ignore-environment"})) clears = true;
      removes = removes || is_one_of(word, {"-uLD_PRELOAD", "--unset=LD_PRELOAD"});
      if (is_one_of(word, {"-u", "--unset"}))
        removes = removes || (at + 1 < command_.size() && command_[at + 1] == variable);
      if (is_one_of(word, {"-u", "--unset", "-C", "--chdir", "-S", "--split-string"})) ++at;
    }
    if (at >= command_.size() || find_program(command_[at]).empty()) return begin;  // a word of another program
    if (removes) notes_.push_back("'env -u LD_PRELOAD' removes the library; leave that out");
    Words own;
    for (std::size_t i = first_assignment; i > 0 && i < at; ++i) {
      if (command_[i].starts_with(assignment)) join_at(command_[i], assignment.size());
      own.push_back(command_[i].substr(0, command_[i].find('=')));
    }
    if (!clears) return at;
    Words more;
    for (const auto& [name, value] : set_)
      if (std::find(own.begin(), own.end(), name) == own.end()) more.push_back(name + "=" + value);
    const std::size_t where = first_assignment > 0 ? first_assignment : at;
    command_.insert(command_.begin() + static_cast<std::ptrdiff_t>(where), more.begin(), more.end());
    return at + more.size();
  }

  /// Hydra passes what -genv sets whatever else it is told to pass, and later values replace earlier ones.
  void pass_through_hydra() {
    const auto restricts = [](const std::string& word) {
      return is_one_of(with_one_dash(word), {"-genvnone", "-genvlist", "-envnone", "-envlist"});
    };
    if (std::none_of(command_.begin(), command_.end(), restricts)) return;
    const auto launcher = std::find_if(command_.begin(), command_.end(), [](const std::string& word) {
      return launcher_kind(find_program(word)) == LauncherKind::hydra;
    });
    if (launcher == command_.end()) return;
    Words more;
    for (const auto& [name, value] : set_) more.insert(more.end(), {"-genv", name, value});
    command_.insert(launcher + 1, more.begin(), more.end());
  }

  Words& command_;
  const Environment& set_;
  std::string library_;
  Words notes_;
};

}  // namespace

std::vector<std::string> join_preload(std::vector<std::string>& command, const Environment& set) {
  return Joining(command, set).run();
}

}  // namespace bestride::inline cli
