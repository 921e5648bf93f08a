// SPDX-License-Identifier: Apache-2.0
#pragma once
// What MPI libraries do otherwise than the standard says, or than a caller expects, and what is done because of it. To
// support another library or version, look through this list. Seen in MPICH 4.0.2, if nothing else is said; that others
// do the same is assumed, because a work-around that is not needed does no harm. Where it does, runtime().library()
// decides. A constant is in the condition that works around it, or is named where the work-around is the shape of the
// code. No other comment of the backend names a version of MPICH (tests/house).
namespace bestride::inline interpose::quirks {

// ---- Datatypes ----

/// Over UCX: MPI_ERR_TRUNCATE, or wrong bytes, where a fragment of a message ends inside a basic element of the type
/// that the receiver posted, unless the sender's type is the same: from 8.2 KiB up in shared memory for {int, double}
/// and 32-byte elements, in synchronous messages also for 16-byte elements; 4 and 8 bytes divide all fragments. So
/// longer messages of other elements are not packed by their sender, and respelled ones are received as bytes.
inline constexpr bool unpack_fails_inside_elements = true;
/// A freed type keeps 64 bytes if it is a resized one, 128 with its components. So created types are used again.
inline constexpr bool freed_types_keep_memory = true;
/// The second byte of a contiguous type's handle is taken for the size of a basic type, and what MPI_Pack, MPI_Bsend
/// and MPI_Sendrecv_replace move is rounded down to a multiple of it. Handles are numbered as they are needed: it is 0
/// or 1 up to 512 types and 2 beyond, where one byte is not moved at all. So no types are created if many are alive.
inline constexpr bool size_in_handles_is_misread = true;
/// In half of all runs (bit 31 of its address is set) UCX's registration of a freed type is not withdrawn; types of
/// nonblocking collectives are kept for ever. So nothing depends on the end of a registration.
inline constexpr bool registrations_outlive_types = true;
/// If a type was freed while a receive was pending, the delete callbacks of its attributes run inside the progress
/// engine without its lock, and UCX aborts if another thread enters. So types get no attributes.
inline constexpr bool type_callbacks_run_in_progress = true;
/// MPI_Unpack divides by the type's size, also by 0. So such a call is not forwarded.
inline constexpr bool unpack_divides_by_size = true;
/// MPI_Pack rejects MPI_BOTTOM. So a paranoid comparison leaves it out.
inline constexpr bool pack_rejects_bottom = true;
/// Packed data that is too long may be detected after bytes were touched, or never. So device memory is checked before.
inline constexpr bool pack_overruns = true;

// ---- Messages ----

/// MPI_Isendrecv and MPI_Isendrecv_replace leave the status, and free a derived type once too often. So their receives
/// are completed as a whole, get no respelled type, and do not take the place of MPI_Sendrecv.
inline constexpr bool isendrecv_is_broken = true;
/// MPI_Irecv from MPI_PROC_NULL leaves the status. So it does not take the place of MPI_Recv.
inline constexpr bool irecv_from_null_has_no_status = true;
/// A message that is too long goes to the communicator's error handler in MPI_Recv and with a persistent request, but
/// to that of MPI_COMM_WORLD with MPI_Irecv. So a persistent request takes the place of MPI_Recv.
inline constexpr bool irecv_errors_are_of_world = true;
/// An error handler runs while a lock is held. If it throws, no request can be freed.
inline constexpr bool handlers_run_locked = true;
/// MPI_Testall fails for a started persistent collective; MPI_Wait, MPI_Waitall and MPI_Test work.
inline constexpr bool testall_fails_for_persistent_collectives = true;
/// MPI_Wait misses that another thread's message to the same process has completed its request. So a thread of the
/// application waits in it only for a request that is complete.
inline constexpr bool wait_misses_other_threads = true;

// ---- Collectives, one-sided ----

/// The blocks of a long allgatherv are sent in pieces of 32 KiB divided by the extent of the rank's receive type
/// (allgatherv_intra_ring.c, iallgatherv_intra_sched_ring.c), which must be alike. So the type is not respelled.
inline constexpr bool allgatherv_counts_by_extent = true;
/// A derived type that is given to a persistent collective loses a reference (some crash at the second start). So it is
/// not respelled: other calls use the respelled type.
inline constexpr bool persistent_collectives_free_types = true;
/// Persistent gathers and scatters copy the rank's own block when they are created. So device memory is staged then.
inline constexpr bool persistent_gathers_copy_early = true;
/// MPI_MAX and MPI_MIN compare unsigned integers as if they had a sign. So they are left to the library.
inline constexpr bool unsigned_are_compared_as_signed = true;
/// MPI_MAX takes 131 KiB of stack for one integer, other collectives less than 16; a thread may have no more.
inline constexpr bool maximum_takes_much_stack = true;
/// Blocks of edges that join the same two ranks arrive in one order in MPI_Neighbor_alltoall and in another in
/// MPI_Neighbor_alltoallv. So each form is tried once.
inline constexpr bool order_of_parallel_edges_differs = true;
/// MPI_Neighbor_alltoallw copies int counts with the in-degree and the out-degree exchanged: messages are lost, or have
/// lengths from the heap. So the form with MPI_Count, which copies none, takes its place (only in 4.0).
inline constexpr bool neighbor_alltoallw_exchanges_degrees = true;
/// A neighbor collective whose message is longer than its block returns MPI_SUCCESS. So it does, with a warning.
inline constexpr bool neighbor_truncation_is_no_error = true;
/// MPI_Win_test looks for other members' operations before it makes progress. So collectives make progress for it.
inline constexpr bool win_test_looks_before_progress = true;

// ---- Start and end ----

/// The delete callbacks of MPI_COMM_SELF run in the last MPI_Session_finalize if that follows MPI_Finalize.
inline constexpr bool self_callbacks_run_late = true;
/// MPICH 4.3: MPI_Comm_free ends a program that has left a message, also one on MPI_COMM_WORLD, which MPI_Finalize does
/// not. So Bestride's communicators are left to MPI_Finalize.
inline constexpr bool comm_free_finds_lost_messages = true;
/// The text of an error code that is added to a predefined class is garbage. So Bestride adds a class.
inline constexpr bool texts_of_predefined_classes_are_garbage = true;

}  // namespace bestride::inline interpose::quirks
