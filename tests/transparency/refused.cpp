// SPDX-License-Identifier: Apache-2.0
// Collective calls that MPICH 4.0.2 refuses on one rank because of its arguments, before it communicates. The other
// ranks do not make them. The program continues: the right call is made by all.
#include <mpi.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/harness.hpp"
#include "tests/support/typed_data.hpp"
#include "tests/transparency/watchdog.hpp"

using namespace bestride::test;

namespace {

constexpr int most_ranks = 4, most = 2000;
int rank = 0, size = 1;

/// The arguments of any collective: `sent` and `received` elements for each rank, or for this one.
struct Call {
  const void* send;
  void* receive;
  int sent, received;
  MPI_Datatype send_type = MPI_INT, receive_type = MPI_INT;
  MPI_Op op = MPI_SUM;
  int root = 0;
  int send_counts[most_ranks] = {}, receive_counts[most_ranks] = {}, at[most_ranks] = {}, bytes_at[most_ranks] = {};
  MPI_Datatype send_types[most_ranks] = {}, receive_types[most_ranks] = {};
  bool same_arrays = false;  ///< of both directions

  Call(const void* out, void* in, int count) : send(out), receive(in), sent(count), received(count) {
    for (int i = 0; i < size; ++i) {
      send_counts[i] = receive_counts[i] = count;
      at[i] = i * count;
      bytes_at[i] = 4 * at[i];
      send_types[i] = receive_types[i] = MPI_INT;
    }
  }
  void set_type(bool out, MPI_Datatype type) {
    (out ? send_type : receive_type) = type;
    for (MPI_Datatype& each : out ? send_types : receive_types) each = type;
  }
  void set_count(bool out, int count) {
    (out ? sent : received) = count;
    for (int& each : out ? send_counts : receive_counts) each = count;
  }
  const int* counts_received() const { return same_arrays ? send_counts : receive_counts; }
  const MPI_Datatype* types_received() const { return same_arrays ? send_types : receive_types; }
};

/// Which arguments of a function MPICH looks at.
struct Function {
  const char* name;
  int (*make)(const Call& call, MPI_Comm comm);
  bool rooted, reduces, one_count;  ///< one_count: of a reduction: MPICH does not look whether it is negative
  bool sends_one, receives_one;     ///< one block, at rank's place in the blocks of the other direction
};

const Function functions[] = {
    {"bcast",
     [](const Call& c, MPI_Comm comm) { return MPI_Bcast(c.receive, c.received, c.receive_type, c.root, comm); }, true,
     false, false, false, true},
    {"gather",
     [](const Call& c, MPI_Comm comm) {
       return MPI_Gather(c.send, c.sent, c.send_type, c.receive, c.received, c.receive_type, c.root, comm);
     },
     true, false, false, true, false},
    {"gatherv",
     [](const Call& c, MPI_Comm comm) {
       return MPI_Gatherv(c.send, c.sent, c.send_type, c.receive, c.receive_counts, c.at, c.receive_type, c.root, comm);
     },
     true, false, false, true, false},
    {"scatter",
     [](const Call& c, MPI_Comm comm) {
       return MPI_Scatter(c.send, c.sent, c.send_type, c.receive, c.received, c.receive_type, c.root, comm);
     },
     true, false, false, false, true},
    {"scatterv",
     [](const Call& c, MPI_Comm comm) {
       return MPI_Scatterv(c.send, c.send_counts, c.at, c.send_type, c.receive, c.received, c.receive_type, c.root,
                           comm);
     },
     true, false, false, false, true},
    {"allgather",
     [](const Call& c, MPI_Comm comm) {
       return MPI_Allgather(c.send, c.sent, c.send_type, c.receive, c.received, c.receive_type, comm);
     },
     false, false, false, true, false},
    {"allgatherv",
     [](const Call& c, MPI_Comm comm) {
       return MPI_Allgatherv(c.send, c.sent, c.send_type, c.receive, c.receive_counts, c.at, c.receive_type, comm);
     },
     false, false, false, true, false},
    {"alltoall",
     [](const Call& c, MPI_Comm comm) {
       return MPI_Alltoall(c.send, c.sent, c.send_type, c.receive, c.received, c.receive_type, comm);
     },
     false, false, false, false, false},
    {"alltoallv",
     [](const Call& c, MPI_Comm comm) {
       return MPI_Alltoallv(c.send, c.send_counts, c.at, c.send_type, c.receive, c.counts_received(), c.at,
                            c.receive_type, comm);
     },
     false, false, false, false, false},
    {"alltoallw",
     [](const Call& c, MPI_Comm comm) {
       return MPI_Alltoallw(c.send, c.send_counts, c.bytes_at, c.send_types, c.receive, c.counts_received(), c.bytes_at,
                            c.types_received(), comm);
     },
     false, false, false, false, false},
    {"reduce",
     [](const Call& c, MPI_Comm comm) {
       return MPI_Reduce(c.send, c.receive, c.received, c.receive_type, c.op, c.root, comm);
     },
     true, true, true, false, false},
    {"allreduce",
     [](const Call& c, MPI_Comm comm) {
       return MPI_Allreduce(c.send, c.receive, c.received, c.receive_type, c.op, comm);
     },
     false, true, true, false, false},
    {"reduce_scatter",
     [](const Call& c, MPI_Comm comm) {
       return MPI_Reduce_scatter(c.send, c.receive, c.receive_counts, c.receive_type, c.op, comm);
     },
     false, true, false, false, false},
    {"reduce_scatter_block",
     [](const Call& c, MPI_Comm comm) {
       return MPI_Reduce_scatter_block(c.send, c.receive, c.received, c.receive_type, c.op, comm);
     },
     false, true, true, false, false},
};

/// Makes one argument of the call wrong.
struct Mistake {
  const char* name;
  void (*make)(Call& call);
  bool (*applies)(const Function& function, bool at_root);
};

bool sends(const Function& f, bool at_root) {
  return f.make != functions[0].make && (!f.rooted || f.reduces || f.sends_one || at_root);
}
bool receives(const Function& f, bool at_root) { return !f.rooted || (!f.sends_one && !f.reduces) || at_root; }
bool reduces(const Function& f, bool) { return f.reduces; }
bool is_rooted(const Function& f, bool) { return f.rooted; }
bool has_out_type(const Function& f, bool at_root) { return sends(f, at_root) && !f.reduces; }
bool has_in_type(const Function& f, bool at_root) { return receives(f, at_root) || f.reduces; }

MPI_Datatype uncommitted, pairs;

const Mistake mistakes[] = {
    {"root too large", [](Call& c) { c.root = size; }, is_rooted},
    {"negative root", [](Call& c) { c.root = -1; }, is_rooted},
    {"null operation", [](Call& c) { c.op = MPI_OP_NULL; }, reduces},
    {"and of doubles", [](Call& c) { c.op = MPI_BAND, c.set_type(false, MPI_DOUBLE); }, reduces},
    {"sum of bytes", [](Call& c) { c.set_type(false, MPI_BYTE); }, reduces},
    {"sum of a derived type", [](Call& c) { c.set_type(false, pairs); }, reduces},
    {"minimum with place of integers", [](Call& c) { c.op = MPI_MINLOC; }, reduces},
    {"null send type", [](Call& c) { c.set_type(true, MPI_DATATYPE_NULL); }, has_out_type},
    {"null receive type", [](Call& c) { c.set_type(false, MPI_DATATYPE_NULL); }, has_in_type},
    {"uncommitted send type", [](Call& c) { c.set_type(true, uncommitted); }, has_out_type},
    {"uncommitted receive type", [](Call& c) { c.set_type(false, uncommitted); }, has_in_type},
    {"negative send count", [](Call& c) { c.set_count(true, -1); }, has_out_type},
    {"negative receive count", [](Call& c) { c.set_count(false, -1); },
     [](const Function& f, bool at_root) { return receives(f, at_root) && !f.one_count; }},
    {"null send buffer", [](Call& c) { c.send = nullptr; }, sends},
    {"null receive buffer", [](Call& c) { c.receive = nullptr; }, receives},
    {"null send buffer of a derived type", [](Call& c) { c.send = nullptr, c.set_type(true, pairs); }, has_out_type},
    {"null receive buffer of a derived type", [](Call& c) { c.receive = nullptr, c.set_type(false, pairs); },
     [](const Function& f, bool at_root) { return receives(f, at_root) && !f.reduces; }},
    {"in place at the receiver", [](Call& c) { c.receive = MPI_IN_PLACE; },
     [](const Function& f, bool at_root) { return sends(f, at_root) && receives(f, at_root) && !f.receives_one; }},
    {"in place at the sender", [](Call& c) { c.send = MPI_IN_PLACE; },
     [](const Function& f, bool at_root) { return f.receives_one && sends(f, at_root); }},
    {"same buffer", [](Call& c) { c.send = c.receive, c.same_arrays = true; },
     [](const Function& f, bool at_root) {
       return sends(f, at_root) && receives(f, at_root) && !f.sends_one && !f.receives_one;
     }},
    {"own block of the receive buffer", [](Call& c) { c.send = static_cast<int*>(c.receive) + rank * c.received; },
     [](const Function& f, bool at_root) { return f.sends_one && receives(f, at_root); }},
    {"own block of the send buffer",
     [](Call& c) { c.receive = const_cast<int*>(static_cast<const int*>(c.send)) + rank * c.sent; },
     [](const Function& f, bool at_root) { return f.receives_one && sends(f, at_root); }},
};

/// What all ranks do afterwards: each collective depends on the number of those before it.
void check_allreduce(MPI_Comm comm, int round) {
  int mine = round + rank, sum = -1;
  CHECK_EQUAL(MPI_SUCCESS, MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm));
  CHECK_EQUAL(size * round + size * (size - 1) / 2, sum);
}

