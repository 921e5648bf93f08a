// SPDX-License-Identifier: Apache-2.0
#include "interpose/recording/exit_notes.hpp"

#include <unistd.h>

#include <cstdlib>

#include "interpose/mpi/imports.hpp"
#include "interpose/recording/crash_notes.hpp"
#include "telemetry/record/recorder.hpp"

namespace bestride::inline interpose {
namespace {

void note(int code) noexcept {
  Recorder::get().set_exited(code);
  const RecordFile* const file = Recorder::get().file();
  if (!file) return;
  // MPI libraries end a process that calls them after MPI_Finalize.
  const ThreadRecorder& self = *thread_recorder;
  const bool in_call = self.call && self.call->left.get() == 0;
  if (in_call || file->header.state.get() != static_cast<std::uint32_t>(ProcessState::finalized)) note_exit(code);
}

/// In place of _exit(), which calls no exit handler. May run in a signal handler, and in a child between vfork() and
/// execve().
template <void (*end)(int)>
[[noreturn]] void note_and_exit(int code) noexcept {
  note(code);
  end(code);
  __builtin_unreachable();
}

/// In place of abort().
[[noreturn]] void note_and_abort() noexcept {
  note_abort();
  abort();
}

}  // namespace

void note_exits(bool observed) noexcept {
  on_exit([](int code, void*) { note(code); }, nullptr);
  if (!observed) return;
  // Each calls the function of its own name: a tool's _exit() may call _Exit().
  replace_imports("_exit", reinterpret_cast<void*>(&note_and_exit<_exit>));
  replace_imports("_Exit", reinterpret_cast<void*>(&note_and_exit<_Exit>));
  replace_imports("abort", reinterpret_cast<void*>(&note_and_abort));
}

}  // namespace bestride::inline interpose
