// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/messages/pair.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "perfmodel/calibrate/common/sampling.hpp"

namespace bestride::inline perfmodel {
namespace {

/// If batches take this many times their planned duration, the remaining samples are given up.
constexpr double patience = 10;

enum Tag : int { message_tag = 1, answer_tag, empty_tag };

using Action = std::function<void()>;

double time_once(const Action& action, int turns) {
  const double start = MPI_Wtime();
  for (int i = 0; i < turns; ++i) action();
  return (MPI_Wtime() - start) / turns;
}

std::vector<double> sample(MPI_Comm pair, const std::vector<Action>& actions, double limit) {
  std::vector<SamplePlan> plans(actions.size());
  for (std::size_t s = 0; s < actions.size(); ++s) {
    time_once(actions[s], 1);  // touches all memory
    double seconds = time_once(actions[s], 1);
    for (int i = 0; i < 2; ++i) seconds = std::min(seconds, time_once(actions[s], 1));
    plans[s] = plan_samples(seconds, limit);
  }
  MPI_Bcast(plans.data(), static_cast<int>(2 * plans.size()), MPI_INT32_T, 0, pair);
  std::vector<std::vector<double>> good(actions.size());
  int rank = 0;
  MPI_Comm_rank(pair, &rank);
  const double start = MPI_Wtime();
  for (int batch = 0; batch < max_batches; ++batch) {
    // Both ranks take every sample and then exchange which samples were disturbed on either of them.
    std::vector<double> seconds;
    std::vector<std::size_t> series;
    std::vector<unsigned char> disturbed;
    for (int round = 0; round < max_rounds; ++round)
      for (std::size_t s = 0; s < actions.size(); ++s) {
        if (round >= plans[s].rounds || good[s].size() >= enough_samples) continue;
        const long before = preemptions();
        seconds.push_back(time_once(actions[s], plans[s].turns));
        series.push_back(s);
        disturbed.push_back(preemptions() != before);
      }
    if (series.empty()) break;
    disturbed.push_back(rank == 0 && MPI_Wtime() - start > patience * limit * static_cast<double>(actions.size()));
    MPI_Allreduce(MPI_IN_PLACE, disturbed.data(), static_cast<int>(disturbed.size()), MPI_UNSIGNED_CHAR, MPI_MAX, pair);
    for (std::size_t i = 0; i < series.size(); ++i)
      if (!disturbed[i]) good[series[i]].push_back(seconds[i]);
    if (disturbed.back()) break;
  }
  std::vector<double> result;
  result.reserve(good.size());
  for (const auto& of : good) result.push_back(lower_quartile(of));
  return result;
}

}  // namespace

Arena::~Arena() { std::free(memory_); }

char* Arena::at_least(std::size_t bytes) {
  if (bytes <= size_) return memory_;
  std::free(memory_);
  size_ = (bytes + 4095) / 4096 * 4096;
  memory_ = static_cast<char*>(std::aligned_alloc(4096, size_));
  if (!memory_) throw std::bad_alloc();
  std::memset(memory_, 1, size_);
  return memory_;
}

Rotation::Rotation(Arena& arena, std::size_t bytes) {
  step_ = (bytes + 63) / 64 * 64 + 64;
  places_ = std::max<std::size_t>(1, span / step_);
  base_ = arena.at_least(places_ * step_);
}

OneWay::OneWay(MPI_Comm pair, CallKind kind, Distance distance, int bytes, char* other) noexcept
    : pair_(pair), kind_(kind), self_(is_message(kind) && distance == Distance::self), bytes_(bytes), other_(other) {
  MPI_Comm_rank(pair, &rank_);
  works_ = rank_ == (answered() && kind == CallKind::receive ? 1 : 0);
}

void OneWay::transfer(void* data, int count, MPI_Datatype type) const {
  if (self_) {
    const bool sends = kind_ == CallKind::send;
    MPI_Request request;
    // Not over MPI_COMM_SELF: there MPICH copies; over a larger communicator a message of a rank to itself is sent like
    // any other.
    MPI_Irecv(sends ? other_ : data, sends ? bytes_ : count, sends ? MPI_BYTE : type, rank_, message_tag, pair_,
              &request);
    MPI_Send(sends ? data : other_, sends ? count : bytes_, sends ? type : MPI_BYTE, rank_, message_tag, pair_);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else if (rank_ == 0) {
    MPI_Send(data, count, type, 1, message_tag, pair_);
  } else {
    MPI_Recv(data, count, type, 0, message_tag, pair_, MPI_STATUS_IGNORE);
  }
}

void OneWay::answer() const {
  if (!answered()) return;
  if (rank_ == 0)
    MPI_Recv(nullptr, 0, MPI_BYTE, 1, answer_tag, pair_, MPI_STATUS_IGNORE);
  else
    MPI_Send(nullptr, 0, MPI_BYTE, 0, answer_tag, pair_);
}

void OneWay::idle() const {
  if (!answered()) return;
  transfer(other_, bytes_, MPI_BYTE);
  answer();
}

Exchange::Exchange(MPI_Comm pair, Distance distance) noexcept : pair_(pair) {
  int rank = 0;
  MPI_Comm_rank(pair, &rank);
  const bool self = distance == Distance::self;
  works_ = !self || rank == 0;
  peer_ = self ? rank : 1 - rank;
}

void Exchange::transfer(const void* from, void* to, int count, MPI_Datatype type) const {
  MPI_Request requests[2];
  MPI_Irecv(to, count, type, peer_, message_tag, pair_, &requests[0]);
  MPI_Isend(from, count, type, peer_, message_tag, pair_, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

std::vector<double> time_actions(MPI_Comm pair, std::vector<Action> actions, bool answered, double limit) {
  if (!answered) return sample(pair, actions, limit);
  // An empty round trip is interleaved with the others; half of it is the time of the answers.
  actions.push_back([pair] {
    int rank = 0;
    MPI_Comm_rank(pair, &rank);
    if (rank == 0) MPI_Send(nullptr, 0, MPI_BYTE, 1, empty_tag, pair);
    MPI_Recv(nullptr, 0, MPI_BYTE, 1 - rank, empty_tag, pair, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(nullptr, 0, MPI_BYTE, 0, empty_tag, pair);
  });
  std::vector<double> seconds = sample(pair, actions, limit);
  const double answer = seconds.back() / 2;
  seconds.pop_back();
  for (double& of : seconds)
    if (of > 0) of = answer > 0 ? std::max(of - answer, answer / 2) : 0;
  return seconds;
}

}  // namespace bestride::inline perfmodel