/// On a communicator that `made` returns, with calls of `count` elements.
void make_mistakes(MPI_Comm comm, int count, bool waits) {
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  std::vector<int> out(most * most_ranks, 1), in(most * most_ranks);
  int round = 0;
  for (const Function& function : functions) {
    step(function.name);
    for (const Mistake& mistake : mistakes) {
      const int odd = round % size, root = round / size % size;
      ++round;
      if (!mistake.applies(function, odd == root)) continue;
      Call right(out.data(), in.data(), count);
      right.root = root;
      if (rank == odd) {
        Call wrong = right;
        mistake.make(wrong);
        const bool refused = function.make(wrong, comm) != MPI_SUCCESS;
        if (!refused) std::fprintf(stderr, "%s: %s is accepted\n", function.name, mistake.name);
        CHECK(refused);
      }
      // The other ranks wait for the rank whose call has failed.
      if (waits && rank == odd)
        for (int other = 0; other < size; ++other) {
          if (other != rank) MPI_Send(nullptr, 0, MPI_INT, other, 5, comm);
        }
      else if (waits)
        MPI_Recv(nullptr, 0, MPI_INT, odd, 5, comm, MPI_STATUS_IGNORE);
      CHECK_EQUAL(MPI_SUCCESS, function.make(right, comm));
      check_allreduce(comm, round);
    }
  }
}

