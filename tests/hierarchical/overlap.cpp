// SPDX-License-Identifier: Apache-2.0
// Hierarchical collectives at the same time as other collectives, messages, and blocking calls that complete only after
// another rank makes progress. A rank that waits in any MPI call must progress its pending collectives; otherwise these
// cases hang.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <vector>

#include "tests/hierarchical/calls.hpp"
#include "tests/hierarchical/job.hpp"
#include "tests/support/harness.hpp"
#include "tests/support/memory.hpp"

using namespace bestride::test;

namespace {

constexpr int small_count = 3, long_count = 20011;

/// A collective of ints on one communicator, with its buffers. Must not move, because MPI uses the buffers.
class Pending {
 public:
  Pending(What what, MPI_Comm comm, int count, int salt) : what_(what), count_(count), salt_(salt) {
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &size_);
    const auto all = static_cast<std::size_t>(count) * static_cast<std::size_t>(size_);
    out_.resize(all);
    in_.assign(all, -1);
    for (std::size_t i = 0; i < all; ++i) out_[i] = value(rank_, i);
    if (what == What::broadcast && rank_ == root()) std::copy(out_.begin(), out_.begin() + count, in_.begin());
    given_.out = out_.data();
    given_.in = in_.data();
    given_.out_count = given_.in_count = count;
    given_.out_type = given_.in_type = MPI_INT;
    given_.op = MPI_SUM;
    given_.root = root();
    given_.comm = comm;
    std::vector<int> at;
    for (int rank = 0; rank < size_; ++rank) at.push_back(rank * count);
    given_.give_counts(std::vector<int>(at.size(), count), at);
    given_.give_out_counts(given_.counts, at);
  }
  void begin(MPI_Request* request, Wait wait = Wait::nonblocking) {
    Group group = group_of("", given_.comm, true);
    const Watch watch(group, !left_to_library(what_), Wait::nonblocking);
    CHECK_EQUAL(MPI_SUCCESS, call(what_, {wait, false, false}, given_, request));
    CHECK_EQUAL("", watch.verdict());
  }
  void check() const {
    for (std::size_t i = 0; i < in_.size(); ++i)
      if (in_[i] != expected(i)) {
        fail_check(__FILE__, __LINE__,
                   std::string(name(what_)) + ", element " + std::to_string(i) + ": expected " +
                       std::to_string(expected(i)) + ", got " + std::to_string(in_[i]));
        return;
      }
  }

 private:
  int root() const { return (salt_ + 1) % size_; }
  int value(int rank, std::size_t i) const { return salt_ * 1000 + rank * 131 + static_cast<int>(i % 977); }
  int expected(std::size_t i) const {
    const auto n = static_cast<std::size_t>(count_);
    int sum = 0;
    switch (what_) {
      case What::allgather: return value(static_cast<int>(i / n), i % n);
      case What::gatherv: return rank_ == root() ? value(static_cast<int>(i / n), i % n) : -1;
      case What::scatterv: return i < n ? value(root(), static_cast<std::size_t>(rank_) * n + i) : -1;
      case What::alltoall:
      case What::alltoallv: return value(static_cast<int>(i / n), static_cast<std::size_t>(rank_) * n + i % n);
      case What::broadcast: return i < n ? value(root(), i) : -1;
      case What::allreduce:
      case What::reduce:
        if (i >= n || (what_ == What::reduce && rank_ != root())) return -1;
        for (int rank = 0; rank < size_; ++rank) sum += value(rank, i);
        return sum;
      case What::reduce_scatter_block:
        if (i >= n) return -1;
        for (int rank = 0; rank < size_; ++rank) sum += value(rank, static_cast<std::size_t>(rank_) * n + i);
        return sum;
      default: return -1;
    }
  }

  What what_;
  int count_, salt_, rank_ = 0, size_ = 1;
  std::vector<int> out_, in_;
  Arguments given_;
};

constexpr What kinds[] = {What::allgather, What::broadcast, What::allreduce, What::reduce_scatter_block,
                          What::alltoall,  What::reduce,    What::gatherv,   What::scatterv,
                          What::alltoallv};
