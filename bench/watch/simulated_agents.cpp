// SPDX-License-Identifier: Apache-2.0
// simulated_agents HOSTS RANKS SECONDS [STUCK]: simulates the agents of HOSTS hosts with RANKS ranks each, for SECONDS.
// `bestride run --watch` starts it in place of a launcher. The agents send what those of a real job with 1000
// collective calls per second would send. After STUCK seconds the last rank leaves MPI, and the others wait for it; the
// program then prints the time. At the end it prints how many agents are connected through others.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "cli/hosts/head_link.hpp"
#include "telemetry/record/tick_clock.hpp"
#include "telemetry/waits/sample_job.hpp"

using namespace bestride;

namespace {

using Clock = std::chrono::steady_clock;
constexpr double calls_per_second = 1000;
constexpr int hosts_per_process = 250;
constexpr std::size_t sites = 20, frames = 12;

struct Job {
  int hosts, ranks;
  double seconds, stuck;
};

class SimulatedHost {
 public:
  SimulatedHost(const Job& job, int number, HeadLink link) : job_(job), number_(number), link_(std::move(link)) {}

  std::vector<int> descriptors() const { return link_.descriptors(); }

  void serve(double now) {
    while (const auto received = link_.receive(now)) {
      if (kind_of(*received) == MessageKind::take_stacks) link_.send(message(stacks(now)), now);
      if (const auto look = kind_of(*received) == MessageKind::look ? read_look(*received) : std::nullopt)
        answer(*look, now);
    }
    const bool suspects = now > job_.stuck + 0.5;
    if (now < next_pulse_ && suspects == suspected_) return;
    link_.send(message(Pulse{suspects, false, static_cast<std::uint32_t>(job_.ranks)}), now);
    next_pulse_ = now + 1;
    suspected_ = suspects;
  }

  bool relayed() const { return link_.relayed(); }

 private:
  void answer(const Look& look, double now) {
    HostRanks answer{look.number, now, snapshots(now, look.finished_calls)};
    for (RankSnapshot& rank : answer.ranks) rank.partial = connections_ == link_.connections() && !look.full;
    connections_ = link_.connections();
    link_.send(message(answer), now);
  }

  HostStacks stacks(double now) const {
    HostStacks result;
    for (int i = 0; i < job_.ranks; ++i) {
      const int number = number_ * job_.ranks + i;
      const bool computes = now > job_.stuck && number + 1 == job_.hosts * job_.ranks;
      result.stacks.push_back(
          {number, "", false, {{"main", "solver", "", 0}, {computes ? "assemble" : "MPI_Allreduce", "solver", "", 0}}});
    }
    return result;
  }

  std::vector<RankSnapshot> snapshots(double now, std::uint32_t finished) const {
    const bool stuck = now > job_.stuck;
    const auto made = static_cast<std::uint64_t>(calls_per_second * std::min(now, job_.stuck)) + 1;
    std::vector<RankSnapshot> result;
    for (int i = 0; i < job_.ranks; ++i) {
      const int number = number_ * job_.ranks + i, size = job_.hosts * job_.ranks;
      RankSnapshot rank = SampleJob(1).ranks[0];
      rank.host = "node" + std::to_string(number_), rank.pid = 1000 + i, rank.process_start = 7;
      rank.executable = "/home/user/solver", rank.world_rank = number, rank.world_size = size, rank.visible = true;
      rank.communicators[0].size = size, rank.communicators[0].rank = number;
      rank.ticks_per_second = ticks_per_second(), rank.read_at = ticks();
      rank.modules.push_back({0x400000, std::vector<std::uint8_t>(20, 7), "/home/user/solver"});
      for (std::size_t s = 0; s < sites; ++s) {
        SiteSnapshot site;
        site.address = 64 * s, site.module = 0, site.function = number_of("MPI_Allreduce"), site.calls = made;
        for (std::size_t f = 0; f < frames; ++f) site.stack.push_back({16 * f, 0});
        rank.sites.push_back(std::move(site));
      }
      ThreadSnapshot& thread = rank.threads[0];
      const bool last = number + 1 == size;
      thread.calls = stuck && last ? made - 1 : made;
      thread.state = 'R';
      rank.use.cpu_seconds = now;
      CallSnapshot call;
      call.function = number_of("MPI_Allreduce"), call.communicator = 0, call.bytes = 8;
      const double tick = rank.ticks_per_second;
      for (std::uint64_t n = made - std::min<std::uint64_t>(made, finished); n + 1 < made; ++n) {
        call.number = n, call.ordinal = static_cast<std::uint32_t>(n + 1), call.site = n % sites;
        const double age = now - static_cast<double>(n) / calls_per_second;
        call.entered = rank.read_at - static_cast<std::uint64_t>(std::max(age, 0.001) * tick);
        call.left = call.entered + static_cast<std::uint64_t>(1e-4 * tick);
        thread.finished.push_back(call);
      }
      rank.communicators[0].collectives = thread.calls;
      // When the last call began, and when the last rank left MPI.
      const double unchanged = std::max(now - job_.stuck, 0.5 / calls_per_second);
      const std::uint64_t changed = rank.read_at - static_cast<std::uint64_t>(unchanged * tick);
      thread.last_left = changed;
      if (!(stuck && last)) {
        call.number = made - 1, call.ordinal = static_cast<std::uint32_t>(made), call.left = 0;
        call.entered = changed;
        thread.in_mpi = true;
        thread.current = call;
      }
      result.push_back(std::move(rank));
    }
    return result;
  }

