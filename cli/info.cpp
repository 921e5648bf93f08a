// SPDX-License-Identifier: Apache-2.0
#include "cli/info.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/variables.hpp"
#include "cli/command.hpp"
#include "cli/gpu.hpp"
#include "cli/host.hpp"
#include "cli/installation.hpp"
#include "kernels/cuda/image.hpp"
#include "kernels/packer.hpp"
#include "perfmodel/profile.hpp"

namespace bestride {
namespace {

struct InfoOptions {
  bool environment = false, markdown = false;
};

void say(const char* what, const std::string& text) { std::printf("%-16s %s\n", what, text.c_str()); }

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

void print_environment() {
  for (const Variable& variable : variables()) {
    const VariableValue value = Settings::get().value(variable.name);
    std::printf("%s=%s\n    from %s; default '%s'", variable.name, value.text.c_str(), source_text(value).c_str(), variable.default_value);
    if (*variable.choices) std::printf("; one of %s", variable.choices);
    std::printf("\n    %s\n", variable.help);
  }
}

/// The path of the profile in effect, or why the built-in one is.
std::string profile_text() {
  const std::string path = find_profile_path();
  if (path.empty()) return "built-in ('bestride calibrate' measures this machine)";
  const auto profile = MachineProfile::load(path);
  return profile ? path : "built-in: " + profile.error().text;
}

void print_installation() {
  const Installation installation = Installation::find();
  say("bestride", BESTRIDE_VERSION);
  say("library", installation.front.empty() ? installation.why_no_front()
                                            : installation.front + " (" + (installation.version.empty() ? "can't be loaded" : installation.version) + ")");
  std::string abis;
  for (const Back& back : installation.backs) abis += (abis.empty() ? "" : " ") + back.abi;
  say("MPI ABIs", abis.empty() ? "none" : abis);
  say("instruction set", std::string(name(widest_isa())) + ", in use " + std::string(name(PackerOptions::from_settings().isa)));
  std::string families;
  for (const Variable& variable : variables())
    if (std::string(variable.name) == "BESTRIDE_KERNEL")
      for (const char* c = variable.choices; *c; ++c) families += *c == '|' ? ' ' : *c;
  say("kernel families", families);
  say("GPU kernels", cuda::has_kernels() ? "in this build" : "left out of this build: nvcc was not found when it was made");
  say("CUDA driver", gpu_text(ask_about_gpus()));
  say("profile", profile_text());
  say("topology", processors_text());
  const std::string& codes = Settings::get().text("BESTRIDE_QUANTIZE");
  say("approximate", codes == "off" ? "nothing" : "large allgathers and sums of floating-point numbers between nodes: " + codes + " codes (BESTRIDE_QUANTIZE)");
  const Result<RailsHere> rails = rails_here();
  say("rails", (rails ? rails_text(*rails) : rails.error().text) + " (up here: " + nics_text() + ")");
}

}  // namespace

void add_info(CLI::App& app) {
  const auto options = std::make_shared<InfoOptions>();
  CLI::App* const command = app.add_subcommand("info", "what is installed and in effect");
  CLI::Option* const environment = command->add_flag("--env", options->environment, "every variable: value, where it is from, default, help");
  command->add_flag("--markdown", options->markdown, "the variables as a documentation page")->needs(environment);
  command->callback([options] {
    if (options->markdown)
      std::fputs(variables_page().c_str(), stdout);
    else if (options->environment)
      print_environment();
    else
      print_installation();
  });
}

}  // namespace bestride
