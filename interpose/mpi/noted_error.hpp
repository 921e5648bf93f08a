// SPDX-License-Identifier: Apache-2.0
#pragma once
// NotedError: an MPI error that is passed to an error handler, noted in the record of a watched job while it lasts.

namespace bestride::inline interpose {

class NotedError {
 public:
  /// Called before MPI_Init of a watched job. Without this, nothing is noted.
  static void enable() noexcept;
  /// `error`: code or class.
  explicit NotedError(int error) noexcept;
  NotedError(const NotedError&) = delete;
  NotedError& operator=(const NotedError&) = delete;
  ~NotedError() { forget(); }
  /// That of the calling thread is over, as after a handler that has left by longjmp().
  static void forget() noexcept;
  /// An error of the calling thread is being handled.
  static bool exists() noexcept;
};

}  // namespace bestride::inline interpose