constexpr int kinds_count = std::size(kinds);

/// Pending collectives on several communicators, and messages around the ring of all ranks.
struct Many {
  std::vector<MPI_Comm> comms{MPI_COMM_WORLD};
  std::deque<Pending> pending;
  std::vector<MPI_Request> requests;
  std::vector<std::vector<int>> sent, received;

  explicit Many(int rounds) {
    for (const int key : {0, -world_rank()}) {
      comms.emplace_back();
      MPI_Comm_split(MPI_COMM_WORLD, 0, key, &comms.back());
    }
    const int next = (world_rank() + 1) % world_size(), previous = (world_rank() + world_size() - 1) % world_size();
    sent.reserve(static_cast<std::size_t>(rounds));
    received.reserve(static_cast<std::size_t>(rounds));
    for (int round = 0; round < rounds; ++round) {
      sent.emplace_back(100000, world_rank() + round);
      received.emplace_back(100000, -1);
      add([&](MPI_Request* r) { MPI_Isend(sent.back().data(), 100000, MPI_INT, next, round, MPI_COMM_WORLD, r); });
      for (int i = 0; i < kinds_count; ++i) {
        pending.emplace_back(kinds[i], comms[static_cast<std::size_t>((i + round) % 3)],
                             i % 2 ? long_count : small_count, i + 7 * round);
        add([&](MPI_Request* r) { pending.back().begin(r); });
      }
      add([&](MPI_Request* r) {
        MPI_Irecv(received.back().data(), 100000, MPI_INT, previous, round, MPI_COMM_WORLD, r);
      });
    }
  }
  template <class Begin>
  void add(Begin begin) {
    MPI_Request request = MPI_REQUEST_NULL;
    begin(&request);
    requests.push_back(request);
  }
  int count() const { return static_cast<int>(requests.size()); }
  void check() {
    for (const Pending& each : pending) each.check();
    const int previous = (world_rank() + world_size() - 1) % world_size();
    for (std::size_t round = 0; round < received.size(); ++round)
      CHECK(received[round] == std::vector<int>(100000, previous + static_cast<int>(round)));
    for (std::size_t i = 1; i < comms.size(); ++i) MPI_Comm_free(&comms[i]);
  }
};

/// A collective is pending on all ranks. The early ranks make `step` before they wait for the collective, the others
/// after that; neither may hang.
void before_and_after(const std::function<void(bool early)>& step) {
  for (const What what : {What::allgather, What::allreduce})
    for (const int count : {small_count, long_count})
      for (const bool odd : {false, true}) {
        const bool early = (world_rank() % 2 == 1) == odd;
        Pending pending(what, MPI_COMM_WORLD, count, 5);
        MPI_Request request;
        pending.begin(&request);
        if (early) step(true);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (!early) step(false);
        pending.check();
      }
}

int partner() { return world_rank() ^ 1; }

}  // namespace

MPI_CASE(all_waited_for_together) {
  Many many(2);
  MPI_Waitall(many.count(), many.requests.data(), MPI_STATUSES_IGNORE);
  many.check();
}

MPI_CASE(waited_for_in_reverse_order) {
  Many many(2);
  for (int i = many.count() - 1; i >= 0; --i) MPI_Wait(&many.requests[static_cast<std::size_t>(i)], MPI_STATUS_IGNORE);
  many.check();
}

MPI_CASE(any_of_them) {
  Many many(2);
  std::vector<bool> ended(many.requests.size(), false);
  for (int left = many.count(); left > 0; --left) {
    int index = MPI_UNDEFINED;
    MPI_Waitany(many.count(), many.requests.data(), &index, MPI_STATUS_IGNORE);
    CHECK(index >= 0 && index < many.count());
    if (index < 0) break;
    CHECK(!ended[static_cast<std::size_t>(index)]);
    ended[static_cast<std::size_t>(index)] = true;
    CHECK(many.requests[static_cast<std::size_t>(index)] == MPI_REQUEST_NULL);
  }
  many.check();
}

