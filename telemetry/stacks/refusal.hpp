// SPDX-License-Identifier: Apache-2.0
#pragma once
// Why the kernel does not let this process trace another one, and what would allow it.
#include <string>

namespace bestride::inline telemetry {

/// What decides about a refused PTRACE_SEIZE.
struct TraceFacts {
  int pid = 0;
  int error = 0;            ///< errno of ptrace
  int tracer = 0;           ///< pid of the tracer of the process, 0 if it has none
  std::string tracer_name;  ///< its program, "" if not known
  unsigned owner = 0;       ///< effective user of the process
  unsigned user = 0;        ///< effective user of this one
  int yama = -1;            ///< /proc/sys/kernel/yama/ptrace_scope; -1: the kernel has no such file
};
/// Reads /proc. `tid`: the thread that was refused.
TraceFacts trace_facts(int pid, int tid, int error);
/// One line, cause first, then remedy.
std::string refusal_text(const TraceFacts& facts);

}  // namespace bestride::inline telemetry
