// SPDX-License-Identifier: Apache-2.0
#include "compute.hpp"

#include <bit>
#include <cmath>
#include <cstring>

namespace zero_step {
namespace {

/// SplitMix64's finalizer (Steele, Lea, Flood, OOPSLA'14).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// In [-1, 1).
double noise(std::uint64_t seed, std::uint64_t index) {
  return double(std::int64_t(mix(seed + index * 0x9e3779b97f4a7c15u))) * 0x1p-63;
}

float from_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t(bits) << 16); }

constexpr double fixed_scale = 0x1p40;
constexpr double mean_decay = 0.9, square_decay = 0.999;

template <class Word, class Value>
double weighted_sum(const Word* words, std::size_t count, Value value_of) {
  // Eight partial sums, so that an addition does not wait for the previous one. The assignment of words to sums is
  // fixed.
  double sums[8] = {};
  std::uint32_t weight = 1;
  for (std::size_t i = 0; i < count; ++i) {
    // Weights are between a half and one, so that every word matters. Adjacent weights differ by the golden ratio, so
    // that positions matter, too.
    sums[i % 8] += double(value_of(words[i])) * double(std::int32_t(weight >> 1 | 0x40000000u));
    weight += 2654435769u;
  }
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum * 0x1p-31;
}

}  // namespace

float Words::operator[](std::size_t index) const {
  return element == Element::float32 ? static_cast<const float*>(data)[index]
                                     : from_bfloat16(static_cast<const std::uint16_t*>(data)[index]);
}

std::uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

std::size_t bytes_of(Element element) { return element == Element::float32 ? 4 : 2; }

void store_words(const float* values, std::size_t count, Element element, void* words) {
  if (element == Element::float32) {
    std::memcpy(words, values, count * sizeof(float));
    return;
  }
  auto* const to = static_cast<std::uint16_t*>(words);
  for (std::size_t i = 0; i < count; ++i) to[i] = to_bfloat16(values[i]);
}

float initial_value(const Unit& unit, std::size_t number, std::size_t index) {
  std::size_t first = 0;
  for (const Tensor& tensor : unit.tensors) {
    if (index < first + tensor.elements) {
      if (tensor.kind == Kind::bias) return 0;
      if (tensor.kind == Kind::gain) return 1;
      return float(0.02 * noise(mix(number + 1), index));
    }
    first += tensor.elements;
  }
  return 0;
}

double projection(const Words& words, std::size_t elements) {
  const double sum =
      words.element == Element::float32
          ? weighted_sum(static_cast<const float*>(words.data), words.count, [](float word) { return word; })
          : weighted_sum(static_cast<const std::uint16_t*>(words.data), words.count, from_bfloat16);
  return 16 * sum / std::sqrt(double(elements));
}

std::uint64_t sample_seed(int step, int micro, int rank) {
  return mix(mix(mix(std::uint64_t(step) + 1) + std::uint64_t(micro)) + std::uint64_t(rank));
}
double first_activation(std::uint64_t seed) { return noise(seed, 0); }
double next_activation(double activation, double projected) {
  const double sum = 0.5 * activation + projected;
  return sum / (1 + std::abs(sum));
}

double gradient(std::uint64_t seed, std::size_t number, std::size_t index, double activation, float value) {
  return 0.01 * noise(seed + number, index) + 0.1 * activation * double(value) / (1 + std::abs(double(value)));
}
std::int64_t fixed(double gradient) { return std::int64_t(gradient * fixed_scale); }
double from_fixed(std::int64_t sum) { return double(sum) / fixed_scale; }

Adam::Adam(double rate, int step)
    : rate_(float(rate)),
      mean_correction_(float(1 - std::pow(mean_decay, step + 1))),
      square_correction_(float(1 - std::pow(square_decay, step + 1))) {}

void Adam::update(AdamState& state, std::size_t index, float gradient) const {
  constexpr float keep = float(mean_decay), square_keep = float(square_decay), epsilon = 1e-3f;
  float& mean = state.mean[index];
  float& square = state.square[index];
  mean = keep * mean + (1 - keep) * gradient;
  square = square_keep * square + (1 - square_keep) * gradient * gradient;
  state.master[index] -= rate_ * (mean / mean_correction_) / (std::sqrt(square / square_correction_) + epsilon);
}

double learning_rate(double highest, int step) {
  constexpr int warmup = 4;
  return highest * (step < warmup ? double(step + 1) / warmup : 1.0);
}
double clip(double norm) {
  constexpr double most = 0.01;
  return norm > most ? most / norm : 1.0;
}

}  // namespace zero_step