MPI_CASE(some_of_them) {
  Many many(2);
  std::vector<int> indices(many.requests.size());
  for (int left = many.count(); left > 0;) {
    int found = 0;
    MPI_Waitsome(many.count(), many.requests.data(), &found, indices.data(), MPI_STATUSES_IGNORE);
    CHECK(found > 0);
    if (found <= 0) break;
    left -= found;
  }
  many.check();
}

MPI_CASE(tested) {
  for (int operation = 0; operation < 4; ++operation) {
    Many many(1);
    std::vector<int> indices(many.requests.size());
    for (int left = many.count(); left > 0;) {
      int flag = 0, found = 0;
      if (operation == 0) {
        MPI_Testall(many.count(), many.requests.data(), &flag, MPI_STATUSES_IGNORE);
        if (flag) left = 0;
      } else if (operation == 1) {
        MPI_Testany(many.count(), many.requests.data(), &found, &flag, MPI_STATUS_IGNORE);
        if (flag) --left;
      } else if (operation == 2) {
        MPI_Testsome(many.count(), many.requests.data(), &found, indices.data(), MPI_STATUSES_IGNORE);
        left -= std::max(found, 0);
      } else {
        for (MPI_Request& request : many.requests) {
          if (request == MPI_REQUEST_NULL) continue;
          MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
          if (flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE), left -= flag;
        }
      }
    }
    many.check();
  }
}

