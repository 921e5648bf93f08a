// SPDX-License-Identifier: Apache-2.0
#pragma once
// What happens to the runtime at MPI_Init, at MPI_Finalize and with MPI sessions.
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {

/// All functions: any thread.
class Lifetime {
 public:
  /// Before MPI_Init: announces to other ranks what they have to know of this one during their MPI_Init.
  static void announce(Runtime& runtime) noexcept;
  /// MPI_Init has succeeded. Only the first call has an effect.
  static void begin(Runtime& runtime) noexcept;
  /// MPI_Finalize is about to be called. Only the first call has an effect. Entries of handles are kept until the last
  /// session ends.
  static void end(Runtime& runtime);

  /// A session was created.
  static void session_begins(Runtime& runtime) noexcept;
  /// A session is about to be finalized. If MPI_Init was not called, MPI ends with the last session and may be
  /// initialised again, so all entries of handles are removed.
  static void session_ends(Runtime& runtime);

 private:
  static void warn_about_settings(Runtime& runtime) noexcept;
  static void report(Runtime& runtime) noexcept;
  /// After this every call is forwarded.
  static void shut_down(Runtime& runtime) noexcept;
};

}  // namespace bestride::inline interpose
