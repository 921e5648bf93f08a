// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a seccomp filter, as a container has, ends a process that makes a system call. The filter tells nobody
// before.
namespace bestride::inline telemetry {

/// `number`: of a call that fails, and does nothing, with the arguments -1, -1, 0, 0, 0, 0. Without a filter this costs
/// a read of /proc; with one the call is tried, once, in a child of this process.
bool call_is_deadly(long number) noexcept;

}  // namespace bestride::inline telemetry