MPI_CASE(receiving_while_pending) {
  if (world_size() % 2) return;
  before_and_after([](bool early) {
    int value = world_rank();
    if (early) {
      MPI_Recv(&value, 1, MPI_INT, partner(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK_EQUAL(partner(), value);
    } else {
      MPI_Send(&value, 1, MPI_INT, partner(), 1, MPI_COMM_WORLD);
    }
  });
}

MPI_CASE(sending_while_pending) {
  if (world_size() % 2) return;
  for (const bool synchronous : {false, true})
    before_and_after([&](bool early) {
      std::vector<int> values(300000, world_rank());
      if (!early)
        MPI_Recv(values.data(), 300000, MPI_INT, partner(), 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      else if (synchronous)
        MPI_Ssend(values.data(), 1, MPI_INT, partner(), 2, MPI_COMM_WORLD);
      else
        MPI_Send(values.data(), 300000, MPI_INT, partner(), 2, MPI_COMM_WORLD);
    });
}

MPI_CASE(probing_while_pending) {
  if (world_size() % 2) return;
  for (const bool matched : {false, true})
    before_and_after([&](bool early) {
      int value = world_rank();
      if (!early) {
        MPI_Send(&value, 1, MPI_INT, partner(), 3, MPI_COMM_WORLD);
      } else if (matched) {
        MPI_Message message;
        MPI_Mprobe(partner(), 3, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
      } else {
        MPI_Probe(partner(), 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(&value, 1, MPI_INT, partner(), 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
    });
}

MPI_CASE(waiting_for_a_message_while_pending) {
  if (world_size() % 2) return;
  before_and_after([](bool early) {
    int value = world_rank();
    if (!early) return void(MPI_Send(&value, 1, MPI_INT, partner(), 4, MPI_COMM_WORLD));
    MPI_Request request;
    MPI_Irecv(&value, 1, MPI_INT, partner(), 4, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
}

/// Only the progress thread can advance the collective of the rank that waits. The flags are in memory that the ranks
/// share, because the test bed is one host.
MPI_CASE(waiting_outside_of_mpi_while_pending) {
  if (world_size() % 2) return;
  // On one node the first two collectives go to the library, which would make no progress.
  for (int time = 0; time < 2; ++time)
    for (const What what : {What::allgather, What::allreduce}) {
      Pending first(what, MPI_COMM_WORLD, long_count, time);
      MPI_Request request;
      first.begin(&request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  std::atomic<int>*own = nullptr, *of_partner = nullptr;
  MPI_Win window;
  MPI_Win_allocate_shared(sizeof *own, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window);
  MPI_Aint size = 0;
  int unit = 0;
  MPI_Win_shared_query(window, partner(), &size, &unit, &of_partner);
  own->store(0);
  MPI_Barrier(MPI_COMM_WORLD);
  int turn = 0;
  before_and_after([&](bool early) {
    ++turn;
    if (!early) return of_partner->store(turn);
    while (own->load() < turn) usleep(1000);
  });
  MPI_Win_free(&window);
}

MPI_CASE(a_barrier_while_pending) {
  before_and_after([](bool) { MPI_Barrier(MPI_COMM_WORLD); });
}

MPI_CASE(a_small_library_collective_while_pending) {
  before_and_after([](bool) {
    double mine = 1, sum = 0;
    MPI_Scan(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQUAL(world_rank() + 1.0, sum);
  });
}

MPI_CASE(a_communicator_made_while_pending) {
  before_and_after([](bool) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_free(&comm);
  });
}

MPI_CASE(a_blocking_collective_while_pending) {
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  for (const MPI_Comm comm : {MPI_COMM_WORLD, other}) {
    Pending one(What::alltoall, MPI_COMM_WORLD, long_count, 1), two(What::allreduce, comm, long_count, 2);
    MPI_Request request, none;
    one.begin(&request);
    two.begin(&none, Wait::in_call);
    two.check();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    one.check();
  }
  MPI_Comm_free(&other);
}

MPI_CASE(long_message_pending_in_a_blocking_collective) {
  if (world_size() % 2) return;
  for (const bool odd : {false, true}) {
    std::vector<int> message(1 << 20, world_rank());
    const bool sends = (world_rank() % 2 == 1) == odd;
    MPI_Request request = MPI_REQUEST_NULL, none;
    Pending collective(What::allgather, MPI_COMM_WORLD, small_count, 3);
    if (sends)
      MPI_Isend(message.data(), 1 << 20, MPI_INT, partner(), 5, MPI_COMM_WORLD, &request);
    else
      MPI_Recv(message.data(), 1 << 20, MPI_INT, partner(), 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    collective.begin(&none, Wait::in_call);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    collective.check();
    CHECK_EQUAL(sends ? world_rank() : partner(), message.back());
  }
}

MPI_CASE(communicator_freed_while_pending) {
  for (int repeat = 0; repeat < 5; ++repeat)
    for (const What what : kinds) {
      MPI_Comm comm, other;
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      Pending pending(what, comm, repeat % 2 ? long_count : small_count, repeat);
      MPI_Request request;
      pending.begin(&request);
      MPI_Comm_free(&comm);
      // The MPI library may reuse the handle value.
      MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank(), &other);
      Pending next(what, other, small_count, repeat + 1);
      MPI_Request second;
      next.begin(&second);
      MPI_Wait(&second, MPI_STATUS_IGNORE);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      pending.check();
      next.check();
      MPI_Comm_free(&other);
    }
}

MPI_CASE(started_together) {
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  std::vector<MPI_Request> requests;
  std::deque<Pending> pending;
  for (int i = 0; i < kinds_count; ++i) {
    pending.emplace_back(kinds[i], i % 2 ? other : MPI_COMM_WORLD, i % 2 ? long_count : small_count, i);
    requests.emplace_back();
    pending.back().begin(&requests.back(), Wait::persistent);
  }
  int sent = 0, received = 0;
  requests.resize(kinds_count + 2);
  for (int start = 0; start < 3; ++start) {
    sent = world_rank() + start;
    if (start == 0) {
      MPI_Send_init(&sent, 1, MPI_INT, (world_rank() + 1) % world_size(), 6, MPI_COMM_WORLD, &requests[kinds_count]);
      MPI_Recv_init(&received, 1, MPI_INT, (world_rank() + world_size() - 1) % world_size(), 6, MPI_COMM_WORLD,
                    &requests[kinds_count + 1]);
    }
    MPI_Startall(kinds_count + 2, requests.data());
    MPI_Waitall(kinds_count + 2, requests.data(), MPI_STATUSES_IGNORE);
    CHECK_EQUAL((world_rank() + world_size() - 1) % world_size() + start, received);
    for (const Pending& each : pending) each.check();
  }
  for (MPI_Request& request : requests) MPI_Request_free(&request);
  MPI_Comm_free(&other);
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
