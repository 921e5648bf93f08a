// SPDX-License-Identifier: Apache-2.0
// The doctor's check of LD_PRELOAD. The dynamic linker has preloaded into this process what it can, so each library is
// looked for here.

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "cli/common/preload.hpp"
#include "cli/common/shell.hpp"
#include "cli/doctor/checks.hpp"

namespace bestride::inline cli {
namespace {

constexpr const char* preload_check = "preload";

bool is_loaded(const std::string& library) {
  void* const object = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (object) ::dlclose(object);
  return object;
}

/// "" if the library can be preloaded and is no other installation's.
std::string problem_of(const std::string& library, const Installation& installation) {
  const std::string names = "LD_PRELOAD names " + library + ", ";
  if (!is_loaded(library)) {
    const bool is_absent = library.find('/') != std::string::npos && ::access(library.c_str(), F_OK) != 0;
    return names + (is_absent ? "which is not there" : "which the dynamic linker can't load") +
           ", so programs start without it; correct LD_PRELOAD or unset it";
  }
  if (base_name(library) != base_name(installation.preload) || installation.preload.empty() ||
      resolved(library) == resolved(installation.preload))
    return "";
  return names + "of another installation than this command, whose library is " + installation.preload +
         "; unset LD_PRELOAD, or use the command of that installation";
}

}  // namespace

void check_preload(Findings& findings, const Installation& installation) {
  const int before = findings.problems();
  for (const std::string& library : preloaded())
    if (const std::string problem = problem_of(library, installation); !problem.empty())
      findings.problem(preload_check, problem);
  if (findings.problems() == before && !preloaded().empty())
    findings.ok(preload_check, "LD_PRELOAD=" + std::string(std::getenv("LD_PRELOAD")) + " can be preloaded");
}

}  // namespace bestride::inline cli