void prepare() {
  watch_for_hang(25);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Type_contiguous(2, MPI_INT, &uncommitted);
  MPI_Type_contiguous(2, MPI_INT, &pairs);
  MPI_Type_commit(&pairs);
}
void end() {
  MPI_Type_free(&uncommitted);
  MPI_Type_free(&pairs);
}

}  // namespace

MPI_CASE(from_the_first_call_on) {
  prepare();
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (const bool waits : {false, true}) make_mistakes(comm, 1, waits);
  MPI_Comm_free(&comm);
  end();
}

MPI_CASE(of_all_sizes) {
  prepare();
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (const int count : {1, 100, most, 1}) make_mistakes(comm, count, false);
  MPI_Comm_free(&comm);
  end();
}

MPI_CASE(the_first_call_of_a_communicator) {
  prepare();
  const std::vector<int> out(most_ranks, 1);
  std::vector<int> in(most_ranks);
  int round = 0;
  for (const Function& function : functions)
    for (const Mistake& mistake : mistakes) {
      const int odd = round++ % size;
      if (!mistake.applies(function, odd == 0)) continue;
      // The members have not agreed on anything when they create it in this way.
      MPI_Group group;
      MPI_Comm comm;
      MPI_Comm_group(MPI_COMM_WORLD, &group);
      MPI_Comm_create_group(MPI_COMM_WORLD, group, 1, &comm);
      MPI_Group_free(&group);
      MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
      Call right(out.data(), in.data(), 1);
      if (rank == odd) {
        Call wrong = right;
        mistake.make(wrong);
        CHECK(function.make(wrong, comm) != MPI_SUCCESS);
        for (int other = 0; other < size; ++other)
          if (other != rank) MPI_Send(nullptr, 0, MPI_INT, other, 5, comm);
      } else {
        MPI_Recv(nullptr, 0, MPI_INT, odd, 5, comm, MPI_STATUS_IGNORE);
      }
      for (int i = 0; i < 5; ++i) check_allreduce(comm, i);
      MPI_Comm_free(&comm);
    }
  end();
}

