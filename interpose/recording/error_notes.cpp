// SPDX-License-Identifier: Apache-2.0
#include "interpose/recording/error_notes.hpp"

#include <cstddef>
#include <functional>
#include <iterator>
#include <utility>

#include "interpose/mpi/functions.hpp"
#include "interpose/mpi/imports.hpp"
#include "interpose/mpi/noted_error.hpp"

namespace bestride::inline interpose {
namespace {

/// A function of MPICH that passes an error of a communicator, window, group or session to its handler, which may not
/// return. `object`: the library's structure, or null.
using ReturnError = int(void* object, const char* function, int error);

constexpr const char* names[] = {"MPIR_Err_return_comm", "MPIR_Err_return_win", "MPIR_Err_return_group",
                                 "MPIR_Err_return_session", "MPIR_Err_return_session_init"};
constexpr std::size_t count = std::size(names);
void* originals[count];
/// The reporting functions call each other.
thread_local constinit bool noting __attribute__((tls_model("initial-exec"))) = false;
/// Errors are only returned.
thread_local constinit bool quiet __attribute__((tls_model("initial-exec"))) = false;
/// The frame from which an error handler may be called now; null: none.
thread_local constinit const void* handler_frame __attribute__((tls_model("initial-exec"))) = nullptr;

template <std::size_t which>
int return_error(void* object, const char* function, int error) {
  if (quiet) return error;
  const auto original = reinterpret_cast<ReturnError*>(originals[which]);
  if (std::exchange(noting, true)) return original(object, function, error);
  // An error handler may leave this by longjmp(); the note is then not of the thread's current call.
  const NotedError noted(error);
  noting = false;
  struct Handling {
    explicit Handling(const void* frame) noexcept { handler_frame = frame; }
    ~Handling() { handler_frame = nullptr; }
  };
  return [&](const void* frame) {
    const Handling handling(frame);  // also until an exception leaves this
    return original(object, function, error);
  }(__builtin_dwarf_cfa());
}

template <std::size_t... which>
void replace_all(std::index_sequence<which...>) noexcept {
  const void* const inside = reinterpret_cast<const void*>(real.Wait);
  (replace_import(inside, names[which], reinterpret_cast<void*>(&return_error<which>), &originals[which]), ...);
}

}  // namespace

QuietGroupErrors::QuietGroupErrors() noexcept { quiet = originals[0] != nullptr; }
QuietGroupErrors::~QuietGroupErrors() { quiet = false; }
QuietGroupErrors::operator bool() const noexcept { return quiet; }

void note_mpi_errors() noexcept {
  NotedError::enable();
  replace_all(std::make_index_sequence<count>());
}

bool has_left_error_handler(const void* frame) noexcept {
  if (!handler_frame || std::less<>()(frame, handler_frame)) return false;  // stacks grow downwards
  handler_frame = nullptr;
  NotedError::forget();
  return true;
}

}  // namespace bestride::inline interpose
