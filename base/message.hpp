// SPDX-License-Identifier: Apache-2.0
#pragma once
// Messages of the library to the user, on stderr. The library is silent unless something is wrong or information was
// requested. A message is in lower case, states the exact cause and the remedy, and is written once, at the first place
// that knows the cause. A process writes at most 16 lines.
#include <cstdarg>

namespace bestride {

/// Writes "bestride: <text>\n" in one write(2). `once_key` identifies the message: a second call with an equal key
/// (compared as a string) writes nothing. Thread-safe; allocates nothing; never fails. After 16 lines it writes a
/// closing line and drops all further messages. BESTRIDE_LOG=quiet suppresses all of them.
void warn_once(const char* once_key, const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));

/// As warn_once(), for a message that is the same on all ranks: only rank 0 writes it, or every process if the launcher
/// does not provide the rank (launcher_rank()). With BESTRIDE_LOG=info all ranks write it.
void warn_once_per_job(const char* once_key, const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));

/// As warn_once(), but only if BESTRIDE_LOG=info.
void log_info_once(const char* once_key, const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));

}  // namespace bestride
