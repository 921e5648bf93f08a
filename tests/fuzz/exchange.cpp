// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/exchange.hpp"

#include <algorithm>
#include <numeric>

namespace bestride::test {
namespace {

MPI_Comm pair_of_neighbors = MPI_COMM_NULL;

void note(Exchange& x, int code) {
  if (x.error == MPI_SUCCESS) x.error = code;
}

void set_status(Exchange& x, const MPI_Status& status) {
  x.status = status;
  x.status_is_set = true;
}

int post_receive(Exchange& x, MPI_Request* request) {
  return MPI_Irecv(x.in.address(), x.in.count(), x.in.type(), x.peer, x.tag, MPI_COMM_WORLD, request);
}

using BlockingSend = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm);
using StartingSend = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);

template <BlockingSend send>
void blocking(Exchange& x, Random& random) {
  MPI_Request receive;
  note(x, post_receive(x, &receive));
  if (send == MPI_Rsend) MPI_Barrier(MPI_COMM_WORLD);
  note(x, send(x.out.address(), x.out.count(), x.out.type(), x.peer, x.tag, MPI_COMM_WORLD));
  note(x, MPI_Wait(&receive, &x.status));
  x.status_is_set = true;
}

template <StartingSend send>
void starting(Exchange& x, Random& random) {
  std::vector<MPI_Request> requests(2);
  std::vector<MPI_Status> statuses(2);
  const bool send_first = random.chance(50);
  if (send_first)
    note(x, send(x.out.address(), x.out.count(), x.out.type(), x.peer, x.tag, MPI_COMM_WORLD, &requests[1]));
  note(x, post_receive(x, &requests[0]));
  if (!send_first)
    note(x, send(x.out.address(), x.out.count(), x.out.type(), x.peer, x.tag, MPI_COMM_WORLD, &requests[1]));
  note(x, complete(requests, statuses, random));
  set_status(x, statuses[0]);
}

void plain_receive(Exchange& x, Random& random) {
  MPI_Request send;
  note(x, MPI_Isend(x.out.address(), x.out.count(), x.out.type(), x.peer, x.tag, MPI_COMM_WORLD, &send));
  note(x, MPI_Recv(x.in.address(), x.in.count(), x.in.type(), random.chance(50) ? x.peer : MPI_ANY_SOURCE, x.tag,
                   MPI_COMM_WORLD, &x.status));
  x.status_is_set = true;
  note(x, MPI_Wait(&send, MPI_STATUS_IGNORE));
}

void sendrecv(Exchange& x, Random&) {
  note(x, MPI_Sendrecv(x.out.address(), x.out.count(), x.out.type(), x.peer, x.tag, x.in.address(), x.in.count(),
                       x.in.type(), x.peer, x.tag, MPI_COMM_WORLD, &x.status));
  x.status_is_set = true;
}

