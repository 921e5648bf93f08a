// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/doctor.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/variables.hpp"
#include "cli/common/command.hpp"
#include "cli/doctor/checks.hpp"

namespace bestride {
namespace {

void doctor(const std::string& program) {
  Findings findings;
  Settings::get_without_saying();  // check_settings() reports errors in the settings
  const Installation installation = Installation::find();
  check_installation(findings, installation);
  const LauncherKind launcher = check_launcher(findings);
  check_profile(findings, program.empty() ? check_installed_mpi(findings, installation)
                                          : check_program(findings, installation, program, launcher));
  check_gpu(findings);
  check_topology(findings);
  check_rails(findings);
  check_settings(findings);
  if (findings.problems() == 0) return;
  std::fflush(stdout);
  finish(exit_attention);
}

}  // namespace

void add_doctor(CLI::App& app) {
  const auto program = std::make_shared<std::string>();
  CLI::App* const command =
      app.add_subcommand("doctor", "look for what would keep the library from working here, or with a program");
  command->add_option("program", *program, "program the job runs")->type_name("PROGRAM");
  command->callback([program] { doctor(*program); });
}

}  // namespace bestride
