// SPDX-License-Identifier: Apache-2.0
#pragma once
// Processes that this one has started, also those that left its session and lost their parents: launchers start ssh so.

namespace bestride::inline cli {

/// From now on, orphans among this process's descendants become its children. They remain as zombies until it ends. The
/// descendants that exist now are not those of kill_descendants(): a shell may have started them before it executed
/// this program, and ssh leaves a process that keeps its connection. May throw std::bad_alloc.
void adopt_orphans();

/// Ends all descendants since adopt_orphans() with SIGKILL and waits for them. Without /proc, it finds none. May throw
/// std::bad_alloc.
void kill_descendants();

}  // namespace bestride::inline cli
