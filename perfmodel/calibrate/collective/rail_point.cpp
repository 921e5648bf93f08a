// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/collective/rail_point.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/profiling_names.hpp"  // after mpi.h

namespace bestride::inline perfmodel {
namespace {

constexpr int tag = 4;
constexpr double enough_seconds = 200e-3;  // more than the buffer of a traffic shaper or a switch absorbs
constexpr std::int64_t shortest = 64 << 10, longest = 64 << 20;

/// The text of `rank`, on all ranks.
std::string broadcast_text(int rank, std::string text) {
  auto length = static_cast<int>(text.size());
  PMPI_Bcast(&length, 1, MPI_INT, rank, MPI_COMM_WORLD);
  text.resize(static_cast<std::size_t>(length));
  PMPI_Bcast(text.data(), length, MPI_CHAR, rank, MPI_COMM_WORLD);
  return text;
}

/// The lowest rank with a problem; the number of ranks if there is none.
int first_rank_with(bool problem, const JobTopology& place) {
  int first = problem ? place.rank : place.topology.ranks();
  PMPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return first;
}

std::string on_this_host(const std::string& text) {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return std::string(name) + ": " + text;
}

}  // namespace

Result<Rails> rails_of_all_hosts(const std::string& wanted, const JobTopology& place) {
  const Result<Rails> here = wanted == "auto" ? equal_rails(nics_here()) : named_rails(wanted, nics_here());
  const int nobody = place.topology.ranks();
  if (const int first = first_rank_with(!here, place); first < nobody)
    return Error{broadcast_text(first, here ? "" : on_this_host(here.error().text))};
  const std::string mine = list_of(*here), of_first = broadcast_text(0, mine);
  if (const int other = first_rank_with(mine != of_first, place); other < nobody)
    return Error{broadcast_text(other, on_this_host("the equal NICs are " + mine)) + ", another host's " + of_first +
                 "; name some that all hosts have"};
  if (const int ranks = place.topology.min_ranks_per_node(); ranks < static_cast<int>(here->size()))
    return Error{"with " + std::to_string(ranks) + " ranks on a host some of " + of_first +
                 " would lie idle; start more with --ranks"};
  return here;
}

Result<bool> all_ranks_have(const Rails& rails, const JobTopology& place) {
  const char* const taken = std::getenv("UCX_NET_DEVICES");
  const bool took = taken && std::find(rails.begin(), rails.end(), taken) != rails.end();
  const int first = first_rank_with(!took, place);
  if (first == place.topology.ranks()) return true;
  return Error{broadcast_text(first, on_this_host(taken ? "UCX_NET_DEVICES=" + std::string(taken) + " is set and stays"
                                                        : "a rank was given none"))};
}

void reach_all(const JobTopology& place) {
  const int ranks = place.topology.ranks();
  for (int step = 1; step < ranks; ++step) {
    char out[8]{}, in[8];
    MPI_Request both[2];
    PMPI_Irecv(in, sizeof in, MPI_BYTE, (place.rank + ranks - step) % ranks, tag, MPI_COMM_WORLD, &both[0]);
    PMPI_Isend(out, sizeof out, MPI_BYTE, (place.rank + step) % ranks, tag, MPI_COMM_WORLD, &both[1]);
    wait_all(2, both);
  }
}

int NodeExchange::across(int step) const {
  const int nodes = place_.topology.nodes();
  return place_.topology.ranks_on((place_.my_node() + nodes + step) %
                                  nodes)[static_cast<std::size_t>(place_.my_local_rank())];
}

std::vector<double> NodeExchange::seconds(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(idle_ ? 0 : bytes);
  if (out_.size() < size) out_.resize(size, 1), in_.resize(size, 1);
  yielding_barrier();
  const double before = PMPI_Wtime();
  if (!idle_) {
    MPI_Request both[2];
    PMPI_Irecv(in_.data(), static_cast<int>(bytes), MPI_BYTE, across(-1), tag, MPI_COMM_WORLD, &both[0]);
    PMPI_Isend(out_.data(), static_cast<int>(bytes), MPI_BYTE, across(1), tag, MPI_COMM_WORLD, &both[1]);
    wait_all(2, both);
  }
  const double mine = idle_ ? 0 : PMPI_Wtime() - before;
  yielding_barrier(idle_);
  const Topology& nodes = place_.topology;
  std::vector<double> of_rank(static_cast<std::size_t>(nodes.ranks())),
      of_node(static_cast<std::size_t>(nodes.nodes()));
  PMPI_Allgather(&mine, 1, MPI_DOUBLE, of_rank.data(), 1, MPI_DOUBLE, MPI_COMM_WORLD);
  for (int rank = 0; rank < nodes.ranks(); ++rank) {
    double& slowest = of_node[static_cast<std::size_t>(nodes.node_of(rank))];
    slowest = std::max(slowest, of_rank[static_cast<std::size_t>(rank)]);
  }
  return of_node;
}

std::int64_t NodeExchange::enough_bytes() {
  std::int64_t bytes = shortest;
  for (; bytes < longest; bytes *= 2) {
    const std::vector<double> nodes = seconds(bytes);
    if (*std::max_element(nodes.begin(), nodes.end()) >= enough_seconds) break;
  }
  return bytes;
}

}  // namespace bestride::inline perfmodel
