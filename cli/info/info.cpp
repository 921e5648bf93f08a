// SPDX-License-Identifier: Apache-2.0
#include "cli/info/info.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/variables.hpp"
#include "cli/common/command.hpp"
#include "cli/common/gpu.hpp"
#include "cli/common/host.hpp"
#include "cli/common/installation.hpp"
#include "kernels/cuda/driver/image.hpp"
#include "kernels/packer.hpp"
#include "perfmodel/profile/profile.hpp"

namespace bestride {
namespace {

struct InfoOptions {
  bool environment = false, markdown = false;
};

void print_line(const char* what, const std::string& text) { std::printf("%-16s %s\n", what, text.c_str()); }

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
  return profile ? path : "built-in: " + profile.error().text;
}

void print_installation() {
  const Installation installation = Installation::find();
  print_line("bestride", BESTRIDE_VERSION);
  print_line("library", installation.front.empty()
                            ? installation.why_no_front()
                            : installation.front + " (" +
                                  (installation.version.empty() ? "can't be loaded" : installation.version) + ")");
  std::string abis;
  for (const Back& back : installation.backs) abis += (abis.empty() ? "" : " ") + back.abi;
  print_line("MPI ABIs", abis.empty() ? "none" : abis);
  print_line("instruction set",
             std::string(name(widest_isa())) + ", in use " + std::string(name(PackerOptions::from_settings().isa)));
  std::string families;
  for (const Variable& variable : variables())
    if (std::string(variable.name) == "BESTRIDE_KERNEL")
      for (const char* c = variable.choices; *c; ++c) families += *c == '|' ? ' ' : *c;
  print_line("kernel families", families);
  print_line("GPU kernels",
             cuda::has_kernels() ? "in this build" : "left out of this build: nvcc was not found when it was made");
  print_line("CUDA driver", gpu_text(ask_about_gpus()));
  print_line("profile", profile_text());
  print_line("topology", processors_text());
  const std::string& codes = Settings::get().text("BESTRIDE_QUANTIZE");
  print_line("approximate", codes == "off" ? "nothing"
                                           : "large allgathers and sums of floating-point numbers between nodes: " +
                                                 codes + " codes (BESTRIDE_QUANTIZE)");
  const Result<RailsHere> rails = rails_here();
  print_line("rails", (rails ? rails_text(*rails) : rails.error().text) + " (up here: " + nics_text() + ")");
}

}  // namespace

void add_info(CLI::App& app) {
  const auto options = std::make_shared<InfoOptions>();
  CLI::App* const command = app.add_subcommand("info", "what is installed and in effect");
  CLI::Option* const environment =
      command->add_flag("--env", options->environment, "every variable: value, where it is from, default, help");
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
