// SPDX-License-Identifier: Apache-2.0
#pragma once
// `bestride calibrate`: measures this machine once and writes its profile. Resumes an interrupted run.
#include <string>

namespace CLI {
class App;
}

namespace bestride::inline cli {

struct CalibrateOptions {
  bool quick = false, thorough = false;
  bool restart = false;
  bool gpu = false;     ///< measure the GPU, and fail if there is none
  bool no_gpu = false;  ///< do not measure the GPU; if neither is set, it is measured if present
  std::string only;  ///< "pack,send,gpu,collectives": kinds of calls, the GPU, collectives; empty: all. The file keeps
                     ///< its values for the others
  std::string output;   ///< empty: profile_path_to_write()
  std::string mpiexec;  ///< launcher with its arguments; empty: the launcher of the MPI library, found in PATH
  std::string rails;    ///< NICs of which each local rank may get one: "eth0,eth1"; empty: those that are found; "off":
                        ///< keep the values of the file
  double patience = 60;  ///< seconds that the launcher has until it has started the measuring program
  int budget = 0;        ///< seconds; 0: 30 with `quick`, 300 with `thorough`, else 85
  int ranks = 0;         ///< MPI ranks that measure collectives; 0: not given
  int ranks_between_hosts() const noexcept { return ranks > 0 ? ranks : 4; }
};

/// Returns the exit code of the process. Writes progress to stderr and the measured values to stdout.
int calibrate_command(const CalibrateOptions& options);
void add_calibrate(CLI::App& app);

}  // namespace bestride::inline cli
