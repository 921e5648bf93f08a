// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor/doctor.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/variables.hpp"
#include "cli/common/command.hpp"
#include "cli/doctor/checks.hpp"
#include "telemetry/report/json_writer.hpp"

namespace bestride::inline cli {
namespace {

struct DoctorOptions {
  std::vector<std::string> job;  ///< the program and its arguments
  bool json = false;
};

void print_json(const Findings& findings) {
  JsonWriter json;
  json.open_object().member("format", "bestride-doctor").member("version", 1).member("problems", findings.problems());
  json.key("findings").open_array();
  for (const Finding& one : findings.all())
    json.open_object()
        .member("severity", one.severity)
        .member("check", one.check)
        .member("text", one.text)
        .close_object();
  json.close_array().close_object();
  std::fputs(json.text().c_str(), stdout);
}

void print_verdict(int problems) {
  if (problems == 0)
    std::printf("no problem found\n");
  else
    std::printf("%d %s found; each has its remedy in its line\n", problems, problems == 1 ? "problem" : "problems");
}

void doctor(const DoctorOptions& options) {
  Findings findings(/*print=*/!options.json);
  Settings::get_silently();  // check_settings() reports errors in the settings
  const Installation installation = Installation::find();
  check_installation(findings, installation);
  check_preload(findings, installation);
  const LauncherKind launcher = check_launcher(findings);
  std::string mpi;
  if (options.job.empty()) {
    mpi = check_installed_mpi(findings, installation);
  } else {
    const std::optional<std::string> of_python = check_python(findings, installation, options.job);
    mpi = of_python ? *of_python : check_program(findings, installation, options.job[0], launcher);
  }
  check_profile(findings, mpi);
  check_kernel(findings);
  check_gpu(findings);
  check_topology(findings);
  check_rails(findings);
  check_settings(findings);
  options.json ? print_json(findings) : print_verdict(findings.problems());
  if (findings.problems() == 0) return;
  std::fflush(stdout);
  finish(exit_attention);
}

}  // namespace

void add_doctor(CLI::App& app) {
  const auto options = std::make_shared<DoctorOptions>();
  CLI::App* const command = app.add_subcommand("doctor", "check whether the library works here, or with a program");
  command
      ->add_option("program", options->job,
                   "program the job runs, with its arguments; -- before them if one begins with -")
      ->type_name("PROGRAM");
  command->add_flag("--json", options->json, "as JSON");
  command->callback([options] { doctor(*options); });
}

}  // namespace bestride::inline cli
