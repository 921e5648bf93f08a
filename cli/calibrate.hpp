// SPDX-License-Identifier: Apache-2.0
#pragma once
// `bestride calibrate`: measures this machine once and writes its profile. Goes on where an interrupted run ended.
#include <string>

namespace CLI {
class App;
}

namespace bestride {

struct CalibrateOptions {
  bool quick = false;
  bool restart = false;
  bool gpu = false;     ///< measure the GPU, and fail if there is none
  bool no_gpu = false;  ///< don't; with neither it is measured if it is there
  std::string only;     ///< "pack,send,gpu,collectives": call kinds, the GPU, collectives; empty: all. The others stay as they are in the file
  std::string output;   ///< empty: ~/.config/bestride/profile.json
  std::string mpiexec;  ///< launcher with its arguments; empty: the one of the MPI library, found in PATH
  std::string rails;    ///< NICs of which each local rank may get one: "eth0,eth1"; empty: those that are found; "off": what the file has stays
  int budget = 0;       ///< seconds; 0: 30 with quick, else 300
  int ranks = 4;        ///< MPI ranks that measure collectives
};

/// Returns the process's exit code. Writes progress to stderr and what was measured to stdout.
int calibrate_command(const CalibrateOptions& options);
void add_calibrate(CLI::App& app);

}  // namespace bestride
