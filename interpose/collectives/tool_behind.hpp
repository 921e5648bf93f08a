// SPDX-License-Identifier: Apache-2.0
#pragma once
// A profiling tool behind this library defines MPI functions, too, and may call the MPI library with other arguments: a
// tool that splits the job replaces MPI_COMM_WORLD by a communicator of its own. Collectives that are carried out here
// don't reach it, so they would go to other processes than it means.

namespace bestride::inline interpose {

/// The path of an object, other than the MPI library, that defines collectives and that the application would reach
/// without this library; nullptr: there is none. Valid until the object is unloaded.
const char* tool_behind() noexcept;

}  // namespace bestride::inline interpose
