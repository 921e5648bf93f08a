// SPDX-License-Identifier: Apache-2.0
#include "interpose/peers/participants.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>

#include "base/message.hpp"
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {
namespace {

constexpr int tag = 32'000;  // within every library's MPI_TAG_UB
constexpr std::chrono::seconds patience{30};

std::string key_of(int rank) { return "bestride-" + std::to_string(rank); }

}  // namespace

void Participants::announce(Parts wanted, bool user_asserts_all_ranks) noexcept try {
  if ((!wanted.all_ranks && !wanted.reporting) || inject_failure(FailPoint::presence)) return;
  wanted_ = wanted;
  user_asserts_all_ranks_ = user_asserts_all_ranks;
  const char* rank = std::getenv("PMI_RANK");
  announced_ = pmi_.open() && rank && pmi_.put(key_of(std::atoi(rank)), "1");
} catch (...) {
  announced_ = false;
}

bool Participants::present(int rank) noexcept try {
  std::string value;
  return pmi_ ? pmi_.get(key_of(rank), &value) : user_asserts_all_ranks_;
} catch (...) {
  return false;
}

bool Participants::receive(int from, Answer* answer) noexcept {
  using Clock = std::chrono::steady_clock;
  MPI_Request request = MPI_REQUEST_NULL;
  if (real.Irecv(answer, static_cast<int>(sizeof *answer / sizeof(int)), MPI_INT, from, tag, MPI_COMM_WORLD,
                 &request) != MPI_SUCCESS)
    return false;
  const Clock::time_point until = Clock::now() + patience;
  int done = 0;
  while (real.Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done && Clock::now() < until) sched_yield();
  if (done) return true;
  real.Cancel(&request);
  real.Request_free(&request);
  warn_once("participants",
            "no answer from rank %d for %d s; check the preload and BESTRIDE_ALL_RANKS=1 there. Collectives are left "
            "to the MPI library",
            from, static_cast<int>(patience.count()));
  return false;
}

void Participants::send(int to, const Answer& answer) noexcept {
  real.Send(&answer, static_cast<int>(sizeof answer / sizeof(int)), MPI_INT, to, tag, MPI_COMM_WORLD);
}

void Participants::meet(int rank, int ranks) noexcept {
  met_ = ranks == 1 || announced_ || (user_asserts_all_ranks_ && !pmi_);
  if (ranks == 1) all_ = wanted_;
  if (ranks == 1 || !met_) return;
  Answer answer{wanted_.all_ranks, wanted_.reporting, wanted_.reporting, -1};
  const auto miss = [&](int which) {
    answer.all_ranks = answer.reporting = 0;
    answer.missing = answer.missing < 0 ? which : std::min(answer.missing, which);
  };
  int children[max_children] = {-1, -1};
  for (int i = 0; i < max_children; ++i) {
    const int child = max_children * rank + 1 + i;
    if (child >= ranks) continue;
    Answer theirs;
    if (!present(child) || !receive(child, &theirs)) {
      miss(child);
      continue;
    }
    children[i] = child;
    if (theirs.sender_reports) reporting_children_[i] = child;
    answer.all_ranks &= theirs.all_ranks;
    answer.reporting &= theirs.reporting;
    if (theirs.missing >= 0) miss(theirs.missing);
  }
  const int parent = rank > 0 ? (rank - 1) / max_children : -1;
  if (parent >= 0 && present(parent)) {
    send(parent, answer);
    Answer theirs;
    if (receive(parent, &theirs)) {
      if (theirs.sender_reports) reporting_parent_ = parent;
      answer = {theirs.all_ranks, theirs.reporting, wanted_.reporting, theirs.missing};
    } else {
      miss(parent);
    }
  } else if (parent >= 0) {
    miss(parent);
  }
  for (const int child : children)
    if (child >= 0) send(child, answer);
  all_ = {answer.all_ranks != 0, answer.reporting != 0};
  if (rank == 0 && answer.missing >= 0 && wanted_.all_ranks)
    warn_once(
        "participants",
        "rank %d does not take part (no preload there, BESTRIDE_DISABLE, other settings, or the mpiexec of another "
        "MPI library): collectives are left to the MPI library",
        answer.missing);
}

}  // namespace bestride::inline interpose
