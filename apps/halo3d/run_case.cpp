// SPDX-License-Identifier: Apache-2.0
#include "run_case.hpp"

#include <algorithm>

#include "base/median.hpp"
#include "exchange.hpp"
#include "pattern.hpp"

namespace halo3d {
namespace {

template <class Value>
void reduce(std::vector<Value>& values, MPI_Datatype type, MPI_Op operation, MPI_Comm communicator) {
  MPI_Allreduce(MPI_IN_PLACE, values.data(), int(values.size()), type, operation, communicator);
}

/// Counts the messages and bytes that this rank sends in one exchange.
void count_traffic(const std::vector<Channel>& channels, CaseResult& result) {
  for (const Channel& channel : channels) {
    if (channel.to == MPI_PROC_NULL) continue;
    int bytes = 0;
    MPI_Type_size(channel.send.type.get(), &bytes);
    result.messages += 1;
    result.bytes_sent += bytes;
  }
}

/// Combines the results of all ranks.
void combine(CaseResult& result, MPI_Comm communicator) {
  std::vector<double> slowest = {result.setup_s, result.update_s,         result.exchanging_s,
                                 result.check_s, double(result.messages), double(result.bytes_sent)};
  const auto fixed = std::ptrdiff_t(slowest.size());
  slowest.insert(slowest.end(), result.exchange_s.begin(), result.exchange_s.end());
  reduce(slowest, MPI_DOUBLE, MPI_MAX, communicator);
  result.setup_s = slowest[0], result.update_s = slowest[1], result.exchanging_s = slowest[2],
  result.check_s = slowest[3];
  result.messages = int(slowest[4]), result.bytes_sent = static_cast<long long>(slowest[5]);
  result.exchange_s.assign(slowest.begin() + fixed, slowest.end());
  std::vector<long long> totals = {result.halo_checked, result.other_checked, result.wrong};
  reduce(totals, MPI_LONG_LONG, MPI_SUM, communicator);
  result.halo_checked = totals[0], result.other_checked = totals[1], result.wrong = totals[2];
}

}  // namespace

double CaseResult::median_s() const { return bestride::median_of(exchange_s); }

double CaseResult::minimum_s() const { return *std::min_element(exchange_s.begin(), exchange_s.end()); }

CaseResult run_case(const Options& options, const Grid& grid) {
  CaseResult result;
  result.grid = grid.ranks();
  MPI_Comm_size(grid.communicator(), &result.ranks);

  Field field(options);
  const auto pattern = make_pattern(grid, field, options);
  pattern->clear();

  const double before_setup = MPI_Wtime();
  const std::vector<Channel> channels = channels_of(grid, field, options);
  const auto exchange = make_exchange(options.method, grid, options.neighbors, channels);
  result.setup_s = MPI_Wtime() - before_setup;
  count_traffic(channels, result);

  Count count;
  result.exchanges = options.warmup + options.iterations;
  for (int iteration = 0; iteration < result.exchanges; ++iteration) {
    const double start = MPI_Wtime();
    pattern->update(iteration);
    const double updated = MPI_Wtime();
    // Without the barrier the exchange time would include waiting for late ranks.
    MPI_Barrier(grid.communicator());
    const double ready = MPI_Wtime();
    exchange->run();
    const double exchanged = MPI_Wtime();
    if (options.damage) pattern->damage(options.damage);
    pattern->check(iteration, count);
    const double checked = MPI_Wtime();
    if (iteration < options.warmup) continue;
    result.update_s += updated - start;
    result.exchanging_s += exchanged - ready;
    result.check_s += checked - exchanged;
    result.exchange_s.push_back(exchanged - ready);
  }
  result.halo_checked = count.halo_checked;
  result.other_checked = count.other_checked;
  result.wrong = count.wrong;
  result.first_wrong = count.first_wrong;
  combine(result, grid.communicator());
  return result;
}

}  // namespace halo3d
