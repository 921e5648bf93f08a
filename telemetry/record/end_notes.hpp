// SPDX-License-Identifier: Apache-2.0
#pragma once
// What this process notes of its own end in its record (EndNote). The functions take no lock and allocate nothing; they
// may be called by a signal handler. Without a record they do nothing.
#include <cstdint>
#include <string_view>

#include "telemetry/record/layout.hpp"

namespace bestride::inline telemetry {

/// Writes `text` and an end mark into the note. Of an MPI error's text that is too long, the last line is kept, which
/// says what was wrong, and before it as many of the first lines as fit; of other texts the beginning.
void write_end_text(EndNote& note, EndKind kind, std::string_view text) noexcept;
/// `code`, `text`: as EndNote has them. Of several threads the first one that notes an end of
/// this kind is noted.
void note_end(EndKind kind, int code, std::string_view text) noexcept;
/// The process goes on: the calling thread's note is removed.
void withdraw_end(EndKind kind) noexcept;

}  // namespace bestride::inline telemetry