namespace {

/// The same functions as persistent ones, in the order of `functions`; nullptr: not tried.
using Initialize = int (*)(const Call& call, MPI_Comm comm, MPI_Request* request);
const Initialize initializations[] = {
    [](const Call& c, MPI_Comm comm, MPI_Request* request) {
      return MPI_Bcast_init(c.receive, c.received, c.receive_type, c.root, comm, MPI_INFO_NULL, request);
    },
    [](const Call& c, MPI_Comm comm, MPI_Request* request) {
      return MPI_Gather_init(c.send, c.sent, c.send_type, c.receive, c.received, c.receive_type, c.root, comm,
                             MPI_INFO_NULL, request);
    },
    [](const Call& c, MPI_Comm comm, MPI_Request* request) {
      return MPI_Gatherv_init(c.send, c.sent, c.send_type, c.receive, c.receive_counts, c.at, c.receive_type, c.root,
                              comm, MPI_INFO_NULL, request);
    },
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    [](const Call& c, MPI_Comm comm, MPI_Request* request) {
      return MPI_Alltoallw_init(c.send, c.send_counts, c.bytes_at, c.send_types, c.receive, c.counts_received(),
                                c.bytes_at, c.types_received(), comm, MPI_INFO_NULL, request);
    },
    [](const Call& c, MPI_Comm comm, MPI_Request* request) {
      return MPI_Reduce_init(c.send, c.receive, c.received, c.receive_type, c.op, c.root, comm, MPI_INFO_NULL, request);
    },
    [](const Call& c, MPI_Comm comm, MPI_Request* request) {
      return MPI_Allreduce_init(c.send, c.receive, c.received, c.receive_type, c.op, comm, MPI_INFO_NULL, request);
    },
    [](const Call& c, MPI_Comm comm, MPI_Request* request) {
      return MPI_Reduce_scatter_init(c.send, c.receive, c.receive_counts, c.receive_type, c.op, comm, MPI_INFO_NULL,
                                     request);
    },
    nullptr,
};

}  // namespace

