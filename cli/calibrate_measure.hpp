// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs the measuring program under its launcher and follows its events (perfmodel/measure/main.cpp lists them).
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace bestride {

struct MeasureRun {
  std::string configuration;  ///< "cpu | mpi library | host class | version"; empty: it never came so far
  bool two_hosts = false;
  bool preloaded = false;   ///< collectives: the library was in front of MPI
  std::string gpu;          ///< name; empty: none is measured
  bool stand_in = false;    ///< it is none: a stand-in driver
  std::string gpu_trouble;  ///< why no GPU, or not all of it, was measured; empty: nothing to say
  int points = 0;
  int known = 0;      ///< measured by an earlier run
  int measured = 0;
  int left_out = 0;   ///< for lack of time
  double seconds = 0;
  bool complete = false;     ///< the program came to its end
  bool interrupted = false;  ///< by the user, with Ctrl-C
  bool late = false;         ///< it was ended at its time limit
  std::string error;         ///< what the program or the launcher said, one line; empty: nothing
  std::string said;          ///< the first line on stderr
  std::vector<std::pair<std::string, std::string>> more;  ///< events that are not above, in order, with what follows each
};

/// Starts `command` and reads to its end. `on_point(done, total, id)` for every point. While it runs, an interrupt ends the
/// program but not this process. `limit_s`: with more than 0 it is a process group of its own without input, which is ended then. May throw std::bad_alloc.
MeasureRun follow_measurement(const std::vector<std::string>& command, const std::function<void(int, int, const std::string&)>& on_point,
                              double limit_s = 0);

}  // namespace bestride
