// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/collective/piece_point.hpp"

#include <mpi.h>

#include <algorithm>
#include <vector>

#include "base/median.hpp"
#include "perfmodel/collective/costs.hpp"

namespace bestride::inline perfmodel {
namespace {

constexpr int tag = 3;
constexpr std::int64_t shortest_piece = 16 << 10, longest_piece = 4 << 20, longest = 64 << 20;
/// Long enough that the buffer of a traffic shaper or a switch does not make it look faster.
constexpr double exchange_seconds = 200e-3;
constexpr int min_pieces = 8;
constexpr double near = 1.03;

/// One direction of the exchange between two ranks, as collectives send and receive: several messages at a time, in
/// order.
class Stream {
 public:
  Stream(std::vector<char>& data, std::int64_t bytes, std::int64_t piece, int peer, bool sends)
      : data_(data),
        bytes_(bytes),
        piece_(piece),
        peer_(peer),
        sends_(sends),
        requests_(static_cast<std::size_t>(messages_in_flight(piece)), MPI_REQUEST_NULL) {}

  /// Continues as far as possible without waiting. Returns true if the stream is complete.
  bool step() {
    for (;; ++started_) {
      MPI_Request& request = requests_[static_cast<std::size_t>(started_) % requests_.size()];
      int free = 0;
      PMPI_Test(&request, &free, MPI_STATUS_IGNORE);
      if (!free) return false;
      const std::int64_t first = started_ * piece_;
      if (first >= bytes_) break;
      start(data_.data() + first, std::min(piece_, bytes_ - first), &request);
    }
    int all = 0;
    PMPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all, MPI_STATUSES_IGNORE);
    return all;
  }

 private:
  void start(char* data, std::int64_t bytes, MPI_Request* request) {
    const int count = static_cast<int>(bytes);
    if (!sends_) {
      PMPI_Irecv(data, count, MPI_BYTE, peer_, tag, MPI_COMM_WORLD, request);
      return;
    }
    (unacknowledged_.synchronous(bytes) ? PMPI_Issend : PMPI_Isend)(data, count, MPI_BYTE, peer_, tag, MPI_COMM_WORLD,
                                                                    request);
  }

  std::vector<char>& data_;
  const std::int64_t bytes_, piece_;
  const int peer_;
  const bool sends_;
  std::vector<MPI_Request> requests_;
  std::int64_t started_ = 0;
  Unacknowledged unacknowledged_;
};

class Exchange {
 public:
  explicit Exchange(const JobTopology& place)
      : peer_(place.across(place.lanes_across())), out_(peer_ < 0 ? 0 : longest, 1), in_(out_) {}

  /// Seconds of the slowest rank.
  double timed(std::int64_t bytes, std::int64_t piece) {
    yielding_barrier();
    const double before = PMPI_Wtime();
    if (peer_ >= 0) run(bytes, piece);
    const double seconds = peer_ < 0 ? 0 : PMPI_Wtime() - before;
    yielding_barrier(peer_ < 0);
    return largest_of_all_ranks(seconds);
  }

 private:
  void run(std::int64_t bytes, std::int64_t piece) {
    Stream sent(out_, bytes, piece, peer_, true), received(in_, bytes, piece, peer_, false);
    for (bool complete = false; !complete; yield_processor()) {
      const bool one = received.step();
      complete = sent.step() && one;
    }
  }

  const int peer_;
  std::vector<char> out_, in_;
};

}  // namespace

std::int64_t measure_piece(const JobTopology& place, int rounds) {
  Exchange exchange(place);
  std::int64_t bytes = min_pieces * shortest_piece;
  exchange.timed(bytes, shortest_piece);
  while (bytes < longest && exchange.timed(bytes, shortest_piece) < exchange_seconds) bytes *= 2;
  std::vector<std::int64_t> pieces;
  for (std::int64_t piece = shortest_piece; piece <= std::min(longest_piece, bytes / min_pieces); piece *= 2)
    pieces.push_back(piece);
  std::vector<std::vector<double>> samples(pieces.size());
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < pieces.size(); ++i) samples[i].push_back(exchange.timed(bytes, pieces[i]));
  std::vector<double> seconds;
  seconds.reserve(samples.size());
  for (const std::vector<double>& of : samples) seconds.push_back(median_of(of));
  const double least = *std::min_element(seconds.begin(), seconds.end());
  const auto first = std::find_if(seconds.begin(), seconds.end(), [&](double one) { return one <= near * least; });
  return pieces[static_cast<std::size_t>(first - seconds.begin())];
}

}  // namespace bestride::inline perfmodel
