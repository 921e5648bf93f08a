// SPDX-License-Identifier: Apache-2.0
#include "training.hpp"

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>

#include "communication.hpp"

namespace zero_step {
namespace {

using Bytes = std::unique_ptr<std::byte[]>;
Bytes make_bytes(std::size_t count) { return std::make_unique<std::byte[]>(count); }

class Training {
 public:
  Training(const Options& options, const std::vector<Unit>& units);
  void step(int number);
  Outcome take() { return std::move(outcome_); }

 private:
  /// Buffers and calls of one unit. Gathered words and gradients alternate between two buffers, so that the calls of
  /// one unit can run while the next unit is computed.
  struct Part {
    Bytes words;  ///< this rank's share in the gathered type
    Bytes sum;    ///< this rank's result of the reduce-scatter
    Operation gather, scatter;
  };

  /// Runs `work` and adds its duration to the phase.
  template <class Work>
  void timed(Phase phase, Work work) {
    const double start = MPI_Wtime();
    work();
    outcome_.phases[phase].seconds += MPI_Wtime() - start;
  }
  void book_call(Phase phase, std::size_t share_bytes) {
    outcome_.phases[phase].calls += 1;
    outcome_.phases[phase].bytes += static_cast<long long>(share_bytes) * (ranks_ - 1);
  }
  std::size_t word_bytes() const { return bytes_of(options_.element); }
  std::size_t sum_bytes() const { return options_.exact ? sizeof(std::int64_t) : sizeof(float); }
  Words gathered(std::size_t unit) const {
    return {words_[unit % 2].get(), units_[unit].share * ranks_, options_.element};
  }

  void start_gather(Phase phase, std::size_t unit);
  double forward(double activation, bool damaged);
  void backward(double activation, std::uint64_t seed);
  void make_gradients(std::size_t unit, double activation, std::uint64_t seed);
  void finish_scatter(std::size_t unit);
  void optimize(int number);

