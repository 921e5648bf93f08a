// SPDX-License-Identifier: Apache-2.0
#include "reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>

namespace zero_step {
namespace {

class Reference {
 public:
  Reference(const Options& options, const std::vector<Unit>& units, int rank, int ranks);
  void step(int number);
  const std::vector<AdamState>& states() const { return states_; }
  const std::vector<double>& activations() const { return activations_; }

 private:
  /// The activations of a rank in one micro-batch, forward and then backward.
  std::vector<double> pass(std::uint64_t seed) const;

  const Options& options_;
  const std::vector<Unit>& units_;
  int rank_, ranks_;
  std::vector<AdamState> states_;  ///< the whole state of each unit, padding included
  std::vector<std::unique_ptr<std::byte[]>> words_;
  std::vector<double> projected_;
  std::vector<double> activations_;
};

Reference::Reference(const Options& options, const std::vector<Unit>& units, int rank, int ranks)
    : options_(options), units_(units), rank_(rank), ranks_(ranks), projected_(units.size()) {
  for (std::size_t number = 0; number < units_.size(); ++number) {
    states_.emplace_back(units_[number].share * ranks);
    AdamState& state = states_.back();
    for (std::size_t i = 0; i < state.master.size(); ++i) state.master[i] = initial_value(units_[number], number, i);
    words_.push_back(std::make_unique<std::byte[]>(state.master.size() * bytes_of(options_.element)));
  }
}

std::vector<double> Reference::pass(std::uint64_t seed) const {
  std::vector<double> activations;
  double activation = first_activation(seed);
  for (const double projected : projected_) activations.push_back(activation = next_activation(activation, projected));
  for (std::size_t unit = units_.size(); unit-- > 0;)
    activations.push_back(activation = next_activation(activation, projected_[unit]));
  return activations;
}

void Reference::step(int number) {
  std::vector<Words> words;
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    const std::size_t count = states_[unit].master.size();
    store_words(states_[unit].master.data(), count, options_.element, words_[unit].get());
    words.push_back({words_[unit].get(), count, options_.element});
    projected_[unit] = projection(words[unit], units_[unit].elements);
  }
  struct Sample {
    std::uint64_t seed;
    std::vector<double> activations;
  };
  std::vector<Sample> samples;
  for (int micro = 0; micro < options_.micro; ++micro)
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::uint64_t seed = sample_seed(number, micro, rank);
      samples.push_back({seed, pass(seed)});
      if (rank == rank_)
        activations_.insert(activations_.end(), samples.back().activations.begin(), samples.back().activations.end());
    }
  std::vector<std::vector<double>> means;
  double norm = 0;
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    std::vector<double> mean(words[unit].count);
    for (std::size_t i = 0; i < units_[unit].elements; ++i) {
      std::int64_t exact_sum = 0;
      double sum = 0;
      for (const Sample& sample : samples) {
        const double one =
            gradient(sample.seed, unit, i, sample.activations[2 * units_.size() - 1 - unit], words[unit][i]);
        options_.exact ? void(exact_sum += fixed(one)) : void(sum += one);
      }
      mean[i] = (options_.exact ? from_fixed(exact_sum) : sum) / double(samples.size());
      norm = std::max(norm, std::abs(mean[i]));
    }
    means.push_back(std::move(mean));
  }
  const double factor = clip(norm);
  const Adam adam(learning_rate(options_.rate, number), number);
  for (std::size_t unit = 0; unit < units_.size(); ++unit)
    for (std::size_t i = 0; i < means[unit].size(); ++i) adam.update(states_[unit], i, float(means[unit][i] * factor));
}

}  // namespace

Comparison compare_with_reference(const Options& options, const std::vector<Unit>& units, const Outcome& outcome,
                                  int rank, int ranks) {
  Reference reference(options, units, rank, ranks);
  for (int number = 0; number < options.steps; ++number) reference.step(number);

  Comparison result;
  const double tolerance = options.exact ? 0 : 0.01 * options.rate * options.steps;
  const double activation_tolerance = options.exact ? 0 : 1e-4;
  const auto check = [&](double has, double must_have, double most, const auto& where) {
    if (std::abs(has - must_have) <= most) return;  // also counts a NaN as wrong
    if (result.wrong++ == 0)
      result.first_wrong = "rank " + std::to_string(rank) + ", " + where() + ": has " + std::to_string(has) +
                           ", must have " + std::to_string(must_have);
  };
  const std::size_t of_step = 2 * units.size() * std::size_t(options.micro);
  for (std::size_t at = 0; at < outcome.activations.size(); ++at, ++result.activations)
    check(outcome.activations[at], reference.activations()[at], activation_tolerance, [&] {
      const std::size_t in_pass = at % (2 * units.size());
      const bool forward = in_pass < units.size();
      return "step " + std::to_string(at / of_step) + ", " + (forward ? "forward" : "backward") + " gather of " +
             units[forward ? in_pass : 2 * units.size() - 1 - in_pass].name;
    });
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    const AdamState &has = outcome.shares[unit], &must_have = reference.states()[unit];
    for (std::size_t i = 0; i < units[unit].share; ++i) {
      const std::size_t whole = rank * units[unit].share + i;
      const auto where = [&] {
        return units[unit].name + ", parameter " + std::to_string(whole) + " after the last step";
      };
      check(has.master[i], must_have.master[whole], tolerance, where);
      // Tolerances relative to the order of a gradient, which is 0.01, and of its square.
      check(has.mean[i], must_have.mean[whole], options.exact ? 0 : 1e-5, where);
      check(has.square[i], must_have.square[whole], options.exact ? 0 : 1e-7, where);
      result.values += 3;
    }
  }
  return result;
}

}  // namespace zero_step
