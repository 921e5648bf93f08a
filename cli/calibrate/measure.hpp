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
  bool complete = false;     ///< the program ran to its end
  bool interrupted = false;  ///< by the user, with Ctrl-C
  bool late = false;         ///< ended at its time limit
  std::string error;         ///< error of the program or the launcher, one line; empty: none
  std::string said;          ///< the first line on stderr
  std::vector<std::pair<std::string, std::string>> more;  ///< other events, in order, each with its arguments
};

/// Starts `command` and reads its output to the end. Calls `on_point(done, total, id)` for every point. While it runs,
/// an interrupt ends the program but not this process. If `limit_s` > 0, the program runs in its own process group
/// without input, and is ended after that time. May throw std::bad_alloc.
MeasureRun follow_measurement(const std::vector<std::string>& command,
                              const std::function<void(int, int, const std::string&)>& on_point, double limit_s = 0);

/// Ends the command if the user interrupted the program.
void end_if_interrupted(const MeasureRun& run);
/// Ends the command if the program did not run to its end. `what`: for example "measuring". `launcher`: its first word.
void end_if_incomplete(const MeasureRun& run, const std::string& what, const std::string& launcher);

}  // namespace bestride::inline cli