  const Options& options_;
  const std::vector<Unit>& units_;
  int rank_ = 0;
  int ranks_ = 0;
  Bytes words_[2], gradients_[2];
  std::vector<Part> parts_;
  std::vector<std::vector<double>> totals_;  ///< gradients of this rank's shares, summed over the micro-batches
  std::vector<std::vector<std::int64_t>> exact_totals_;
  double norm_ = 0, rate_ = 0;
  Operation largest_, announced_;
  Outcome outcome_;
};

Training::Training(const Options& options, const std::vector<Unit>& units)
    : options_(options),
      units_(units),
      largest_(make_allreduce_max(options.form, &norm_)),
      announced_(make_broadcast(options.form, &rate_)) {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  std::size_t most = 0;
  for (const Unit& unit : units_) most = std::max(most, unit.share * ranks_);
  for (int turn = 0; turn < 2; ++turn)
    words_[turn] = make_bytes(most * word_bytes()), gradients_[turn] = make_bytes(most * sum_bytes());
  const MPI_Datatype word = options_.element == Element::float32 ? MPI_FLOAT : MPI_UINT16_T;
  const MPI_Datatype sum = options_.exact ? MPI_INT64_T : MPI_FLOAT;
  parts_.reserve(units_.size());
  for (std::size_t number = 0; number < units_.size(); ++number) {
    const Unit& unit = units_[number];
    Bytes words = make_bytes(unit.share * word_bytes()), result = make_bytes(unit.share * sum_bytes());
    Operation gather = make_allgather(options_.form, words.get(), words_[number % 2].get(), int(unit.share), word);
    Operation scatter =
        make_reduce_scatter(options_.form, gradients_[number % 2].get(), result.get(), int(unit.share), sum);
    parts_.push_back({std::move(words), std::move(result), std::move(gather), std::move(scatter)});
    AdamState state(unit.share);
    for (std::size_t i = 0; i < unit.share; ++i) state.master[i] = initial_value(unit, number, rank_ * unit.share + i);
    store_words(state.master.data(), unit.share, options_.element, parts_.back().words.get());
    outcome_.shares.push_back(std::move(state));
    totals_.emplace_back(options_.exact ? 0 : unit.share);
    exact_totals_.emplace_back(options_.exact ? unit.share : 0);
  }
}

void Training::start_gather(Phase phase, std::size_t unit) {
  timed(phase, [&] { parts_[unit].gather.start(); });
  book_call(phase, units_[unit].share * word_bytes());
}

double Training::forward(double activation, bool damaged) {
  const bool ahead = options_.form != Form::blocking;
  if (ahead) start_gather(forward_gather, 0);
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    if (!ahead) start_gather(forward_gather, unit);
    timed(forward_gather, [&] { parts_[unit].gather.finish(); });
    if (ahead && unit + 1 < units_.size()) start_gather(forward_gather, unit + 1);
    if (damaged && unit + 1 == units_.size())
      for (int word = 0; word < options_.damage; ++word)
        words_[unit % 2][(word + 1) * word_bytes() - 1] ^= std::byte{0x01};
    timed(compute,
          [&] { activation = next_activation(activation, projection(gathered(unit), units_[unit].elements)); });
    outcome_.activations.push_back(activation);
  }
  return activation;
}

void Training::make_gradients(std::size_t unit, double activation, std::uint64_t seed) {
  const Words words = gathered(unit);
  std::byte* const to = gradients_[unit % 2].get();
  for (std::size_t i = 0; i < words.count; ++i) {
    const double value = i < units_[unit].elements ? gradient(seed, unit, i, activation, words[i]) : 0;
    if (options_.exact)
      reinterpret_cast<std::int64_t*>(to)[i] = fixed(value);
    else
      reinterpret_cast<float*>(to)[i] = float(value);
  }
}

void Training::finish_scatter(std::size_t unit) {
  timed(reduce_scatter, [&] { parts_[unit].scatter.finish(); });
  timed(compute, [&] {
    const std::byte* const sum = parts_[unit].sum.get();
    for (std::size_t i = 0; i < units_[unit].share; ++i)
      if (options_.exact)
        exact_totals_[unit][i] += reinterpret_cast<const std::int64_t*>(sum)[i];
      else
        totals_[unit][i] += double(reinterpret_cast<const float*>(sum)[i]);
  });
}

void Training::backward(double activation, std::uint64_t seed) {
  const bool ahead = options_.form != Form::blocking;
  const std::size_t last = units_.size() - 1;
  if (ahead) start_gather(backward_gather, last);
  for (std::size_t at = 0; at <= last; ++at) {
    const std::size_t unit = last - at;
    if (!ahead) start_gather(backward_gather, unit);
    timed(backward_gather, [&] { parts_[unit].gather.finish(); });
    if (ahead && unit > 0) start_gather(backward_gather, unit - 1);
    timed(compute, [&] {
      activation = next_activation(activation, projection(gathered(unit), units_[unit].elements));
      make_gradients(unit, activation, seed);
    });
    outcome_.activations.push_back(activation);
    timed(reduce_scatter, [&] { parts_[unit].scatter.start(); });
    book_call(reduce_scatter, units_[unit].share * sum_bytes());
    // The previous sum continues while the gradients of this unit are computed in the other buffer.
    if (!ahead)
      finish_scatter(unit);
    else if (at > 0)
      finish_scatter(unit + 1);
  }
  if (ahead) finish_scatter(0);
}

void Training::optimize(int number) {
  const double batches = double(options_.micro) * ranks_;
  timed(optimizer, [&] {
    norm_ = 0;
    for (std::size_t unit = 0; unit < units_.size(); ++unit) {
      std::vector<double>& total = totals_[unit];
      total.resize(units_[unit].share);
      for (std::size_t i = 0; i < total.size(); ++i) {
        if (options_.exact) total[i] = from_fixed(exact_totals_[unit][i]);
        total[i] /= batches;
        norm_ = std::max(norm_, std::abs(total[i]));
      }
    }
  });
  rate_ = rank_ == 0 ? learning_rate(options_.rate, number) : 0;
  timed(others, [&] {
    largest_.start();
    largest_.finish();
    announced_.start();
    announced_.finish();
  });
  outcome_.phases[others].calls += 2;
  outcome_.phases[others].bytes += 2 * sizeof(double);
  timed(optimizer, [&] {
    const double factor = clip(norm_);
    const Adam adam(rate_, number);
    for (std::size_t unit = 0; unit < units_.size(); ++unit) {
      AdamState& state = outcome_.shares[unit];
      for (std::size_t i = 0; i < units_[unit].share; ++i) adam.update(state, i, float(totals_[unit][i] * factor));
      store_words(state.master.data(), units_[unit].share, options_.element, parts_[unit].words.get());
      std::fill(totals_[unit].begin(), totals_[unit].end(), 0.0);
      std::fill(exact_totals_[unit].begin(), exact_totals_[unit].end(), 0);
    }
  });
}

void Training::step(int number) {
  const double start = MPI_Wtime();
  for (int micro = 0; micro < options_.micro; ++micro) {
    const std::uint64_t seed = sample_seed(number, micro, rank_);
    backward(forward(first_activation(seed), micro + 1 == options_.micro), seed);
  }
  optimize(number);
  outcome_.step_s.push_back(MPI_Wtime() - start);
}

}  // namespace

const char* name_of(Phase phase) {
  constexpr const char* names[] = {"forward gather", "backward gather", "reduce-scatter",
                                   "optimizer",      "compute",         "others"};
  return names[phase];
}

Outcome train(const Options& options, const std::vector<Unit>& units) {
  Training training(options, units);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int number = 0; number < options.steps; ++number) training.step(number);
  return training.take();
}

}  // namespace zero_step
