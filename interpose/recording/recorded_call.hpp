// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a call is recorded: its kind and the positions of its arguments, from the last column of
// interpose/preload/functions.tsv.
namespace bestride::inline interpose {

/// How a call takes part in communication.
enum class RecordKind : unsigned char {
  call,  ///< may wait; nothing else is known of it
  send,
  receive,
  sendrecv,
  probe,
  collective,
  one_sided,
  window_call,
  window_collective,
  file_call,
  file_collective,
  start_call,  ///< start_X: creates an active request
  start_send,
  start_receive,
  start_sendrecv,
  start_collective,
  start_file_call,
  start_file_collective,
  prepare_send,  ///< prepare_X: creates an inactive persistent request
  prepare_receive,
  prepare_collective,
  activate,  ///< starts persistent requests
  activate_all,
  wait,
  wait_all,
  wait_any,
  wait_some,
  test,  ///< a polling call that completes requests
  test_all,
  test_any,
  test_some,
  poll,  ///< a polling call that completes nothing
  free_request,
  create,        ///< all members of `comm` create a communicator
  duplicate,     ///< the same, and it has the same members
  create_some,   ///< some members of `comm`, or members of several, do
  start_create,  ///< nonblocking
  create_inter,  ///< members of `comm` and others create an intercommunicator
  free,
  name,
  create_window,
  free_window,
  open_file,
  close_file,
  begin_exposure,      ///< MPI_Win_post
  begin_access,        ///< MPI_Win_start
  end_access,          ///< MPI_Win_complete
  initialize,          ///< MPI_Init
  initialize_session,  ///< does not create MPI_COMM_WORLD
  finalize,
  abort,
};

constexpr bool begins_recording(RecordKind kind) noexcept {
  return kind == RecordKind::initialize || kind == RecordKind::initialize_session;
}
constexpr bool is_collective(RecordKind kind) noexcept {
  switch (kind) {
    case RecordKind::collective:
    case RecordKind::start_collective:
    case RecordKind::prepare_collective:
    case RecordKind::window_collective:
    case RecordKind::file_collective:
    case RecordKind::start_file_collective:
    case RecordKind::create:
    case RecordKind::duplicate:
    case RecordKind::start_create:
    case RecordKind::create_inter:
    case RecordKind::free:
    case RecordKind::create_window:
    case RecordKind::free_window:
    case RecordKind::open_file:
    case RecordKind::close_file:
    case RecordKind::finalize: return true;
    default: return false;
  }
}
constexpr bool is_poll(RecordKind kind) noexcept {
  return kind == RecordKind::poll || kind == RecordKind::test || kind == RecordKind::test_all ||
         kind == RecordKind::test_any || kind == RecordKind::test_some;
}
constexpr bool completes_array(RecordKind kind) noexcept {
  return kind == RecordKind::wait_all || kind == RecordKind::wait_any || kind == RecordKind::wait_some ||
         kind == RecordKind::test_all || kind == RecordKind::test_any || kind == RecordKind::test_some;
}
constexpr bool completes_requests(RecordKind kind) noexcept {
  return completes_array(kind) || kind == RecordKind::wait || kind == RecordKind::test;
}
constexpr bool frees_object(RecordKind kind) noexcept {
  return kind == RecordKind::free || kind == RecordKind::free_window || kind == RecordKind::close_file ||
         kind == RecordKind::free_request;
}
constexpr bool changes_access(RecordKind kind) noexcept {
  return kind == RecordKind::begin_access || kind == RecordKind::end_access;
}
constexpr bool starts_request(RecordKind kind) noexcept {
  return kind >= RecordKind::start_call && kind <= RecordKind::start_file_collective;
}
constexpr bool prepares_request(RecordKind kind) noexcept {
  return kind >= RecordKind::prepare_send && kind <= RecordKind::prepare_collective;
}
constexpr bool sends(RecordKind kind) noexcept {
  return kind == RecordKind::send || kind == RecordKind::sendrecv || kind == RecordKind::start_send ||
         kind == RecordKind::start_sendrecv;
}
constexpr bool receives(RecordKind kind) noexcept {
  return kind == RecordKind::receive || kind == RecordKind::sendrecv || kind == RecordKind::start_receive ||
         kind == RecordKind::start_sendrecv;
}
/// True if programs make so many of these calls that they have a shorter entry for the usual case.
constexpr bool is_frequent(RecordKind kind) noexcept {
  return kind == RecordKind::send || kind == RecordKind::receive || kind == RecordKind::sendrecv ||
         kind == RecordKind::start_send || kind == RecordKind::start_receive || kind == RecordKind::collective ||
         kind == RecordKind::start_collective || kind == RecordKind::wait || kind == RecordKind::wait_all ||
         kind == RecordKind::wait_any || kind == RecordKind::wait_some;
}
/// Index of each argument in the parameter list; -1: the call has none.
struct ArgumentPositions {
  int buffer = -1;
  int count = -1;
  int type = -1;
  int peer = -1;
  int tag = -1;
  int peer2 = -1;
  int tag2 = -1;
  int root = -1;
  int operation = -1;
  int comm = -1;
  int window = -1;
  int file = -1;
  int request = -1;   ///< MPI_Request*, or MPI_Request of MPI_Request_get_status
  int number = -1;    ///< of requests
  int requests = -1;  ///< MPI_Request[]
  int flag = -1;      ///< int*: the polling call found something
  int found = -1;     ///< int*: how many requests it found
  int indices = -1;   ///< int*: their indices
  int made = -1;      ///< the communicator, window or file that the call creates
  int name = -1;
  int group = -1;
  // Of calls whose amounts may differ between pairs of ranks. Counts and types are single ones or arrays.
  int out_buffer = -1;
  int out_counts = -1;
  int out_type = -1;
  int in_buffer = -1;
  int in_counts = -1;
  int in_type = -1;
};

}  // namespace bestride::inline interpose