template <StartingSend init>
void persistent(Exchange& x, Random& random) {
  MPI_Request requests[2];
  note(x, MPI_Recv_init(x.in.address(), x.in.count(), x.in.type(), x.peer, x.tag, MPI_COMM_WORLD, &requests[0]));
  note(x, init(x.out.address(), x.out.count(), x.out.type(), x.peer, x.tag, MPI_COMM_WORLD, &requests[1]));
  for (int round = 0; round < 2; ++round) {
    if (random.chance(50)) {
      note(x, MPI_Startall(2, requests));
    } else {
      note(x, MPI_Start(&requests[0]));
      note(x, MPI_Start(&requests[1]));
    }
    MPI_Status statuses[2];
    note(x, MPI_Waitall(2, requests, statuses));
    set_status(x, statuses[0]);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
}

void matched(Exchange& x, Random& random) {
  MPI_Request send;
  MPI_Message message;
  note(x, MPI_Isend(x.out.address(), x.out.count(), x.out.type(), x.peer, x.tag, MPI_COMM_WORLD, &send));
  if (random.chance(50)) {
    note(x, MPI_Mprobe(x.peer, x.tag, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
    note(x, MPI_Mrecv(x.in.address(), x.in.count(), x.in.type(), &message, &x.status));
  } else {
    for (int there = 0; !there;) MPI_Improbe(x.peer, x.tag, MPI_COMM_WORLD, &there, &message, MPI_STATUS_IGNORE);
    MPI_Request receive;
    note(x, MPI_Imrecv(x.in.address(), x.in.count(), x.in.type(), &message, &receive));
    note(x, MPI_Wait(&receive, &x.status));
  }
  x.status_is_set = true;
  note(x, MPI_Wait(&send, MPI_STATUS_IGNORE));
}

void neighbor_alltoallw(Exchange& x, Random&) {
  const int out_count = x.out.count(), in_count = x.in.count();
  const MPI_Aint at = 0;
  const MPI_Datatype out_type = x.out.type(), in_type = x.in.type();
  note(x, MPI_Neighbor_alltoallw(x.out.address(), &out_count, &at, &out_type, x.in.address(), &in_count, &at, &in_type,
                                 neighbors()));
}

void neighbor_alltoall(Exchange& x, Random&) {
  note(x, MPI_Neighbor_alltoall(x.out.address(), x.out.count(), x.out.type(), x.in.address(), x.in.count(), x.in.type(),
                                neighbors()));
}

void packed_by_hand(Exchange& x, Random&) {
  Bytes mine(static_cast<std::size_t>(x.out.packed_size()) + 1),
      theirs(static_cast<std::size_t>(x.in.packed_size()) + 1);
  int position = 0, size = 0;
  note(x, MPI_Pack(x.out.address(), x.out.count(), x.out.type(), mine.data(), static_cast<int>(mine.size()), &position,
                   MPI_COMM_WORLD));
  MPI_Status status;
  note(x, MPI_Sendrecv(mine.data(), position, MPI_PACKED, x.peer, x.tag, theirs.data(), static_cast<int>(theirs.size()),
                       MPI_PACKED, x.peer, x.tag, MPI_COMM_WORLD, &status));
  MPI_Get_count(&status, MPI_PACKED, &size);
  position = 0;
  if (size > 0 && size == x.in.packed_size())
    note(x, MPI_Unpack(theirs.data(), size, &position, x.in.address(), x.in.count(), x.in.type(), MPI_COMM_WORLD));
  else if (size > 0)  // a short message, which may end inside an element
    note(x, MPI_Sendrecv(theirs.data(), size, MPI_PACKED, world_rank(), x.tag, x.in.address(), x.in.count(),
                         x.in.type(), world_rank(), x.tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

const ExchangeCall all_exchanges[] = {
    {"send", blocking<MPI_Send>, false, false},
    {"ssend", blocking<MPI_Ssend>, false, false},
    {"rsend", blocking<MPI_Rsend>, false, false},
    {"bsend", blocking<MPI_Bsend>, true, false},
    {"isend", starting<MPI_Isend>, false, false},
    {"issend", starting<MPI_Issend>, false, false},
    {"ibsend", starting<MPI_Ibsend>, true, false},
    {"recv", plain_receive, false, false},
    {"sendrecv", sendrecv, false, false},
    {"send_init", persistent<MPI_Send_init>, false, false},
    {"ssend_init", persistent<MPI_Ssend_init>, false, false},
    {"mprobe", matched, false, false},
    {"neighbor_alltoallw", neighbor_alltoallw, false, true},
    {"neighbor_alltoall", neighbor_alltoall, false, true},
    {"pack", packed_by_hand, true, false},
};

}  // namespace

std::span<const ExchangeCall> exchanges() { return all_exchanges; }

MPI_Comm neighbors() {
  if (pair_of_neighbors == MPI_COMM_NULL) {
    const int other = 1 - world_rank();
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &other, MPI_UNWEIGHTED, 1, &other, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                   0, &pair_of_neighbors);
  }
  return pair_of_neighbors;
}

void free_neighbors() {
  if (pair_of_neighbors != MPI_COMM_NULL) MPI_Comm_free(&pair_of_neighbors);
}

int complete(std::vector<MPI_Request>& requests, std::vector<MPI_Status>& statuses, Random& random) {
  const int n = static_cast<int>(requests.size());
  const int completion = static_cast<int>(random.between(0, 7));
  int error = MPI_SUCCESS, done = 0, index = 0, some = 0;
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  // Every loop ends at the first error. The remaining requests are completed below, so that no message outlives its
  // buffer.
  switch (completion) {
    case 0:
      for (int i = 0; i < n && error == MPI_SUCCESS; ++i) error = MPI_Wait(&requests[at(i)], &statuses[at(i)]);
      break;
    case 1:
      for (int i = n; i-- > 0;)
        for (done = 0; !done && error == MPI_SUCCESS;) error = MPI_Test(&requests[at(i)], &done, &statuses[at(i)]);
      break;
    case 2:
      for (done = 0; !done && error == MPI_SUCCESS;) error = MPI_Testall(n, requests.data(), &done, statuses.data());
      break;
    case 3:
      for (int k = 0; k < n && error == MPI_SUCCESS; ++k) {
        MPI_Status status;
        error = MPI_Waitany(n, requests.data(), &index, &status);
        if (error == MPI_SUCCESS) statuses[at(index)] = status;
      }
      break;
    case 4:
      for (int k = 0; k < n && error == MPI_SUCCESS;) {
        MPI_Status status;
        error = MPI_Testany(n, requests.data(), &index, &done, &status);
        if (error != MPI_SUCCESS || !done) continue;
        statuses[at(index)] = status;
        ++k;
      }
      break;
    case 5:
      for (int k = 0; k < n && error == MPI_SUCCESS; k += some) {
        std::vector<int> indices(requests.size());
        std::vector<MPI_Status> found(requests.size());
        error = MPI_Waitsome(n, requests.data(), &some, indices.data(), found.data());
        for (int j = 0; error == MPI_SUCCESS && j < some; ++j) statuses[at(indices[at(j)])] = found[at(j)];
      }
      break;
    case 6:
      for (int i = 0; i < n; ++i)
        for (done = 0; !done && error == MPI_SUCCESS;)
          error = MPI_Request_get_status(requests[at(i)], &done, MPI_STATUS_IGNORE);
      break;
    default: break;
  }
  const int rest = MPI_Waitall(n, requests.data(), completion < 6 ? MPI_STATUSES_IGNORE : statuses.data());
  return error != MPI_SUCCESS ? error : rest;
}

}  // namespace bestride::test
