// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs the measuring program under its launcher and follows its events (perfmodel/calibrate/common/events.hpp).
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace bestride::inline cli {

struct MeasureRun {
  std::string configuration;  ///< "cpu | mpi library | host class | version"; empty: the program did not report it
  bool two_hosts = false;
  bool preloaded = false;   ///< collectives: the library was preloaded
  std::string gpu;          ///< name; empty: no GPU is measured
  bool stand_in = false;    ///< the GPU is a stand-in driver
  std::string gpu_problem;  ///< why the GPU was not measured, or not completely; empty: no problem
  int points = 0;
  int known = 0;  ///< points measured by an earlier run
  int measured = 0;
  int left_out = 0;  ///< points skipped because of the time limit
  double seconds = 0;
  bool complete = false;   ///< the program ran to its end
  int interrupted = 0;     ///< the signal that asked this process to end; 0: none did
  bool late = false;       ///< ended at its time limit
  bool unstarted = false;  ///< ended because the launcher did not start the program in time
  std::string error;       ///< error of the program or the launcher, one line; empty: none
  std::string said;        ///< the first line on stderr
  std::vector<std::pair<std::string, std::string>> more;  ///< other events, in order, each with its arguments
};

/// Seconds.
struct MeasureLimits {
  double start;      ///< until the program writes its first line
  double total = 0;  ///< until it ends; 0: none. If there is one, it replaces the other
};

/// Starts `command`, in a session of its own without input, and reads its output to the end. Calls `on_point(done,
/// total, id)` for every point. SIGINT, SIGTERM and SIGHUP end the command and everything that it has started here, but
/// not this process, and so does a limit. May throw std::bad_alloc.
MeasureRun follow_measurement(const std::vector<std::string>& command, const MeasureLimits& limits,
                              const std::function<void(int, int, const std::string&)>& on_point);

/// Ends the command if the user interrupted the program.
void end_if_interrupted(const MeasureRun& run);
/// Ends the command if the program did not run to its end. `what`: for example "measuring". `launcher`: its first word.
void end_if_incomplete(const MeasureRun& run, const std::string& what, const std::string& launcher);

}  // namespace bestride::inline cli
