// SPDX-License-Identifier: Apache-2.0
#pragma once
// take_stacks(): the call stacks of all threads of another process of this user.
//
// A thread is stopped only while its registers and the used part of its stack are copied, which takes about 0.1 ms;
// threads are stopped one after the other. ELF and DWARF files are read, and stacks are unwound, from the copies after
// the thread runs again. Alternative considered: a debugger in batch mode, which stops the process while it reads
// symbols, for seconds with a large program.
//
// A stop is visible to the thread in one way: a few system calls (epoll_wait, semop, sigtimedwait, operations on
// sockets with a timeout) return EINTR, as they do after SIGSTOP and SIGCONT; others continue.
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "telemetry/record/snapshot.hpp"

namespace bestride::inline telemetry {

struct StackOptions {
  std::size_t stack_bytes = 512 << 10;           ///< copied of each thread, from its stack pointer; at least one page
  std::size_t most_frames = 512;                 ///< of each thread, from the innermost one; at least 1
  std::chrono::milliseconds stop_limit{50};      ///< of all stops of one process; further threads are left out
  std::chrono::milliseconds thread_wait{250};    ///< until a thread stops; it runs, or is in the kernel, meanwhile
  std::chrono::milliseconds process_wait{2000};  ///< until all threads of one process have stopped
};

struct ThreadStack {
  int tid = 0;
  bool main = false;
  std::string name;                   ///< /proc/PID/task/TID/comm; the program's name unless the thread was given one
  std::vector<FrameSnapshot> frames;  ///< innermost first. Of callers: the address of the call, not of the return.
                                      ///< In memory, not in the file, if the module is no_index
  std::string interpreted;            ///< text of the Python frames, innermost first, as faulthandler writes it; only
                                      ///< of a crash, and "" if there are none
  std::string cut;                    ///< why frames are missing at the outer end; "" if none is
  std::string problem;                ///< why there are no frames; "" if there are some
};

struct ProcessStacks {
  int pid = 0;
  std::string executable;                    ///< as in ModuleSnapshot::path; "" if not known
  std::vector<ThreadStack> threads;          ///< main thread first, then by tid
  std::vector<ModuleSnapshot> modules;       ///< those of the frames; paths as the process sees them
  std::chrono::nanoseconds longest_stop{0};  ///< of one thread, at most
  std::chrono::nanoseconds all_stops{0};     ///< sum over the threads
};

/// Copies and unwinds the stacks of process `pid` of this pid namespace. A stopped process stays stopped, a running
/// one goes on running, and no thread stays traced, even one that can't be interrupted (state D): such a thread gets
/// a `problem`. Errors: no such process; it has ended or ends meanwhile; it is this process; it is a 32-bit program;
/// ptrace is refused, then the text says what would allow it; no libdw in this build. Blocks for at most
/// `process_wait` and the time that unwinding takes. Thread-safe; runs threads of its own. The caller's process gets
/// SIGCHLD, which it must not answer by waiting for any child.
Result<ProcessStacks> take_stacks(int pid, const StackOptions& options = {});

/// Unwinds the stack of the thread whose crash the process `pid`, which has ended, has noted in the file `path`
/// (telemetry/record/crash_file.hpp). `executable` stays empty. Errors, one line each: no such file, or it is not
/// whole, damaged, or of another process; no libdw in this build. Thread-safe.
Result<ProcessStacks> read_crash_stack(const std::string& path, int pid);

/// False in a build without libdw.
bool stacks_available() noexcept;

}  // namespace bestride::inline telemetry
