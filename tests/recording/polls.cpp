// SPDX-License-Identifier: Apache-2.0
// What each rank's record contains about its polling calls.
#include "tests/recording/own_record.hpp"

using namespace bestride;
using namespace bestride::test;

namespace {

MPI_CASE(polls_are_counted_and_leave_no_record) {
  MPI_Barrier(MPI_COMM_WORLD);
  const RankSnapshot before = own_record();
  int flag = 1;
  for (int i = 0; i < 1000; ++i) MPI_Iprobe(peer(), 4711, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  const RankSnapshot after = own_record();
  CHECK_EQUAL(0, flag);
  CHECK_EQUAL(first_thread(before).calls, first_thread(after).calls);
  CHECK_EQUAL(first_thread(before).polls + 1000, first_thread(after).polls);
  CHECK_EQUAL(std::string("MPI_Iprobe"), name_of(first_thread(after).poll_function));
}

/// Of two requests and a probe; a third request is pending and not polled.
MPI_CASE(what_a_rank_polls_in_turn_is_noted) {
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Request requests[3];
  for (int i = 0; i < 3; ++i) MPI_Irecv(nullptr, 0, MPI_BYTE, peer(), 4711 + i, MPI_COMM_WORLD, &requests[i]);
  int flag = 0;
  const auto poll = [&](int count) {
    for (int i = 0; i < count; ++i) MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
  };
  poll(8);
  CHECK(!first_thread(own_record()).polled_known);
  poll(60);
  RankSnapshot now = own_record();
  CHECK(first_thread(now).polled_known && first_thread(now).polls_one && first_thread(now).probes.empty());
  const auto polled_tags = [&] {
    int tags = 0;
    for (const RequestSnapshot& request : now.requests)
      if (request.poller == first_thread(now).slot + 1) tags |= 1 << (request.tag - 4711);
    return tags;
  };
  CHECK_EQUAL(1, polled_tags());
  for (int i = 0; i < 20; ++i) {
    poll(1);
    MPI_Testall(1, &requests[2], &flag, MPI_STATUSES_IGNORE);
    MPI_Iprobe(MPI_ANY_SOURCE, 4720, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  }
  now = own_record();
  CHECK(first_thread(now).polled_known && !first_thread(now).polls_one);
  CHECK_EQUAL(5, polled_tags());
  CHECK_EQUAL(std::size_t{1}, first_thread(now).probes.size());
  CHECK_EQUAL(any_rank, first_thread(now).probes.at(0).peer);
  CHECK_EQUAL(4720, first_thread(now).probes.at(0).tag);
  CHECK_EQUAL(0, static_cast<int>(now.communicator(first_thread(now).probes.at(0).communicator)->index));
  MPI_Barrier(MPI_COMM_WORLD);
  now = own_record();
  CHECK(!first_thread(now).polled_known && first_thread(now).probes.empty());
  CHECK_EQUAL(0, polled_tags());
  for (int i = 0; i < 3; ++i) MPI_Send(nullptr, 0, MPI_BYTE, peer(), 4711 + i, MPI_COMM_WORLD);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  CHECK_EQUAL(0u, own_record().requests.size());
}

}  // namespace
