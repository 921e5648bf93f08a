// SPDX-License-Identifier: Apache-2.0
#include "job.hpp"

#include <sched.h>

#include <cstdio>

namespace fault_lab {
namespace {

int rank_in_world() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int ranks_in_world() {
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

}  // namespace

Job::Job(const Options& given, Companion& child)
    : options(given),
      companion(child),
      rank(rank_in_world()),
      ranks(ranks_in_world()),
      plan(make_plan(given, ranks)),
      second_plan(make_second_plan(given, plan, ranks)),
      log(given.log) {
  computation.calibrate();
  int shape[2] = {0, 0};
  const int periodic[2] = {1, 1};
  MPI_Dims_create(ranks, 2, shape);
  MPI_Cart_create(MPI_COMM_WORLD, 2, shape, periodic, 0, &cart);
  for (MPI_Comm* comm : {&first, &second, &farm}) MPI_Comm_dup(MPI_COMM_WORLD, comm);
}

void Job::close() {
  for (MPI_Comm* comm : {&cart, &first, &second, &farm}) MPI_Comm_free(comm);
}

bool Job::trigger(Kind kind) const { return plan.kind == kind && trigger(plan); }

bool Job::trigger(const Plan& which) const {
  if (which.step != step || which.phase != phase || which.rank != rank) return false;
  log.write(which, rank, step, phase);
  return true;
}

std::uint64_t Job::word(int source, int message_number, std::size_t at) const {
  const auto place = std::uint64_t(step) << 32 | std::uint64_t(phase) << 24 | std::uint64_t(message_number);
  return mix(std::uint64_t(options.seed), place, std::uint64_t(source), at) >> 8;
}

Words Job::message(int source, int message_number, std::size_t count) const {
  Words data(count);
  for (std::size_t at = 0; at < count; ++at) data[at] = word(source, message_number, at);
  return data;
}

void Job::check(const char* what, std::size_t at, std::uint64_t got, std::uint64_t expected) {
  if (int(phase) < usual_phases) checksum += mix(got, std::uint64_t(step) << 8 | unsigned(phase), at);
  if (got == expected || wrong++ > 0) return;
  std::fprintf(stderr, "fault_lab: rank %d step %d phase %s: word %zu of %s is %016llx, not %016llx\n", rank, step,
               name_of(phase), at, what, static_cast<unsigned long long>(got),
               static_cast<unsigned long long>(expected));
}

void Job::check(const char* what, const std::uint64_t* got, const Words& expected) {
  for (std::size_t at = 0; at < expected.size(); ++at) check(what, at, got[at], expected[at]);
}

void Job::compute(double share) {
  const double factor = 1 + options.imbalance / 100 * deviation(options, rank, step, phase);
  computation.run(1e-6 * options.work_us * share * factor * (1 + slowdown));
}

void Job::wait_all(std::vector<MPI_Request>& requests) const {
  const int count = int(requests.size());
  if (!options.yield) {
    MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
    return;
  }
  for (int done = 0; !done;) {
    MPI_Testall(count, requests.data(), &done, MPI_STATUSES_IGNORE);
    if (!done) sched_yield();
  }
}

}  // namespace fault_lab
