// SPDX-License-Identifier: Apache-2.0
#include "interpose/peers/peer_discovery.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "base/launcher_rank.hpp"
#include "interpose/mpi/fault_injection.hpp"

namespace bestride::inline interpose {
namespace {

/// -1 if the variable is missing or not a number.
long long launcher_number(const char* name) noexcept {
  const char* text = std::getenv(name);
  return text && *text >= '0' && *text <= '9' ? std::atoll(text) : -1;
}

/// The process at the other end of the launcher's socket: Hydra's proxy, one per host and job. -1 if unknown.
long long launcher_process() noexcept {
  const long long fd = launcher_number("PMI_FD");
  ucred peer{};
  socklen_t size = sizeof peer;
  if (fd < 0 || getsockopt(static_cast<int>(fd), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return -1;
  return peer.pid;
}

std::uint64_t job_on_this_host() noexcept {
  // Hydra is checked first: several of its jobs may run inside one Slurm step, where all of them have the same Slurm
  // job and step numbers.
  if (std::getenv("MPI_LOCALRANKID")) {
    const long long launcher = launcher_process();
    return launcher > 0 ? (std::uint64_t{1} << 61) | static_cast<std::uint64_t>(launcher) : 0;
  }
  const long long job = launcher_number("SLURM_JOB_ID"), step = launcher_number("SLURM_STEP_ID");
  if (job <= 0 || step < 0) return 0;
  return (std::uint64_t{1} << 62) | (static_cast<std::uint64_t>(job) << 24) |
         static_cast<std::uint64_t>(step & 0xffffff);
}

struct Name {
  sockaddr_un address{};
  socklen_t size = 0;
  Name(std::uint64_t job, int rank) noexcept {
    address.sun_family = AF_UNIX;
    // A leading zero byte selects the abstract namespace.
    const int length = std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "bestride/%u/%llx/%d",
                                     static_cast<unsigned>(getuid()), static_cast<unsigned long long>(job), rank);
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(length));
  }
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&address); }
};

int datagram_socket() noexcept {
  return inject_failure(FailPoint::presence) ? -1 : socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

}  // namespace

PeerDiscovery::~PeerDiscovery() { withdraw(); }

void PeerDiscovery::withdraw() noexcept {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
}

void PeerDiscovery::announce() noexcept {
  job_ = job_on_this_host();
  rank_ = launcher_rank();
  if (job_ == 0 || rank_ < 0) return;
  socket_ = datagram_socket();
  const Name name(job_, rank_);
  if (socket_ >= 0 && bind(socket_, name.get(), name.size) != 0) withdraw();
}

void PeerDiscovery::confirm(int world_rank, int world_ranks) noexcept {
  if (world_rank != rank_) withdraw();
  ranks_ = world_ranks;
  answers_.reset(new (std::nothrow) std::atomic<std::uint8_t>[static_cast<std::size_t>(world_ranks)] {});
}

bool PeerDiscovery::has(int world_rank) noexcept {
  // If this rank could not bind its own name, the other names may belong to another job.
  if (!announced() || !answers_ || world_rank < 0 || world_rank >= ranks_) return false;
  std::atomic<std::uint8_t>& answer = answers_[static_cast<std::size_t>(world_rank)];
  if (answer.load(std::memory_order_relaxed) == unasked) {
    const int asking = datagram_socket();
    const Name name(job_, world_rank);
    const bool there = asking >= 0 && connect(asking, name.get(), name.size) == 0;
    if (asking >= 0) close(asking);
    answer.store(there ? present : absent, std::memory_order_relaxed);
  }
  return answer.load(std::memory_order_relaxed) == present;
}

}  // namespace bestride::inline interpose
