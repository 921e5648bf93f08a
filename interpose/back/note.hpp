// SPDX-License-Identifier: Apache-2.0
#pragma once
// What goes into the report: one note per side of a call. With the report off, a call that is forwarded pays one load for it.
#include "collectives/cache/cache_table.hpp"
#include "interpose/back/sides.hpp"
#include "interpose/back/tally.hpp"

namespace bestride {

inline bool reporting() noexcept { return runtime().options().reporting; }

/// One side of a call that was looked at. `seconds`: inside the call.
void note(CallId call, const Side& side, double seconds) noexcept;
/// Device memory that no side of a message is. `call_name`, `strategy` (docs/report.md): static text.
void note_moved(const char* call_name, const char* strategy, const LayoutPtr& layout, double seconds) noexcept;
/// A collective that went through the hierarchy. `way`: "hierarchical" or a finer word, static text. `saved_seconds`: as predicted.
void note_spread(const char* call_name, const char* way, std::int64_t bytes, double seconds, double saved_seconds) noexcept;
/// What a communicator's cache did from one moment to another.
void note_cache(const CacheCounts& before, const CacheCounts& now) noexcept;
/// A call whose type gains by nothing. `seconds`: unknown, 0.
void note_left_alone(CallId call, std::int64_t count, MPI_Datatype type) noexcept;
/// MPI_Pack and MPI_Unpack.
void note(CallId call, Plan* plan, CallKind kind, Strategy strategy, const char* reason, double seconds) noexcept;

}  // namespace bestride
