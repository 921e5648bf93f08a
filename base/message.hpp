// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the library says to a person, on stderr: nothing unless something is wrong or was asked for; lower case;
// exact cause and remedy; once, at the first place that knows; at most 16 lines a process.
#include <cstdarg>

namespace bestride {

/// Writes "bestride: <text>\n" in one write(2). `once_key` names the fact: a second call with an equal key (compared as a
/// string) writes nothing. Thread-safe, allocation-free, never fails. After 16 lines a closing line is written and all
/// further ones are dropped. BESTRIDE_LOG=quiet silences it.
void say_once(const char* once_key, const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));

/// Same, only with BESTRIDE_LOG=info.
void say_info(const char* once_key, const char* format, ...) noexcept __attribute__((format(printf, 2, 3)));

}  // namespace bestride
