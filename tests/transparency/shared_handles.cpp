// SPDX-License-Identifier: Apache-2.0
// Several threads use one handle at the same time: a repeated MPI_Type_commit has no effect, and the first use of a
// communicator is handled once. MPI_THREAD_MULTIPLE.
#include <atomic>
#include <chrono>
#include <thread>

#include "tests/transparency/records.hpp"
#include "tests/transparency/watchdog.hpp"

using namespace bestride::test;

namespace {

/// `senders` threads pack with one type and send to their own rank while `committers` threads commit the type.
void commit_while_sending(int senders, int committers) {
  constexpr int elements = 20;
  MPI_Datatype type;
  MPI_Type_vector(elements, 1, 2, MPI_INT, &type);
  MPI_Type_commit(&type);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < senders; ++t)
    threads.emplace_back([&, t] {
      int out[2 * elements], in[2 * elements], packed[elements];
      for (int i = 0; i < 2 * elements; ++i) out[i] = i;
      while (std::chrono::steady_clock::now() < end) {
        std::fill_n(in, 2 * elements, -1);
        MPI_Request requests[2];
        MPI_Irecv(in, 1, type, 0, t, MPI_COMM_SELF, &requests[0]);
        MPI_Isend(out, 1, type, 0, t, MPI_COMM_SELF, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        int position = 0;
        MPI_Pack(out, 1, type, packed, sizeof packed, &position, MPI_COMM_SELF);
        wrong += position != static_cast<int>(sizeof packed);
        for (int i = 0; i < 2 * elements; i += 2) wrong += in[i] != i || packed[i / 2] != i;
      }
      over = true;
    });
  for (int t = 0; t < committers; ++t)
    threads.emplace_back([&] {
      while (!over) {
        MPI_Datatype copy = type;
        MPI_Type_commit(&copy);
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK_EQUAL(0, wrong.load());
  MPI_Type_free(&type);
}

/// Every thread commits, inspects, duplicates, sends with and frees its own types, the shared type, and the latest type
/// of its neighbor. With `other_rank`, it exchanges messages with the same thread of the other rank in every fourth
/// round: if only one of the two loses a type, the receiver gets an error (interpose/objects/plan.cpp).
void use_types_in_eight_threads(int records_count, int inspections, bool other_rank) {
  constexpr int threads_count = 8, rounds = 60;
  const int peer = world_size() - 1 - world_rank();
  MPI_Datatype shared = make_record_type(), outer_of_shared;
  MPI_Type_contiguous(2, shared, &outer_of_shared);
  std::atomic<MPI_Datatype> handed[threads_count];
  for (auto& one : handed) one = MPI_DATATYPE_NULL;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < threads_count; ++t)
    threads.emplace_back([&, t] {
      const std::vector<Record> out = records(records_count, t);
      std::vector<Record> in(out.size());
      const auto exchange = [&](MPI_Datatype type, bool with_peer) {
        const int rank = with_peer ? peer : 0;
        const MPI_Comm comm = with_peer ? MPI_COMM_WORLD : MPI_COMM_SELF;
        std::fill(in.begin(), in.end(), Record{});
        MPI_Request requests[2];
        MPI_Irecv(in.data(), records_count, type, rank, t, comm, &requests[0]);
        MPI_Isend(out.data(), records_count, type, rank, t, comm, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        wrong += wrong_records(in.data(), records_count, t);
      };
      const auto inspect = [](MPI_Datatype outer) {
        int count = 0;
        MPI_Aint address;
        MPI_Datatype inner;
        MPI_Type_get_contents(outer, 1, 0, 1, &count, &address, &inner);
        return inner;
      };
      for (int round = 0; round < rounds; ++round) {
        const bool with_peer = other_rank && round % 4 == 0;
        MPI_Datatype own = make_record_type(), copy = shared, duplicate, outer;
        MPI_Type_commit(&copy);
        for (int i = 0; i < inspections; ++i) {
          MPI_Datatype again = inspect(outer_of_shared);
          MPI_Type_free(&again);
        }
        exchange(shared, with_peer);
        MPI_Type_dup(own, &duplicate);
        MPI_Type_contiguous(2, own, &outer);
        MPI_Type_commit(&outer);
        MPI_Datatype inner = inspect(outer);
        MPI_Type_free(&own);
        exchange(inner, with_peer);
        MPI_Type_free(&inner);
        MPI_Type_free(&outer);
        exchange(duplicate, with_peer);
        MPI_Datatype theirs = handed[(t + 1) % threads_count].exchange(duplicate);
        if (theirs == MPI_DATATYPE_NULL) continue;
        exchange(theirs, false);
        MPI_Type_free(&theirs);
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK_EQUAL(0, wrong.load());
  check_record_type_alone(shared);
  for (auto& one : handed)
    if (MPI_Datatype left = one; left != MPI_DATATYPE_NULL) MPI_Type_free(&left);
  MPI_Type_free(&outer_of_shared);
  MPI_Type_free(&shared);
}

}  // namespace

MPI_CASE(commit_while_one_thread_sends) { commit_while_sending(1, 2); }
MPI_CASE(commit_while_two_threads_send) { commit_while_sending(2, 2); }
MPI_CASE(commit_while_eight_threads_send) { commit_while_sending(8, 2); }

MPI_CASE(contents_freed_while_a_thread_sends) {
  MPI_Datatype type = make_record_type(), outer;
  MPI_Type_contiguous(2, type, &outer);
  MPI_Type_commit(&outer);
  std::atomic<bool> over{false};
  std::thread inspector([&] {
    while (!over) {
      int count = 0;
      MPI_Aint address;
      MPI_Datatype inner;
      MPI_Type_get_contents(outer, 1, 0, 1, &count, &address, &inner);
      MPI_Type_free(&inner);
    }
  });
  const std::vector<Record> out = records(500);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Record> in(out.size());
    MPI_Request requests[2];
    MPI_Irecv(in.data(), 500, type, 0, 0, MPI_COMM_SELF, &requests[0]);
    MPI_Isend(out.data(), 500, type, 0, 0, MPI_COMM_SELF, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK_EQUAL(0, wrong_records(in.data(), 500));
  }
  over = true;
  inspector.join();
  check_record_type_alone(type);
  MPI_Type_free(&outer);
  MPI_Type_free(&type);
}

MPI_CASE(eight_threads_create_use_and_free_types) { use_types_in_eight_threads(300, 0, false); }

MPI_CASE(eight_threads_exchange_types_with_the_other_rank) { use_types_in_eight_threads(1024, 100, true); }

MPI_CASE(types_freed_while_received_beside_another_thread) {
  // The MPI library frees the type when the message completes, which either thread may detect.
  const int peer = world_size() - 1 - world_rank();
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  constexpr int rounds = 10000;
  std::thread other([&] {
    for (int round = 0; round < rounds; ++round) MPI_Barrier(comm);
  });
  const std::vector<Record> out = records(40);
  for (int round = 0; round < rounds; ++round) {
    std::vector<Record> in(out.size());
    MPI_Datatype type = make_record_type();
    MPI_Request requests[2];
    MPI_Irecv(in.data(), 40, type, peer, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out.data(), 40, type, peer, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Type_free(&type);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    CHECK_EQUAL(0, wrong_records(in.data(), 40));
  }
  other.join();
  MPI_Comm_free(&comm);
}

/// One thread packs and sends to itself in one call, for which an equivalent type may be made; the other exchanges
/// messages.
MPI_CASE(two_threads_first_use_a_type) {
  constexpr int blocks = 1024;
  const int peer = world_size() - 1 - world_rank();
  for (int round = 0; round < 150; ++round) {
    const int stride = 2 + round;  // a type of its own
    MPI_Datatype type;
    MPI_Type_vector(blocks, 1, stride, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    std::vector<double> out(static_cast<std::size_t>(blocks * stride), round), in(out.size()), replaced(out.size(), 1);
    std::atomic<int> ready{0};
    std::thread other([&] {
      for (++ready; ready < 2;) std::this_thread::yield();
      MPI_Sendrecv_replace(replaced.data(), 1, type, 0, 1, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    });
    for (++ready; ready < 2;) std::this_thread::yield();
    MPI_Request requests[2];
    MPI_Irecv(in.data(), 1, type, peer, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out.data(), 1, type, peer, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    other.join();
    int wrong = 0;
    for (int i = 0; i < blocks * stride; ++i)
      wrong += in[static_cast<std::size_t>(i)] != (i % stride == 0 ? round : 0) ||
               replaced[static_cast<std::size_t>(i)] != 1;
    CHECK_EQUAL(0, wrong);
    MPI_Type_free(&type);
  }
}

MPI_CASE(two_threads_first_use_a_communicator) {
  const int peer = world_size() - 1 - world_rank();
  for (int round = 0; round < 50; ++round) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Datatype type = make_record_type();
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&, t] {
        const std::vector<Record> out = records(2000, 7 * t + world_rank());
        std::vector<Record> in(out.size());
        for (++ready; ready < 2;) std::this_thread::yield();
        MPI_Request requests[2];
        MPI_Irecv(in.data(), 2000, type, peer, t, comm, &requests[0]);
        MPI_Isend(out.data(), 2000, type, peer, t, comm, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK_EQUAL(0, wrong_records(in.data(), 2000, 7 * t + peer));
      });
    for (std::thread& thread : threads) thread.join();
    MPI_Type_free(&type);
    MPI_Comm_free(&comm);
  }
}

MPI_CASE(a_message_and_a_collective_first_use_a_communicator) {
  const int peer = world_size() - 1 - world_rank();
  for (int round = 0; round < 20; ++round) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Datatype type = make_record_type();
    std::thread message([&] {
      const std::vector<Record> out = records(2000, world_rank());
      std::vector<Record> in(out.size());
      MPI_Request send;
      MPI_Isend(out.data(), 2000, type, peer, 0, comm, &send);
      MPI_Recv(in.data(), 2000, type, peer, 0, comm, MPI_STATUS_IGNORE);
      MPI_Wait(&send, MPI_STATUS_IGNORE);
      CHECK_EQUAL(0, wrong_records(in.data(), 2000, peer));
    });
    std::vector<int> out(20000, world_rank()), in(out.size() * static_cast<std::size_t>(world_size()));
    MPI_Allgather(out.data(), 20000, MPI_INT, in.data(), 20000, MPI_INT, comm);
    message.join();
    for (int r = 0; r < world_size(); ++r) CHECK_EQUAL(r, in[static_cast<std::size_t>(r) * out.size()]);
    MPI_Type_free(&type);
    MPI_Comm_free(&comm);
  }
}

int main(int argc, char** argv) { return run_watched_cases<25>(argc, argv, MPI_THREAD_MULTIPLE); }
