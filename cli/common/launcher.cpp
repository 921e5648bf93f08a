// SPDX-License-Identifier: Apache-2.0
#include "cli/common/launcher.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "cli/common/joined_preload.hpp"
#include "cli/common/shell.hpp"

namespace bestride::inline cli {
namespace {

/// True if srun takes the next word as this option's value. Long options that take none, or only one after '=', are
/// listed (srun(1), Slurm 23.11); all others take a value.
bool takes_next_word(const std::string& option) {
  if (!option.starts_with("--")) {
    // Short options may be joined: -lN 2. The first one that takes a value takes the rest of the word, if there is any.
    const std::size_t at = option.find_first_of("AaBCcDdeGgiJLMmNnopqrStTWwx", 1);
    return at != std::string::npos && at + 1 == option.size();
  }
  for (const char* flag : {"--bcast",
                           "--compress",
                           "--contiguous",
                           "--disable-status",
                           "--exact",
                           "--exclusive",
                           "--external",
                           "--get-user-env",
                           "--gres-flags",
                           "--help",
                           "--hold",
                           "--immediate",
                           "--interactive",
                           "--kill-on-bad-exit",
                           "--label",
                           "--multi-prog",
                           "--nice",
                           "--no-allocate",
                           "--no-kill",
                           "--overcommit",
                           "--overlap",
                           "--oversubscribe",
                           "--preserve-env",
                           "--propagate",
                           "--pty",
                           "--quiet",
                           "--quit-on-interrupt",
                           "--reboot",
                           "--resv-ports",
                           "--send-libs",
                           "--spread-job",
                           "--stepmgr",
                           "--test-only",
                           "--unbuffered",
                           "--usage",
                           "--use-min-nodes",
                           "--verbose",
                           "--version",
                           "--wait-all-nodes",
                           "--x11"})
    if (option == flag) return false;
  return option.find('=') == std::string::npos;
}

/// The value of `--export=...` or `--export ...` among srun's own options, which come before the program; "" if there
/// is none.
std::string export_option(const std::vector<std::string>& command) {
  for (std::size_t i = 1; i < command.size() && command[i].starts_with("-"); ++i) {
    if (command[i].starts_with("--export=")) return command[i].substr(9);
    if (command[i] == "--export" && i + 1 < command.size()) return command[i + 1];
    if (takes_next_word(command[i])) ++i;
  }
  return "";
}

std::vector<std::string> entries_of(const std::string& list) {
  std::vector<std::string> entries;
  for (std::size_t from = 0; from <= list.size();) {
    const std::size_t end = std::min(list.find(',', from), list.size());
    entries.push_back(list.substr(from, end - from));
    from = end + 1;
  }
  return entries;
}

bool passes_all(const std::string& list) {
  const std::vector<std::string> entries = entries_of(list);
  return std::find(entries.begin(), entries.end(), "ALL") != entries.end();
}

/// The names in `set` that `passed` (entries "NAME" or "NAME=value") does not have.
std::vector<std::string> missing(const Environment& set, const std::vector<std::string>& passed) {
  std::vector<std::string> names;
  for (const auto& [name, value] : set)
    if (std::none_of(passed.begin(), passed.end(),
                     [&name = name](const std::string& entry) { return entry.substr(0, entry.find('=')) == name; }))
      names.push_back(name);
  return names;
}

std::string joined(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

std::vector<std::string> prepare_srun(const std::vector<std::string>& command, Environment& set) {
  if (const std::string option = export_option(command); !option.empty()) {
    if (passes_all(option)) return {};
    const std::vector<std::string> names = missing(set, entries_of(option));
    if (names.empty()) return {};
    const bool loaded = std::find(names.begin(), names.end(), "LD_PRELOAD") == names.end();
    return {"srun --export=" + option + " passes only what it names, so " +
            (loaded ? "the library's variables would not be set" : "the library would not be loaded") +
            "; use --export=ALL" + (option == "NONE" ? "" : "," + option) + " or add " + joined(names, ",")};
  }
  const char* inherited = std::getenv("SLURM_EXPORT_ENV");
  if (!inherited || passes_all(inherited)) return {};
  const std::string before = inherited;
  set.emplace_back("SLURM_EXPORT_ENV", before.empty() || before == "NONE" ? "ALL" : "ALL," + before);
  return {"SLURM_EXPORT_ENV=" + before + " would keep the library from the ranks; it is set to " + set.back().second +
          " for this command"};
}

std::vector<std::string> prepare_openmpi(const std::vector<std::string>& command, const Environment& set) {
  std::vector<std::string> passed;
  for (std::size_t i = 1; i < command.size(); ++i)
    if (command[i - 1] == "-x") passed.push_back(command[i]);
  const std::vector<std::string> names = missing(set, passed);
  if (names.empty()) return {};
  return {"Open MPI's mpirun passes the environment to this host only; for other hosts add -x " +
          joined(names, " -x ")};
}

/// What a program named mpiexec or mpirun starts, by the name of its helper, which it contains: MPICH and Intel MPI
/// install copies of Hydra under these names, or a script that starts one; Open MPI 5 a wrapper of prterun.
LauncherKind kind_in_content(const std::string& path) {
  constexpr std::size_t most_bytes = 16 << 20;
  std::ifstream file(path, std::ios::binary);
  std::string content(most_bytes, '\0');
  file.read(content.data(), static_cast<std::streamsize>(most_bytes));
  content.resize(static_cast<std::size_t>(file.gcount()));
  const auto has = [&](std::string_view word) { return content.find(word) != content.npos; };
  if (has("hydra_pmi_proxy") || has("mpiexec.hydra")) return LauncherKind::hydra;
  if (has("ompirun") || has("prterun") || has("orterun")) return LauncherKind::openmpi;
  return LauncherKind::unknown;
}

}  // namespace

LauncherKind launcher_kind(const std::string& path) {
  const std::string file = base_name(resolved(path));
  if (file == "srun") return LauncherKind::srun;
  if (file.find("hydra") != std::string::npos) return LauncherKind::hydra;
  for (const char* name : {"orterun", "prterun", "prun", "mpirun.openmpi", "mpiexec.openmpi"})
    if (file == name) return LauncherKind::openmpi;
  return file.starts_with("mpiexec") || file.starts_with("mpirun") ? kind_in_content(path) : LauncherKind::unknown;
}

std::string name(LauncherKind kind) {
  switch (kind) {
    case LauncherKind::hydra: return "Hydra, the mpiexec of MPICH and Intel MPI";
    case LauncherKind::openmpi: return "Open MPI's mpirun";
    case LauncherKind::srun: return "Slurm's srun";
    case LauncherKind::unknown: break;
  }
  return "";
}

std::vector<std::string> prepare_launcher(std::vector<std::string>& command, Environment& set) {
  std::vector<std::string> notes = join_preload(command, set);
  // Something may stand before the launcher: env, time, numactl.
  for (std::size_t i = 0; i < command.size(); ++i) {
    const LauncherKind kind = launcher_kind(find_program(command[i]));
    if (kind == LauncherKind::unknown) continue;
    const std::vector<std::string> behind(command.begin() + static_cast<std::ptrdiff_t>(i), command.end());
    std::vector<std::string> more;
    if (kind == LauncherKind::srun) more = prepare_srun(behind, set);
    if (kind == LauncherKind::openmpi) more = prepare_openmpi(behind, set);
    notes.insert(notes.end(), more.begin(), more.end());
    break;
  }
  return notes;
}

}  // namespace bestride::inline cli
