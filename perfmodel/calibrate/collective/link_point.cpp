// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/collective/link_point.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "perfmodel/calibrate/common/sampling.hpp"

#include "base/profiling_names.hpp"  // after mpi.h

namespace bestride::inline perfmodel {
namespace {

constexpr int tag = 1, answer_tag = 2;
constexpr int burst = 64;
/// Minimum duration of a stream, so that the buffer of a traffic shaper or a switch does not make it look faster.
constexpr double stream_seconds = 100e-3;
constexpr std::size_t first_stream = 64 << 10, longest_stream = 64 << 20;
constexpr std::size_t min_rounds = 8;
constexpr std::size_t copied = 8 << 20;  ///< larger than a rank's share of the caches

/// The time of the slowest rank in the best round: the capacity of a link is a limit, and every disturbance makes a
/// round longer.
double timed(const std::function<void()>& action, bool idle, double limit) {
  std::vector<double> samples;
  if (!idle) action();
  const double start = PMPI_Wtime();
  for (int go_on = 1; go_on;) {
    yielding_barrier();
    const double before = PMPI_Wtime();
    if (!idle) action();
    const double seconds = idle ? 0 : PMPI_Wtime() - before;
    yielding_barrier(idle);
    samples.push_back(largest_of_all_ranks(seconds));
    go_on = samples.size() < min_rounds || (samples.size() < max_rounds && PMPI_Wtime() - start < limit);
    PMPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  return *std::min_element(samples.begin(), samples.end());
}

void send_many(int peer, bool sends, int count) {
  char byte[8]{};
  MPI_Request requests[burst];
  for (int i = 0; i < count; ++i) {
    if (sends)
      PMPI_Isend(byte, sizeof byte, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[i]);
    else
      PMPI_Irecv(byte, sizeof byte, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[i]);
  }
  PMPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

/// A round trip: `count` short messages in one direction, an empty one back.
double round_trip(const JobTopology& place, int count, double limit) {
  const int peer = place.across(1);
  return timed(
      [&] {
        const bool first = place.my_node() == 0;
        send_many(peer, first, count);
        if (first)
          PMPI_Recv(nullptr, 0, MPI_BYTE, peer, answer_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
          PMPI_Send(nullptr, 0, MPI_BYTE, peer, answer_tag, MPI_COMM_WORLD);
      },
      peer < 0, limit);
}

/// Seconds per byte over a node's link while `streams` ranks of each node exchange.
double stream(const JobTopology& place, int streams, double limit) {
  const int peer = place.across(streams);
  std::vector<char> out(peer < 0 ? 0 : longest_stream, 1), in(out);
  for (std::size_t bytes = first_stream;; bytes *= 2) {
    const bool last = bytes * 2 > longest_stream;
    const auto exchange = [&] {
      MPI_Request both[2];
      PMPI_Irecv(in.data(), static_cast<int>(bytes), MPI_BYTE, peer, tag, MPI_COMM_WORLD, &both[0]);
      PMPI_Isend(out.data(), static_cast<int>(bytes), MPI_BYTE, peer, tag, MPI_COMM_WORLD, &both[1]);
      wait_all(2, both);
    };
    const double seconds = timed(exchange, peer < 0, last ? limit : 0);
    if (seconds < stream_seconds && !last) continue;
    return std::min(seconds, timed(exchange, peer < 0, limit)) / (static_cast<double>(bytes) * streams);
  }
}

}  // namespace

double measure_link(const LinkField& field, const JobTopology& place, double limit) {
  const int both = place.lanes_across();
  if (field.name == "latency") return round_trip(place, 1, limit) / 2;
  if (field.name == "overhead") {
    const double more = round_trip(place, burst, limit / 2) - round_trip(place, 1, limit / 2);
    return std::max(more / (burst - 1), 0.0);
  }
  if (field.name == "wire_byte") return stream(place, both, limit);
  if (field.name == "stream_byte") return stream(place, 1, limit);
  if (field.name == "copy_byte") {
    std::vector<char> from(copied, 1), to(copied, 2);
    return timed([&] { std::memcpy(to.data(), from.data(), copied); }, false, limit) / static_cast<double>(copied);
  }
  if (place.topology.max_ranks_per_node() == 1) return 0;
  constexpr int turns = 16;
  return timed(
             [&] {
               for (int i = 0; i < turns; ++i) PMPI_Barrier(place.node);
             },
             false, limit) /
         turns;
}

}  // namespace bestride::inline perfmodel
