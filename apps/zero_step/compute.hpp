// SPDX-License-Identifier: Apache-2.0
#pragma once
// The stand-in for what a GPU would compute. It reads every gathered parameter, is the same bits wherever it runs on the same
// values, and smooth: where float sums differ in their last bits, so do the results, and no more. One compiled form serves the
// training step and the reference.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model.hpp"

namespace zero_step {

/// Parameters as they are gathered: a view of `count` words of bfloat16 or float32.
struct Words {
  const void* data;
  std::size_t count;
  Element element;

  float operator[](std::size_t index) const;
};

/// Rounds to nearest even, as a bfloat16's upper half of a float; NaN is kept out by the caller.
std::uint16_t to_bfloat16(float value);
/// Writes `count` values as words of the type.
void store_words(const float* values, std::size_t count, Element element, void* words);
std::size_t bytes_of(Element element);

/// Element `index` of unit number `number` before the first step; 0 in the padding.
float initial_value(const Unit& unit, std::size_t number, std::size_t index);

/// One number that depends on every word and its place. Weighted sum over the root of the count, so it is of the order of 1.
double projection(const Words& words, std::size_t elements);

/// What a rank's data of a micro-batch puts into the first unit, and into the noise of its gradients.
std::uint64_t sample_seed(int step, int micro, int rank);
double first_activation(std::uint64_t seed);
/// The activation after a unit, from that before it; on the way back the same with the gradient's.
double next_activation(double activation, double projected);

/// The gradient of element `index` from one rank's micro-batch. |gradient| < 1.
double gradient(std::uint64_t seed, std::size_t number, std::size_t index, double activation, float value);
/// The same in fixed point, 40 bits after the point.
std::int64_t fixed(double gradient);
double from_fixed(std::int64_t sum);

struct AdamState {
  explicit AdamState(std::size_t count) : master(count), mean(count), square(count) {}
  std::vector<float> master, mean, square;
};
/// One step (from 0) of Adam (Kingma and Ba, ICLR 2015, algorithm 1), with an epsilon of 1e-3, so that a last bit in a gradient
/// stays one in the update.
class Adam {
 public:
  Adam(double rate, int step);
  void update(AdamState& state, std::size_t index, float gradient) const;

 private:
  float rate_, mean_correction_, square_correction_;
};

double learning_rate(double highest, int step);
/// What every gradient is multiplied with if the largest of all has the size `norm`.
double clip(double norm);

}  // namespace zero_step
