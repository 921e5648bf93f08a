// SPDX-License-Identifier: Apache-2.0
// Checks what each rank's record contains about its calls, and reads it as another process would. Two ranks with the
// preload library.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "telemetry/record/functions.hpp"
#include "telemetry/record/reduction.hpp"
#include "tests/recording/own_record.hpp"
#include "tests/support/harness.hpp"

using namespace bestride;
using namespace bestride::test;

namespace {

void throw_error(MPI_Comm*, int*, ...) { throw std::runtime_error("handler"); }

}  // namespace

MPI_CASE(header) {
  const RankSnapshot record = own_record();
  CHECK_EQUAL(world_rank(), record.world_rank);
  CHECK_EQUAL(world_size(), record.world_size);
  CHECK(record.state == ProcessState::initialized);
  CHECK(record.alive);
  CHECK(record.functions_known);
  CHECK_EQUAL(std::string("mpich"), record.abi);
}

MPI_CASE(reductions) {
  int in = 1, out[2] = {};
  double number = 1, sum = 0;
  MPI_Op own;
  MPI_Op_create([](void*, void*, int*, MPI_Datatype*) {}, 1, &own);
  MPI_Datatype two;
  MPI_Type_contiguous(2, MPI_INT, &two);
  MPI_Type_commit(&two);
  const auto operation = [] { return last_call(own_record()).operation; };
  MPI_Allreduce(&in, out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  CHECK_EQUAL(reduction_code(ReductionOp::sum, BasicType::integer), operation());
  MPI_Reduce(&number, &sum, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  CHECK_EQUAL(reduction_code(ReductionOp::max, BasicType::floating), operation());
  int pair[2] = {};
  MPI_Allreduce(pair, out, 1, two, own, MPI_COMM_WORLD);
  CHECK_EQUAL(reduction_code(ReductionOp::user, BasicType::unknown), operation());
  MPI_Type_free(&two);
  MPI_Op_free(&own);
}

/// The communicator of a finished call, by its number; null if the record does not have it any more.
const CommunicatorSnapshot* communicator_of_call(const RankSnapshot& record, std::uint64_t number) {
  for (const ThreadSnapshot& thread : record.threads)
    for (const CallSnapshot& call : thread.finished)
      if (call.number == number) return communicator(record, call.communicator);
  return nullptr;
}

MPI_CASE(freed_communicators_are_kept_until_others_are_freed) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Barrier(comm);
  const std::uint64_t number = last_call(own_record()).number;
  const std::uint64_t uid = communicator_of_call(own_record(), number)->uid;
  MPI_Comm_free(&comm);
  // Later communicators have other entries, so that the barrier is not attributed to one of them.
  for (unsigned i = 0; i <= max_freed + 1; ++i) {
    const RankSnapshot record = own_record();
    const CommunicatorSnapshot* const freed = communicator_of_call(record, number);
    CHECK(i < max_freed ? freed && freed->freed && freed->uid == uid && freed->collectives == 2 : !freed);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    CHECK(!freed || communicator_of_call(own_record(), number)->uid == uid);
    MPI_Comm_free(&comm);
  }
}

MPI_CASE(send_and_receive) {
  double value[5] = {};
  if (world_rank() == 0) {
    MPI_Send(value, 5, MPI_DOUBLE, 1, 17, MPI_COMM_WORLD);
  } else {
    MPI_Recv(value, 5, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  const RankSnapshot record = own_record();
  const CallSnapshot call = last_call(record);
  CHECK_EQUAL(std::string(world_rank() == 0 ? "MPI_Send" : "MPI_Recv"), name_of(call.function));
  CHECK_EQUAL(world_rank() == 0 ? 1 : any_rank, call.peer);
  CHECK_EQUAL(world_rank() == 0 ? 17 : any_tag, call.tag);
  CHECK_EQUAL(40u, call.bytes);
  CHECK_EQUAL(0u, call.ordinal);
  CHECK(call.left >= call.entered);
  const CommunicatorSnapshot* const world = communicator(record, call.communicator);
  CHECK(world && world->name == "MPI_COMM_WORLD" && world->size == 2 && world->rank == world_rank());
}

MPI_CASE(derived_type_counts_data_bytes) {
  MPI_Datatype type;
  MPI_Type_vector(10, 2, 5, MPI_INT, &type);
  MPI_Type_commit(&type);
  std::vector<int> out(50), in(50);
  MPI_Sendrecv(out.data(), 1, type, peer(), 3, in.data(), 1, type, peer(), 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  const CallSnapshot call = last_call(own_record());
  MPI_Type_free(&type);
  CHECK_EQUAL(std::string("MPI_Sendrecv"), name_of(call.function));
  CHECK_EQUAL(80u, call.bytes);
  CHECK_EQUAL(peer(), call.second_peer);
  CHECK_EQUAL(3, call.second_tag);
}

MPI_CASE(collectives_have_the_same_number_on_all_members) {
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  int one = 1, sum = 0;
  MPI_Request request;
  MPI_Iallreduce(&one, &sum, 1, MPI_INT, MPI_SUM, copy, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  PMPI_Bcast(&one, 1, MPI_INT, 1, copy);
  const RankSnapshot record = own_record();
  const CallSnapshot call = last_call(record);
  CHECK_EQUAL(std::string("MPI_Bcast"), name_of(call.function));
  CHECK_EQUAL(1, call.peer);
  CHECK_EQUAL(2u, call.ordinal);
  const CommunicatorSnapshot* const tracked = communicator(record, call.communicator);
  CHECK(tracked && tracked->uid != 0 && tracked->collectives == 2 && tracked->first_member == 0 &&
        tracked->stride == 1);
  CHECK(agreed(tracked ? tracked->uid : 0));
  MPI_Comm_free(&copy);
  const RankSnapshot after = own_record();
  const CommunicatorSnapshot* const freed = communicator(after, call.communicator);
  CHECK(freed && freed->freed && freed->collectives == 3);
}

MPI_CASE(nonblocking_duplicates_are_known_when_they_are_complete) {
  MPI_Comm comms[5];
  MPI_Request requests[4];
  for (int i = 0; i < 3; ++i) MPI_Comm_idup(MPI_COMM_WORLD, &comms[i], &requests[i]);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[4]);  // its number follows theirs on all ranks
  MPI_Comm_idup(comms[4], &comms[3], &requests[3]);
  MPI_Wait(&requests[3], MPI_STATUS_IGNORE);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  std::vector<std::uint64_t> uids;
  for (MPI_Comm& comm : comms) {
    MPI_Barrier(comm);
    const RankSnapshot record = own_record();
    const CommunicatorSnapshot* const tracked = communicator(record, last_call(record).communicator);
    CHECK(tracked && tracked->uid != 0 && tracked->size == 2 && tracked->rank == world_rank() &&
          tracked->first_member == 0 && tracked->stride == 1);
    uids.push_back(tracked ? tracked->uid : 0);
    CHECK(agreed(uids.back()));
    for (std::size_t i = 0; i + 1 < uids.size(); ++i) CHECK(uids[i] != uids.back());
  }
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

MPI_CASE(parts_of_a_split_differ) {
  MPI_Comm part;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank(), 0, &part);
  MPI_Comm_set_name(part, "alone");
  MPI_Barrier(part);
  const RankSnapshot record = own_record();
  const CommunicatorSnapshot* const tracked = communicator(record, last_call(record).communicator);
  CHECK(tracked && tracked->size == 1 && tracked->first_member == world_rank() && tracked->name == "alone");
  CHECK(!agreed(tracked ? tracked->uid : 0));
  MPI_Comm_free(&part);
}

MPI_CASE(grid_without_reordering) {
  MPI_Comm reversed, grids[2];
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank(), &reversed);
  const int periodic = 0;
  for (int size = 1; size <= 2; ++size) MPI_Cart_create(reversed, 1, &size, &periodic, 0, &grids[size - 1]);
  for (MPI_Comm& grid : grids) {
    if (grid == MPI_COMM_NULL) continue;
    MPI_Barrier(grid);
    const RankSnapshot record = own_record();
    const CommunicatorSnapshot* const tracked = communicator(record, last_call(record).communicator);
    const bool whole = &grid == &grids[1];
    CHECK(tracked && tracked->size == (whole ? 2 : 1) && tracked->rank == 1 - world_rank());
    CHECK(tracked && tracked->first_member == 1 && tracked->stride == (whole ? -1 : 1));
    if (whole) CHECK(agreed(tracked ? tracked->uid : 0));
    MPI_Comm_free(&grid);
  }
  MPI_Comm_free(&reversed);
}

MPI_CASE(communicators_that_follow_each_other_at_one_place) {
  std::vector<std::uint64_t> uids;
  for (int i = 0; i < 3; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_name(comm, "a name that is much too long for the record of a rank");
    MPI_Barrier(comm);
    const RankSnapshot record = own_record();
    const CommunicatorSnapshot* const tracked = communicator(record, last_call(record).communicator);
    CHECK(tracked && tracked->name == "a name that is much too long for the re");
    uids.push_back(tracked ? tracked->uid : 0);
    MPI_Comm_free(&comm);
  }
  CHECK(uids[0] != uids[1] && uids[1] != uids[2] && uids[0] != uids[2]);
}

MPI_CASE(pending_requests) {
  int in = 0, out = 1;
  MPI_Request requests[2];
  MPI_Irecv(&in, 1, MPI_INT, peer(), 5, MPI_COMM_WORLD, &requests[0]);
  MPI_Recv_init(&in, 1, MPI_INT, peer(), 6, MPI_COMM_WORLD, &requests[1]);
  RankSnapshot record = own_record();
  CHECK_EQUAL(1u, record.requests.size());
  if (!record.requests.empty()) {
    CHECK_EQUAL(std::string("MPI_Irecv"), name_of(record.requests[0].function));
    CHECK_EQUAL(peer(), record.requests[0].peer);
    CHECK_EQUAL(5, record.requests[0].tag);
    CHECK_EQUAL(4u, record.requests[0].bytes);
  }
  MPI_Start(&requests[1]);
  CHECK_EQUAL(2u, own_record().requests.size());
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Send(&out, 1, MPI_INT, peer(), 5, MPI_COMM_WORLD);
  MPI_Send(&out, 1, MPI_INT, peer(), 6, MPI_COMM_WORLD);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  CHECK_EQUAL(0u, own_record().requests.size());
  MPI_Request_free(&requests[1]);
}

MPI_CASE(completion_functions_remove_what_completed) {
  constexpr int count = 3;
  int in[count], out = 7;
  for (int form = 0; form < 4; ++form) {
    MPI_Request requests[count];
    for (int i = 0; i < count; ++i) MPI_Irecv(&in[i], 1, MPI_INT, peer(), i, MPI_COMM_WORLD, &requests[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(&out, 1, MPI_INT, peer(), 1, MPI_COMM_WORLD);
    int index = -1, flag = 0, found = 0, indices[count];
    if (form == 0) MPI_Waitany(count, requests, &index, MPI_STATUS_IGNORE);
    if (form == 1) MPI_Waitsome(count, requests, &found, indices, MPI_STATUSES_IGNORE);
    while (form == 2 && !flag) MPI_Testany(count, requests, &index, &flag, MPI_STATUS_IGNORE);
    while (form == 3 && found == 0) MPI_Testsome(count, requests, &found, indices, MPI_STATUSES_IGNORE);
    const RankSnapshot record = own_record();
    CHECK_EQUAL(2u, record.requests.size());
    for (const RequestSnapshot& request : record.requests) CHECK(request.tag != 1);
    MPI_Send(&out, 1, MPI_INT, peer(), 0, MPI_COMM_WORLD);
    MPI_Send(&out, 1, MPI_INT, peer(), 2, MPI_COMM_WORLD);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    CHECK_EQUAL(0u, own_record().requests.size());
  }
}

MPI_CASE(a_call_counts_once) {
  MPI_Barrier(MPI_COMM_WORLD);
  const std::uint64_t before = first_thread(own_record()).calls;
  MPI_Barrier(MPI_COMM_WORLD);
  PMPI_Barrier(MPI_COMM_WORLD);
  char name[MPI_MAX_PROCESSOR_NAME];
  int length = 0;
  MPI_Get_processor_name(name, &length);
  CHECK_EQUAL(before + 2, first_thread(own_record()).calls);
}

/// True once a thread of rank 1 is seen in a call that `good` accepts; looked for at most 2 s.
template <class Good>
bool rank_1_is_seen(Good good) {
  const std::string own = own_record().path;
  for (int tries = 0; tries < 2000; ++tries, usleep(1000)) {
    const Result<std::vector<JobSnapshot>> jobs = read_jobs(records_folder());
    for (const JobSnapshot& each : *jobs)
      for (const RankSnapshot& rank : each.ranks)
        if (rank.world_rank == 1 && rank.path.substr(0, rank.path.rfind('/')) == own.substr(0, own.rfind('/')))
          for (const ThreadSnapshot& thread : rank.threads)
            if (thread.current && good(rank, thread)) return true;
  }
  return false;
}

MPI_CASE(a_blocked_rank_shows_its_call) {
  MPI_Barrier(MPI_COMM_WORLD);
  int value = 0;
  if (world_rank() == 1) {
    MPI_Recv(&value, 1, MPI_INT, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    CHECK(rank_1_is_seen([](const RankSnapshot&, const ThreadSnapshot& thread) {
      return name_of(thread.current->function) == "MPI_Recv" && thread.current->peer == 0 && thread.current->tag == 99;
    }));
    MPI_Send(&value, 1, MPI_INT, 1, 99, MPI_COMM_WORLD);
  }
}

/// Rank 1 posts receives with the tags 1000 to 1000 + `posted` and waits for those with even tags, in one call.
void check_that_a_wait_shows_its_requests(int posted) {
  int value = 0;
  if (world_rank() == 0) {
    CHECK(rank_1_is_seen([posted](const RankSnapshot& rank, const ThreadSnapshot& thread) {
      if (name_of(thread.current->function) != "MPI_Waitall") return false;
      int seen = 0;
      for (const RequestSnapshot& request : rank.requests)
        if (request.tag >= 1000) {
          ++seen;
          CHECK_EQUAL(request.tag % 2 == 0 ? static_cast<int>(thread.slot) + 1 : 0, int{request.waiter});
        }
      return seen == posted;
    }));
    for (int i = 0; i < posted; ++i) MPI_Send(&value, 1, MPI_INT, 1, 1000 + i, MPI_COMM_WORLD);
    return;
  }
  std::vector<int> in(static_cast<std::size_t>(posted));
  std::vector<MPI_Request> even, odd;
  for (int i = 0; i < posted; ++i)
    MPI_Irecv(&in[static_cast<std::size_t>(i)], 1, MPI_INT, 0, 1000 + i, MPI_COMM_WORLD,
              &(i % 2 ? odd : even).emplace_back());
  MPI_Waitall(static_cast<int>(even.size()), even.data(), MPI_STATUSES_IGNORE);
  MPI_Waitall(static_cast<int>(odd.size()), odd.data(), MPI_STATUSES_IGNORE);
  for (const RequestSnapshot& request : own_record().requests) CHECK(request.tag < 1000);
}

MPI_CASE(a_wait_shows_its_requests) {
  for (const int posted : {2, 6, 300}) {
    MPI_Barrier(MPI_COMM_WORLD);
    check_that_a_wait_shows_its_requests(posted);
  }
}

/// More requests than the wait list of another thread holds. One thread at a time calls MPI.
MPI_CASE(a_wait_of_another_thread_shows_its_requests) {
  for (const int posted : {6, 600}) {
    MPI_Barrier(MPI_COMM_WORLD);
    std::thread(check_that_a_wait_shows_its_requests, posted).join();
  }
}

/// Calls from one place whose communicator, type, count and peer change, most of them not timed.
MPI_CASE(a_place_in_a_loop_records_each_call) {
  int out = 0, in = 0;
  for (int i = 0; i < 2000; ++i)
    MPI_Sendrecv(&out, 1, MPI_INT, 0, 0, &in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  MPI_Datatype pair;
  MPI_Type_contiguous(2, MPI_DOUBLE, &pair);
  MPI_Type_commit(&pair);
  const MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE, pair};
  const std::uint64_t sizes[] = {4, 8, 16};
  constexpr int rounds = 16;  // so many freed communicators are kept
  double from[8] = {}, to[8];
  const auto peer_of = [](int round) { return round % 5 == 4 ? MPI_PROC_NULL : round % 2 ? world_rank() : 0; };
  for (int i = 0; i < rounds; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(i % 2 ? MPI_COMM_WORLD : MPI_COMM_SELF, &comm);
    MPI_Request requests[2];
    MPI_Irecv(to, i % 4, types[i % 3], peer_of(i), i, comm, &requests[0]);
    MPI_Isend(from, i % 4, types[i % 3], peer_of(i), i, comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&comm);
  }
  const RankSnapshot record = own_record();
  CHECK(record.sampling > 1);
  int receives = 0, sends = 0, waits = 0;
  for (const CallSnapshot& call : first_thread(record).finished) {
    const std::string name = name_of(call.function);
    waits += name == "MPI_Waitall" && call.second_tag == 2 ? 1 : 0;
    if (name != "MPI_Irecv" && name != "MPI_Isend") continue;
    const int i = (name == "MPI_Irecv" ? receives : sends)++;
    CHECK_EQUAL(i, call.tag);
    CHECK_EQUAL(static_cast<std::uint64_t>(i % 4) * sizes[i % 3], call.bytes);
    CHECK_EQUAL(i % 5 == 4 ? int{null_rank} : peer_of(i), call.peer);
    const CommunicatorSnapshot* const comm = communicator(record, call.communicator);
    CHECK(comm);
    if (comm) CHECK_EQUAL(i % 2 ? 2 : 1, comm->size);
  }
  CHECK_EQUAL(rounds, receives);
  CHECK_EQUAL(rounds, sends);
  CHECK_EQUAL(rounds, waits);
  CHECK(record.requests.empty());
  MPI_Type_free(&pair);
}

MPI_CASE(failed_calls_and_exceptions_end) {
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Errhandler throwing;
  MPI_Comm_create_errhandler(throw_error, &throwing);
  MPI_Comm_set_errhandler(copy, throwing);
  bool caught = false;
  try {
    int value = 0;
    MPI_Send(&value, 1, MPI_INT, 1234, 0, copy);
  } catch (const std::runtime_error&) {
    caught = true;
  }
  CHECK(caught);
  MPI_Barrier(MPI_COMM_WORLD);
  const ThreadSnapshot thread = first_thread(own_record());
  CHECK(!thread.in_mpi);
  CHECK_EQUAL(std::string("MPI_Barrier"), name_of(thread.finished.back().function));
  MPI_Errhandler_free(&throwing);
  MPI_Comm_free(&copy);
}

/// The remembered large messages with the other rank, from number `first` of their direction on.
std::vector<MessageSnapshot> large_messages(bool received, std::uint64_t first) {
  std::vector<MessageSnapshot> result;
  for (const MessageSnapshot& each : own_record().messages)
    if (each.communicator == no_index && each.peer == static_cast<std::uint32_t>(peer()) && each.received == received &&
        each.number >= first)
      result.push_back(each);
  return result;
}

MPI_CASE(large_messages_are_remembered) {
  std::uint64_t sent = 1, received = 1;  // numbers of the next messages
  for (const PeerSnapshot& each : own_record().peers)
    if (each.communicator == no_index && each.rank == static_cast<std::uint32_t>(peer()))
      sent += each.sent_messages, received += each.received_messages;
  std::vector<char> out(100'000), in(200'000);
  MPI_Sendrecv(out.data(), 100'000, MPI_CHAR, peer(), 1, in.data(), 200'000, MPI_CHAR, peer(), 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Sendrecv(out.data(), 100, MPI_CHAR, peer(), 1, in.data(), 100, MPI_CHAR, peer(), 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Request requests[2], persistent;
  MPI_Irecv(in.data(), 200'000, MPI_CHAR, peer(), 2, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(out.data(), 100'000, MPI_CHAR, peer(), 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Recv_init(in.data(), 200'000, MPI_CHAR, peer(), 3, MPI_COMM_WORLD, &persistent);
  MPI_Start(&persistent);
  MPI_Send(out.data(), 5000, MPI_CHAR, peer(), 3, MPI_COMM_WORLD);
  MPI_Wait(&persistent, MPI_STATUS_IGNORE);
  MPI_Request_free(&persistent);
  const std::vector<MessageSnapshot> to = large_messages(false, sent), from = large_messages(true, received);
  CHECK_EQUAL(std::size_t{3}, to.size());
  CHECK_EQUAL(std::size_t{3}, from.size());
  for (std::size_t i = 0; i < 3 && to.size() == 3 && from.size() == 3; ++i) {
    const std::uint64_t offset = i == 0 ? 0 : i + 1;  // the short ones count, too
    CHECK_EQUAL(sent + offset, std::uint64_t{to[i].number});
    CHECK_EQUAL(received + offset, std::uint64_t{from[i].number});
    CHECK_EQUAL(i == 2 ? 5000u : 100'000u, to[i].bytes);
    CHECK_EQUAL(i == 0 ? 100'000u : 200'000u, from[i].bytes);
    for (const MessageSnapshot& each : {to[i], from[i]}) {
      CHECK_EQUAL(i + 1, std::size_t{each.tag});
      CHECK_EQUAL(i == 2 ? 1 : 2, int{each.together});
      CHECK(each.posted > 0 && each.posted <= each.waited && each.waited <= each.completed);
    }
    CHECK(i == 2 || to[i].completed == from[i].completed);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

MPI_CASE(peers_are_counted) {
  const auto sent_to_peer = [] {
    for (const PeerSnapshot& each : own_record().peers)
      if (each.communicator == no_index && each.rank == static_cast<std::uint32_t>(peer())) return each;
    return PeerSnapshot{};
  };
  MPI_Comm reversed;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank(), &reversed);
  const PeerSnapshot before = sent_to_peer();
  double out[3] = {}, in[3];
  int other = 0;
  MPI_Comm_rank(reversed, &other);
  MPI_Sendrecv(out, 3, MPI_DOUBLE, 1 - other, 0, in, 3, MPI_DOUBLE, 1 - other, 0, reversed, MPI_STATUS_IGNORE);
  const PeerSnapshot after = sent_to_peer();
  CHECK_EQUAL(before.sent_messages + 1, after.sent_messages);
  CHECK_EQUAL(before.sent_bytes + 24, after.sent_bytes);
  CHECK_EQUAL(before.received_messages + 1, after.received_messages);
  MPI_Comm_free(&reversed);
}

MPI_CASE(failed_waitall_removes_what_it_freed) {
  const ReturnErrors errors(MPI_COMM_WORLD);
  char in[2][4] = {}, out[8] = {};
  MPI_Request requests[2];
  for (int i = 0; i < 2; ++i) MPI_Irecv(in[i], 4, MPI_CHAR, peer(), i, MPI_COMM_WORLD, &requests[i]);
  MPI_Send(out, 4, MPI_CHAR, peer(), 0, MPI_COMM_WORLD);
  MPI_Send(out, 8, MPI_CHAR, peer(), 1, MPI_COMM_WORLD);
  CHECK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE) != MPI_SUCCESS);
  CHECK_EQUAL(0u, own_record().requests.size());
}

MPI_CASE(a_forked_child_writes_nothing) {
  MPI_Barrier(MPI_COMM_WORLD);
  const std::uint64_t before = first_thread(own_record()).calls;
  const pid_t child = fork();
  if (child == 0) {
    int flag = 0;
    MPI_Iprobe(MPI_PROC_NULL, 0, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_EQUAL(0, status);
  CHECK_EQUAL(before, first_thread(own_record()).calls);
}

MPI_CASE(each_place_is_counted) {
  int value = 0;
  for (int i = 0; i < 10; ++i) MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
  const RankSnapshot record = own_record();
  const CallSnapshot call = last_call(record);
  CHECK(call.site < record.sites.size());
  if (call.site >= record.sites.size()) return;
  const SiteSnapshot& site = record.sites[call.site];
  CHECK_EQUAL(std::string("MPI_Bcast"), name_of(site.function));
  CHECK_EQUAL(10u, site.calls);
  CHECK_EQUAL(40u, site.bytes);
  CHECK(!site.stack.empty());
  CHECK(site.module < record.modules.size() &&
        record.modules[site.module].path.find("recording_calls") != std::string::npos);
}

MPI_CASE(a_refused_collective_has_no_number) {
  const ReturnErrors errors(MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  const std::uint32_t before = last_call(own_record()).ordinal;
  int value = 0;
  if (world_rank() == 0) CHECK(MPI_Bcast(&value, -1, MPI_INT, 0, MPI_COMM_WORLD) != MPI_SUCCESS);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK_EQUAL(before + 1, last_call(own_record()).ordinal);
}

int main(int argc, char** argv) { return run_cases(argc, argv, MPI_THREAD_SERIALIZED); }
