// SPDX-License-Identifier: Apache-2.0
#pragma once
// Records for the end-of-job report: one per endpoint of a call. If the report is off, a forwarded call costs one load.
#include "collectives/cache/cache_table.hpp"
#include "interpose/message/endpoint.hpp"
#include "interpose/report/tally.hpp"

namespace bestride::inline interpose {

inline bool reporting() noexcept { return runtime().options().reporting; }

/// One endpoint of a call that was examined. `seconds`: the time inside the call.
void record(CallId call, const Endpoint& endpoint, double seconds) noexcept;
/// Device memory that is not an endpoint of a message. `call_name`, `strategy` (docs/report.md): static strings.
void record_device_buffer(const char* call_name, const char* strategy, const LayoutPtr& layout,
                          double seconds) noexcept;
/// A collective that was done hierarchically. `variant`: "hierarchical" or a more specific word, a static string.
/// `saved_seconds`: as predicted.
void record_collective(const char* call_name, const char* variant, std::int64_t bytes, double seconds,
                       double saved_seconds) noexcept;
/// What a communicator's cache did between two points in time.
void record_cache(const CacheCounts& before, const CacheCounts& now) noexcept;
/// A collective that was left to the MPI library. `reason`: a static string (docs/report.md).
void record_left(const char* call_name, const char* reason, std::int64_t bytes, double seconds) noexcept;
/// A call that was forwarded because its type can't gain from packing or respelling. The time is not known and recorded
/// as 0.
void record_forwarded(CallId call, std::int64_t count, MPI_Datatype type) noexcept;
/// MPI_Pack and MPI_Unpack.
void record(CallId call, Plan* plan, Strategy strategy, const char* reason, double seconds) noexcept;

}  // namespace bestride::inline interpose
