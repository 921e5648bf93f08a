// SPDX-License-Identifier: Apache-2.0
#pragma once
// What happens to the runtime at MPI_Init, at MPI_Finalize and with MPI sessions.
//
// The application may communicate until the last delete callback of its attributes of MPI_COMM_SELF has returned, which
// MPI_Finalize calls first. MPI deletes attributes in the reverse order of their setting (MPI-3.1, 8.7.1). So the first
// attribute is set in MPI_Init, and its delete callback ends the runtime. It may come late
// (quirks::self_callbacks_run_late).
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {

/// All functions: any thread.
class Lifetime {
 public:
  /// Calls use_engine() and announces to other ranks what they have to know of this one during their MPI_Init. Called
  /// before MPI_Init.
  static void announce(Runtime& runtime) noexcept;
  /// Connects the engine with UCX. Called before the first use of a type; does nothing if it has been called.
  static void use_engine(Runtime& runtime) noexcept;
  /// MPI_Init has succeeded. Only the first call has an effect.
  static void begin(Runtime& runtime) noexcept;
  /// MPI_Finalize is about to be called. Only the first call has an effect.
  static void finalizing(Runtime& runtime);

  /// A session was created.
  static void session_begins(Runtime& runtime) noexcept;
  /// A session is about to be finalized. If MPI_Init was not called, MPI ends with the last session and may be
  /// initialized again, so all entries of handles are removed.
  static void session_ends(Runtime& runtime);

 private:
  static void warn_about_settings(Runtime& runtime) noexcept;
  /// Called at the end of MPI_COMM_SELF, or at MPI_Finalize if that can't be observed. Only the first call has an
  /// effect. Entries of handles are kept until the last session ends.
  static void end(Runtime& runtime);
  /// Arranges that end() is called at the end of MPI_COMM_SELF. False: it will not be.
  static bool end_with_comm_self() noexcept;
  static int delete_attribute(MPI_Comm, int, void*, void*);
  static void before_last_finalize(Runtime& runtime) noexcept;
  static void report(Runtime& runtime) noexcept;
  /// After this every call is forwarded.
  static void shut_down(Runtime& runtime) noexcept;
};

}  // namespace bestride::inline interpose