  const Job& job_;
  int number_;
  HeadLink link_;
  unsigned connections_ = 0;  ///< as in the agent
  double next_pulse_ = 0;
  bool suspected_ = false;
};

int simulate(const Job& job, int first, int last, Clock::time_point begin) {
  std::vector<SimulatedHost> hosts;
  const char* const addresses = std::getenv("BESTRIDE_WATCH");
  const char* const keys = std::getenv("BESTRIDE_WATCH_KEY");
  if (!addresses || !keys) {
    std::fprintf(stderr, "simulated_agents: run it as bestride run --watch -- simulated_agents ...\n");
    return 2;
  }
  for (int i = first; i < last; ++i) {
    const double now = std::chrono::duration<double>(Clock::now() - begin).count();
    auto link = HeadLink::connect(
        addresses, keys, Hello{BESTRIDE_VERSION, "node" + std::to_string(i), "simulated", "simulated"}, 60, now);
    if (!link) {
      std::fprintf(stderr, "simulated_agents: %s\n", link.error().text.c_str());
      return 1;
    }
    hosts.emplace_back(job, i, std::move(*link));
    for (SimulatedHost& host : hosts) host.serve(now);
  }
  for (;;) {
    const double now = std::chrono::duration<double>(Clock::now() - begin).count();
    if (now > job.seconds) {
      std::printf("relayed %td\n",
                  std::count_if(hosts.begin(), hosts.end(), [](const auto& h) { return h.relayed(); }));
      std::fflush(stdout);
      return 0;
    }
    for (SimulatedHost& host : hosts) host.serve(now);
    std::vector<pollfd> entries;
    for (const SimulatedHost& host : hosts)
      for (const int descriptor : host.descriptors()) entries.push_back({descriptor, POLLIN, 0});
    poll(entries.data(), entries.size(), 20);
  }
}

}  // namespace

int main(int count, char** words) {
  if (count < 4) {
    std::fprintf(stderr, "simulated_agents HOSTS RANKS SECONDS [STUCK]\n");
    return 2;
  }
  // All agents are connected by then.
  const double connected = 2 + 0.01 * std::atoi(words[1]);
  const Job job{std::atoi(words[1]), std::atoi(words[2]), connected + std::atof(words[3]),
                connected + (count > 4 ? std::atof(words[4]) : 1e9)};
  const Clock::time_point begin = Clock::now();
  std::vector<pid_t> children;
  for (int first = 0; first < job.hosts; first += hosts_per_process)
    if (const pid_t child = fork(); child == 0)
      _exit(simulate(job, first, std::min(first + hosts_per_process, job.hosts), begin));
    else
      children.push_back(child);
  if (job.stuck < job.seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(job.stuck));
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    std::printf("stuck at %.3f\n", std::chrono::duration<double>(now).count());
    std::fflush(stdout);
  }
  int status = 0, worst = 0;
  for (const pid_t child : children) worst = std::max(worst, waitpid(child, &status, 0) == child ? status : 1);
  return worst != 0;
}
