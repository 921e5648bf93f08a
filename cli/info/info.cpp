// SPDX-License-Identifier: Apache-2.0
#include "cli/info/info.hpp"

#include <CLI/CLI.hpp>
#include <cctype>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/variables.hpp"
#include "cli/common/command.hpp"
#include "cli/common/gpu.hpp"
#include "cli/common/host.hpp"
#include "cli/common/installation.hpp"
#include "kernels/cuda/driver/image.hpp"
#include "kernels/packer.hpp"
#include "perfmodel/profile/machine.hpp"
#include "perfmodel/profile/profile.hpp"
#include "telemetry/report/json_writer.hpp"

namespace bestride::inline cli {
namespace {

struct InfoOptions {
  bool environment = false, markdown = false, json = false;
};

std::string source_text(const VariableValue& value) {
  switch (value.source) {
    case VariableSource::environment: return "environment";
    case VariableSource::config_file:
    case VariableSource::user_file:
    case VariableSource::system_file: return value.file;
    case VariableSource::built_in: break;
  }
  return "default";
}

void print_environment_as_json() {
  JsonWriter json;
  json.open_object().member("format", "bestride-variables").member("version", 1).key("variables").open_array();
  for (const Variable& variable : variables()) {
    const VariableValue value = Settings::get().value(variable.name);
    json.open_object()
        .member("name", variable.name)
        .member("value", value.text)
        .member("source", source_text(value))
        .member("default", variable.default_value)
        .member("choices", variable.choices)
        .member("help", variable.help)
        .close_object();
  }
  json.close_array().close_object();
  std::fputs(json.text().c_str(), stdout);
}

void print_environment() {
  for (const Variable& variable : variables()) {
    const VariableValue value = Settings::get().value(variable.name);
    std::printf("%s=%s\n    from %s; default '%s'", variable.name, value.text.c_str(), source_text(value).c_str(),
                variable.default_value);
    if (*variable.choices) std::printf("; one of %s", variable.choices);
    std::printf("\n    %s\n", variable.help);
  }
}

/// The path of the profile in effect, or why the built-in profile is used.
std::string profile_text() {
  const std::string path = find_profile_path();
  if (path.empty()) return "built-in ('bestride calibrate' measures this machine)";
  const auto profile = MachineProfile::load(path);
  if (!profile) return "built-in: " + profile.error().text;
  const std::string stale = why_stale(profile->fingerprint, fingerprint_here(""));
  return stale.empty() ? path : "built-in: " + path + ": " + stale;
}

/// What is installed and in effect: a name and a text each.
std::vector<std::pair<std::string, std::string>> installation_lines() {
  std::vector<std::pair<std::string, std::string>> lines;
  const auto add = [&lines](const char* name, const std::string& text) { lines.emplace_back(name, text); };
  const Installation installation = Installation::find();
  add("bestride", BESTRIDE_VERSION);
  add("library", installation.preload.empty()
                     ? installation.why_no_preload()
                     : installation.preload + " (" +
                           (installation.version.empty() ? "can't be loaded" : installation.version) + ")");
  std::string abis;
  for (const Backend& back : installation.backends) abis += (abis.empty() ? "" : " ") + back.abi;
  add("MPI ABIs", abis.empty() ? "none" : abis);
  add("instruction set",
      std::string(name(widest_isa())) + ", in use " + std::string(name(PackerOptions::from_settings().isa)));
  std::string families;
  for (const Variable& variable : variables())
    if (std::string(variable.name) == "BESTRIDE_FORCE=kernel")
      for (const char* c = variable.choices; *c; ++c) families += *c == '|' ? ' ' : *c;
  add("kernel families", families);
  add("GPU kernels",
      cuda::has_kernels() ? "in this build" : "left out of this build: nvcc was not found when it was made");
  add("CUDA driver", gpu_text(ask_about_gpus()));
  add("profile", profile_text());
  add("topology", processors_text());
  const std::string& codes = Settings::get().text("BESTRIDE_QUANTIZE");
  add("approximate", codes == "off" ? "nothing"
                                    : "large allgathers and sums of floating-point numbers between nodes: " + codes +
                                          " codes (BESTRIDE_QUANTIZE)");
  const Result<RailsHere> rails = rails_here();
  add("rails", (rails ? rails_text(*rails) : rails.error().text) + " (up here: " + nics_text() + ")");
  return lines;
}

void print_installation() {
  for (const auto& [name, text] : installation_lines()) std::printf("%-16s %s\n", name.c_str(), text.c_str());
}

void print_installation_as_json() {
  JsonWriter json;
  json.open_object().member("format", "bestride-info").member("version", 1);
  for (auto [name, text] : installation_lines()) {
    for (char& c : name) c = c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    json.member(name, text);
  }
  json.close_object();
  std::fputs(json.text().c_str(), stdout);
}

}  // namespace

void add_info(CLI::App& app) {
  const auto options = std::make_shared<InfoOptions>();
  CLI::App* const command = app.add_subcommand("info", "what is installed and in effect");
  CLI::Option* const environment =
      command->add_flag("--env", options->environment, "every variable: value, where it is from, default, help");
  CLI::Option* const markdown =
      command->add_flag("--markdown", options->markdown, "the variables as a documentation page")->needs(environment);
  command->add_flag("--json", options->json, "as JSON")->excludes(markdown);
  command->callback([options] {
    if (options->markdown)
      std::fputs(variables_page().c_str(), stdout);
    else if (options->environment)
      options->json ? print_environment_as_json() : print_environment();
    else
      options->json ? print_installation_as_json() : print_installation();
  });
}

}  // namespace bestride::inline cli
