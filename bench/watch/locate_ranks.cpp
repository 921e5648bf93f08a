// SPDX-License-Identifier: Apache-2.0
// locate_ranks [RANKS] [ROUNDS] [PART]: how long one observation of the detector takes in a job of RANKS (16384) ranks,
// for each way in which ranks can wait, or only for those whose names contain PART. Prints the median of ROUNDS (9) and
// the peak memory; then the verdict.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/median.hpp"
#include "telemetry/detector/detector.hpp"
#include "telemetry/waits/sample_job.hpp"

using namespace bestride;

namespace {

double milliseconds(const std::function<void()>& work) {
  const auto before = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - before).count();
}

std::string part;

void measure(const char* name, SampleJob job, int rounds) {
  if (std::string(name).find(part) == std::string::npos) return;
  for (RankSnapshot& rank : job.ranks) {
    rank.visible = true;
    rank.pid = 1000 + rank.world_rank;
    rank.threads[0].state = 'R';
  }
  Detector detector;
  std::vector<double> times;
  std::vector<Finding> found;
  double now = 100;
  for (int i = 0; i < 60; ++i) found = detector.observe({now += 1, job.ranks});
  for (int i = 0; i < rounds; ++i)
    times.push_back(milliseconds([&] { found = detector.observe({now += 1, job.ranks}); }));
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  std::printf("%-52s %8.1f ms   peak %4ld MiB   ", name, bestride::median_of(times), use.ru_maxrss / 1024);
  if (found.empty())
    std::printf("no finding\n");
  else
    std::printf("%s, %zu ranks\n", bestride::name(found[0].fault), found[0].culprits.size());
}

}  // namespace

int main(int count, char** words) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const int ranks = count > 1 ? std::atoi(words[1]) : 16384, rounds = count > 2 ? std::atoi(words[2]) : 9;
  if (ranks < 4 || rounds < 1) return std::fprintf(stderr, "locate_ranks [RANKS] [ROUNDS] [PART]\n"), 2;
  if (count > 3) part = words[3];
  std::printf("%d ranks, one observation:\n", ranks);
  measure("all outside MPI", SampleJob(ranks), rounds);
  {
    SampleJob job(ranks);
    for (int i = 1; i < ranks; ++i) job.collective(i, "MPI_Allreduce");
    measure("all but one in a collective call", job, rounds);
  }
  {
    SampleJob job(ranks);
    for (int i = 0; i < ranks; i += 2) job.collective(i, "MPI_Allreduce");
    measure("one half in a collective call, the other outside", job, rounds);
  }
  {
    SampleJob job(ranks);
    for (int i = 0; i < ranks; ++i) job.collective(i, i % 2 ? "MPI_Allreduce" : "MPI_Barrier");
    measure("one half in another call", job, rounds);
  }
  {
    SampleJob job(ranks);
    for (int i = 0; i < ranks; ++i) job.call(i, "MPI_Recv", (i + 1) % ranks);
    measure("a ring of receives", job, rounds);
  }
  {
    SampleJob job(ranks);
    for (int i = 1; i < ranks; ++i) job.call(i, "MPI_Recv", i - 1);
    measure("a chain of receives", job, rounds);
  }
  {
    SampleJob job(ranks);
    for (int i = 0; i < ranks - 1; ++i) job.call(i, "MPI_Recv", i + 1);
    measure("a chain of receives from higher ranks", job, rounds);
  }
  {
    SampleJob job(ranks);
    for (int i = 1; i < ranks; ++i) {
      job.call(i, "MPI_Finalize");
      job.ranks[static_cast<std::size_t>(i)].state = ProcessState::finalizing;
    }
    measure("all but one in MPI_Finalize", job, rounds);
  }
  {
    SampleJob job(ranks);
    for (int i = 0; i < ranks; ++i) {
      job.call(i, "MPI_Waitall");
      for (const int distance : {1, -1, 128, -128}) job.request(i, "MPI_Irecv", (i + distance + ranks) % ranks);
    }
    job.leave(0);
    // All but rank 0 have sent their messages.
    for (int i = 1; i < ranks; ++i)
      for (const int distance : {1, -1, 128, -128}) {
        PeerSnapshot peer;
        peer.rank = static_cast<std::uint32_t>((i + distance + ranks) % ranks);
        peer.sent_messages = peer.received_messages = 1;
        job.ranks[static_cast<std::size_t>(i)].peers.push_back(peer);
      }
    measure("a halo exchange, one rank outside", job, rounds);
  }
  {
    SampleJob job(ranks);
    std::vector<int> even;
    for (int i = 0; i < ranks; i += 2) even.push_back(i);
    job.communicator(77, even);
    for (const int i : even)
      if (i > 0) job.collective(i, "MPI_Allreduce", no_rank, 1);
    measure("a collective call on scattered members, one outside", job, rounds);
  }
}
