// SPDX-License-Identifier: Apache-2.0
// MPI_THREAD_MULTIPLE: several threads send, receive, create and free types at the same time. Skipped if the MPI
// library grants a lower level.
#include <atomic>
#include <string>
#include <thread>

#include "tests/support/typed_data.hpp"

using namespace bestride::test;

namespace {

constexpr int threads = 4, rounds = 40;

bool multiple() {
  int provided = 0;
  MPI_Query_thread(&provided);
  return provided == MPI_THREAD_MULTIPLE;
}

template <class Work>
void in_threads(Work&& work) {
  if (!multiple()) return;
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) all.emplace_back([&work, t] { work(t); });
  for (auto& thread : all) thread.join();
}

}  // namespace

MPI_CASE(threads_with_their_own_types) {
  const Ring ring;
  in_threads([&](int t) {
    for (int round = 0; round < rounds; ++round) {
      const std::string type = "vector(" + std::to_string(10 + 7 * t + round) + ",1,2,double)";
      TypedData out = outgoing(type, 2, ring.rank), in = incoming(type, 2);
      MPI_Request requests[2];
      MPI_Irecv(in.address(), 2, in.type(), ring.previous, t, MPI_COMM_WORLD, &requests[0]);
      MPI_Isend(out.address(), 2, out.type(), ring.next, t, MPI_COMM_WORLD, &requests[1]);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      in.expect(outgoing(type, 2, ring.previous).packed());
    }
  });
}

MPI_CASE(all_threads_with_the_same_type) {
  const Ring ring;
  CommittedType shared{std::string_view(list_type)};
  in_threads([&](int t) {
    for (int round = 0; round < rounds; ++round) {
      TypedData out = outgoing(list_type, 3, ring.rank), in = incoming(list_type, 3);
      MPI_Request request;
      MPI_Irecv(in.address(), 3, shared, ring.previous, 100 + t, MPI_COMM_WORLD, &request);
      MPI_Send(out.address(), 3, shared, ring.next, 100 + t, MPI_COMM_WORLD);
      for (int done = 0; !done;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      in.expect(outgoing(list_type, 3, ring.previous).packed());
    }
  });
}

MPI_CASE(one_thread_completes_what_another_started) {
  if (!multiple()) return;
  const Ring ring;
  for (const char* type : every_type) {
    TypedData out = outgoing(type, 1, ring.rank), in = incoming(type, 1);
    MPI_Request requests[2];
    std::thread([&] {
      MPI_Irecv(in.address(), 1, in.type(), ring.previous, 1, MPI_COMM_WORLD, &requests[0]);
      MPI_Isend(out.address(), 1, out.type(), ring.next, 1, MPI_COMM_WORLD, &requests[1]);
    }).join();
    std::thread([&] { MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); }).join();
    in.expect(outgoing(type, 1, ring.previous).packed());
  }
}

MPI_CASE(types_created_and_freed_in_all_threads) {
  in_threads([&](int t) {
    for (int round = 0; round < 200; ++round) {
      TypedData data("hvector(" + std::to_string(2 + round % 50) + ",3," + std::to_string(5 + t) + ",byte)", 1, 9);
      Bytes packed(static_cast<std::size_t>(data.packed_size()));
      int position = 0;
      MPI_Pack(data.address(), 1, data.type(), packed.data(), static_cast<int>(packed.size()), &position,
               MPI_COMM_SELF);
      if (const auto wrong = difference(data.packed(), packed)) fail_check(__FILE__, __LINE__, "packed " + *wrong);
    }
  });
}

MPI_CASE(one_type_with_many_counts) {
  // More counts than the caches of a type and of a thread can hold, so plans are evicted and recreated while other
  // threads use them.
  const Ring ring;
  CommittedType shared{std::string_view(list_type)};
  in_threads([&](int t) {
    for (int round = 0; round < 3 * rounds; ++round) {
      const int count = 1 + (round * 7 + t * 13) % 100;
      TypedData data(list_type, count, 5);
      Bytes packed(static_cast<std::size_t>(data.packed_size()));
      int position = 0;
      MPI_Pack(data.address(), count, shared, packed.data(), static_cast<int>(packed.size()), &position,
               MPI_COMM_WORLD);
      if (const auto wrong = difference(data.packed(), packed)) fail_check(__FILE__, __LINE__, "packed " + *wrong);
    }
  });
}

MPI_CASE(persistent_requests_in_all_threads) {
  const Ring ring;
  in_threads([&](int t) {
    TypedData out = outgoing(record_type, 2, ring.rank), in = incoming(record_type, 2);
    const Bytes expected = outgoing(record_type, 2, ring.previous).packed();
    for (int round = 0; round < 4; ++round) {
      MPI_Request requests[2];
      MPI_Recv_init(in.address(), 2, in.type(), ring.previous, 200 + t, MPI_COMM_WORLD, &requests[0]);
      MPI_Send_init(out.address(), 2, out.type(), ring.next, 200 + t, MPI_COMM_WORLD, &requests[1]);
      for (int start = 0; start < rounds / 4; ++start) {
        MPI_Startall(2, requests);
        for (int finished = 0, done = 0, indices[2]; finished < 2; finished += done)
          MPI_Waitsome(2, requests, &done, indices, MPI_STATUSES_IGNORE);
        in.expect(expected);
      }
      MPI_Request_free(&requests[0]);
      MPI_Request_free(&requests[1]);
    }
  });
}

MPI_CASE(sends_freed_before_they_complete) {
  const Ring ring;
  in_threads([&](int t) {
    for (int round = 0; round < rounds; ++round) {
      const std::string_view type = round % 2 ? large_type : small_type;
      TypedData out = outgoing(type, 1, ring.rank), in = incoming(type, 1);
      MPI_Request receive, send;
      MPI_Irecv(in.address(), 1, in.type(), ring.previous, 300 + t, MPI_COMM_WORLD, &receive);
      MPI_Isend(out.address(), 1, out.type(), ring.next, 300 + t, MPI_COMM_WORLD, &send);
      MPI_Request_free(&send);
      int index = 0;
      MPI_Waitany(1, &receive, &index, MPI_STATUS_IGNORE);
      in.expect(outgoing(type, 1, ring.previous).packed());
      // The reply shows that the peer has received the message, so `out` may be freed.
      MPI_Sendrecv(nullptr, 0, MPI_BYTE, ring.previous, 400 + t, nullptr, 0, MPI_BYTE, ring.next, 400 + t,
                   MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  });
}

MPI_CASE(threads_with_their_own_communicators) {
  in_threads([&](int) {
    for (int round = 0; round < rounds; ++round) {
      MPI_Comm comm;
      const int one = 1, periodic = 1;
      MPI_Cart_create(MPI_COMM_SELF, 1, &one, &periodic, 0, &comm);
      TypedData out = outgoing(list_type, 2, 0), in = incoming(list_type, 4);
      MPI_Neighbor_allgather(out.address(), 2, out.type(), in.address(), 2, in.type(), comm);
      Bytes twice = out.packed();
      twice.insert(twice.end(), twice.begin(), twice.begin() + out.packed_size());
      in.expect(twice);
      MPI_Comm_free(&comm);
    }
  });
}

int main(int argc, char** argv) { return run_cases(argc, argv, MPI_THREAD_MULTIPLE); }
