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

/// The name of a rank in a group of processors. `kind`: a letter.
struct Name {
  sockaddr_un address{};
  socklen_t size = 0;
  Name(std::uint64_t job, int rank, char kind, int group) noexcept {
    address.sun_family = AF_UNIX;
    // A leading zero byte selects the abstract namespace.
    const int length =
        std::snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "bestride/%u/%llx/%d/%c%d",
                      static_cast<unsigned>(getuid()), static_cast<unsigned long long>(job), rank, kind, group);
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(length));
  }
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&address); }
};

int datagram_socket() noexcept {
  return inject_failure(FailPoint::presence) ? -1 : socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/// True if some process has bound the name.
bool bound(const Name& name) noexcept {
  const int asking = datagram_socket();
  const bool there = asking >= 0 && connect(asking, name.get(), name.size) == 0;
  if (asking >= 0) close(asking);
  return there;
}

/// A socket with this name; -1: it could not be bound.
int bind_name(const Name& name) noexcept {
  const int made = datagram_socket();
  if (made >= 0 && bind(made, name.get(), name.size) != 0) {
    close(made);
    return -1;
  }
  return made;
}

struct Group {
  char kind;  ///< in its names
  int ProcessorGroups::*number;
  Distance distance;
};
constexpr Group kinds_of_groups[] = {{'c', &ProcessorGroups::cache, Distance::cache},
                                     {'d', &ProcessorGroups::domain, Distance::domain},
                                     {'s', &ProcessorGroups::socket, Distance::socket}};

}  // namespace

PeerDiscovery::~PeerDiscovery() { withdraw(); }

void PeerDiscovery::withdraw() noexcept {
  for (int& socket : sockets_) {
    if (socket >= 0) close(socket);
    socket = -1;
  }
  knows_groups_ = false;
}

void PeerDiscovery::announce(const ProcessorGroups& groups) noexcept {
  if (!groups.known()) return;
  job_ = job_on_this_host();
  rank_ = launcher_rank();
  if (job_ == 0 || rank_ < 0) return;
  groups_ = groups;
  for (std::size_t i = 0; i < sockets_.size(); ++i) {
    const int number = groups_.*kinds_of_groups[i].number;
    if (number < 0) continue;
    sockets_[i] = bind_name(Name(job_, rank_, kinds_of_groups[i].kind, number));
    knows_groups_ |= sockets_[i] >= 0;
  }
}

void PeerDiscovery::confirm(int world_rank, int world_ranks) noexcept {
  if (world_rank != rank_) withdraw();
  if (!knows_groups_) return;
  ranks_ = world_ranks;
  distances_.reset(new (std::nothrow) std::atomic<std::uint8_t>[static_cast<std::size_t>(world_ranks)] {});
  knows_groups_ = distances_ != nullptr;
}

Distance PeerDiscovery::distance_to(int world_rank) noexcept {
  if (!knows_groups_ || world_rank < 0 || world_rank >= ranks_) return Distance::node;
  std::atomic<std::uint8_t>& known = distances_[static_cast<std::size_t>(world_rank)];
  auto distance = static_cast<Distance>(known.load(std::memory_order_relaxed));
  if (distance != Distance::self) return distance;
  distance = Distance::node;
  for (const Group& group : kinds_of_groups)
    if (const int number = groups_.*group.number; number >= 0 && bound(Name(job_, world_rank, group.kind, number))) {
      distance = group.distance;
      break;
    }
  known.store(static_cast<std::uint8_t>(distance), std::memory_order_relaxed);
  return distance;
}

}  // namespace bestride::inline interpose