/// The others have a request then, which they free without a start, and all continue with blocking collectives.
MPI_CASE(initializations_of_persistent_collectives) {
  prepare();
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const std::vector<int> out(most * most_ranks, 1);
  std::vector<int> in(most * most_ranks);
  int round = 0;
  for (const int count : {1, most})
    for (std::size_t i = 0; i < std::size(functions); ++i)
      for (const Mistake& mistake : mistakes) {
        const int odd = round % size, root = round / size % size;
        ++round;
        if (!initializations[i] || !mistake.applies(functions[i], odd == root)) continue;
        Call call(out.data(), in.data(), count);
        call.root = root;
        if (rank == odd) mistake.make(call);
        MPI_Request request = MPI_REQUEST_NULL;
        const bool refused = initializations[i](call, comm, &request) != MPI_SUCCESS;
        if (refused != (rank == odd)) std::fprintf(stderr, "%s: %s\n", functions[i].name, mistake.name);
        CHECK_EQUAL(rank == odd, refused);
        if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
        check_allreduce(comm, round);
        std::vector<int> mine(static_cast<std::size_t>(count), 1), sums(mine);
        CHECK_EQUAL(MPI_SUCCESS, MPI_Allreduce(mine.data(), sums.data(), count, MPI_INT, MPI_SUM, comm));
        CHECK_EQUAL(count, static_cast<int>(std::count(sums.begin(), sums.end(), size)));
      }
  MPI_Comm_free(&comm);
  end();
}

/// The same for neighbor collectives.
MPI_CASE(initializations_of_persistent_neighbor_collectives) {
  prepare();
  MPI_Comm ring;
  const int periodic = 1;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
  MPI_Comm_set_errhandler(ring, MPI_ERRORS_RETURN);
  std::vector<int> out(2 * most, 1), in(2 * most);
  for (int round = 0; round < 3 * 4 * 4; ++round) {
    const bool odd = rank == round % size;
    const int count = round % 3 == 0 ? most : 1;
    const MPI_Datatype type = !odd || round / 4 % 4 > 1 ? MPI_INT
                              : round / 4 % 4 == 0      ? MPI_DATATYPE_NULL
                                                        : uncommitted;
    const void* const from = odd && round / 4 % 4 == 2 ? nullptr : out.data();
    const int sent = odd && round / 4 % 4 == 3 ? -1 : count;
    const int counts[] = {sent, sent}, received[] = {count, count}, at[] = {0, count};
    const MPI_Aint bytes_at[] = {0, 4 * count};
    const MPI_Datatype types[] = {type, type}, integers[] = {MPI_INT, MPI_INT};
    MPI_Request request = MPI_REQUEST_NULL;
    int error = MPI_SUCCESS;
    switch (round % 4) {
      case 0:
        error = MPI_Neighbor_allgather_init(from, sent, type, in.data(), count, MPI_INT, ring, MPI_INFO_NULL, &request);
        break;
      case 1:
        error = MPI_Neighbor_alltoall_init(from, sent, type, in.data(), count, MPI_INT, ring, MPI_INFO_NULL, &request);
        break;
      case 2:
        error = MPI_Neighbor_alltoallv_init(from, counts, at, type, in.data(), received, at, MPI_INT, ring,
                                            MPI_INFO_NULL, &request);
        break;
      default:
        error = MPI_Neighbor_alltoallw_init(from, counts, bytes_at, types, in.data(), received, bytes_at, integers,
                                            ring, MPI_INFO_NULL, &request);
    }
    if (!odd) CHECK_EQUAL(MPI_SUCCESS, error);
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    for (int i = 0; i < 3; ++i) check_allreduce(ring, round + i);
  }
  MPI_Comm_free(&ring);
  end();
}

/// Operations that are seldom used are asked about, and their right calls count.
MPI_CASE(unusual_operations_are_counted) {
  prepare();
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (int i = 0; i < 40; ++i) {
    double x = 1, y = 0;
    char c = 1, d = 0;
    CHECK_EQUAL(MPI_SUCCESS, MPI_Allreduce(&c, &d, 1, MPI_CHAR, MPI_SUM, comm));
    CHECK_EQUAL(size, d);
    if (rank == i % size) CHECK(MPI_Allreduce(&x, &y, 1, MPI_DOUBLE, MPI_BXOR, comm) != MPI_SUCCESS);
    check_allreduce(comm, i);
  }
  MPI_Comm_free(&comm);
  end();
}

int main(int argc, char** argv) { return run_watched_cases(argc, argv); }
