// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the kernel tells of a process in /proc. Reads files only; no access to the process itself.
#include <cstdint>
#include <string>

namespace bestride::inline telemetry {

struct RecordHeader;

struct ProcessStatus {
  bool exists = false;
  int parent = 0;                ///< pid
  char state = '?';              ///< R running, S sleeping, D uninterruptible, T stopped, t traced, Z zombie
  std::uint64_t start_time = 0;  ///< clock ticks after the start of the system, the same in all time namespaces
  std::uint64_t cpu_time = 0;    ///< clock ticks, user and system
};
/// /proc/PID/stat, or of one thread if `tid` is not 0.
ProcessStatus process_status(int pid, int tid = 0) noexcept;
/// What a process has used so far. Equal values in two readings mean that it did nothing in between.
struct ProcessUse {
  double cpu_seconds = 0;      ///< all threads, user and system
  std::uint64_t io_bytes = 0;  ///< read and written, also through pipes, sockets and mapped files; 0: not known
  std::uint64_t sleeps = 0;    ///< voluntary context switches of the main thread
  double queued_seconds = 0;   ///< while the main thread was runnable without a processor; -1: not known
  int tracer = 0;              ///< pid of its debugger; 0: none
};
ProcessUse process_use(int pid) noexcept;

/// True if all threads of the process have begun to end, or it has ended.
bool is_ending(int pid) noexcept;
/// The wait status (waitpid) of a process that has ended and was not reaped yet; -1 if it is not known.
int wait_status_of_zombie(int pid) noexcept;
/// The wait status of a process from a pidfd that was opened before the process ended, also after it was reaped; always
/// -1 before Linux 6.15.
int wait_status_of_ended(int pidfd) noexcept;

/// The kernel function in which a sleeping thread waits ("futex_wait_queue"), "" if it is not known.
std::string waiting_channel(int pid, int tid);

/// What identifies this process beyond its pid.
std::uint64_t own_start_time() noexcept;
std::uint64_t own_pid_namespace() noexcept;  ///< inode of /proc/thread-self/ns/pid; 0 if not known
/// Copies /proc/sys/kernel/random/boot_id; "" if not known.
void read_boot_id(char (&id)[40]) noexcept;

/// True if the pid of the process that wrote the record can be looked up: both processes know their pid namespace, and
/// it is the same.
bool is_visible(const RecordHeader& header) noexcept;
/// True if the process that wrote the record is alive: same start of the system, same pid and start time; a zombie is
/// not alive. If it is not visible, whether it still holds its lock of the record, `file` (open, or -1); also true if
/// that is not known.
bool process_lives(const RecordHeader& header, int file) noexcept;

}  // namespace bestride::inline telemetry
