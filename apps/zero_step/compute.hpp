// SPDX-License-Identifier: Apache-2.0
#pragma once
// A substitute for the computation of a GPU. It reads every gathered parameter, gives the same bits on every machine
// for the same values, and is smooth: if float sums differ in their last bits, the results differ in their last bits
// only. The training step and the reference use the same compiled code.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model.hpp"

namespace zero_step {

/// Gathered parameters: a view of `count` words of bfloat16 or float32.
struct Words {
  const void* data;
  std::size_t count;
  Element element;

  float operator[](std::size_t index) const;
};

/// Rounds to nearest even; a bfloat16 is the upper half of a float. `value` must not be NaN.
std::uint16_t to_bfloat16(float value);
/// Writes `count` values as words of type `element`.
void store_words(const float* values, std::size_t count, Element element, void* words);
std::size_t bytes_of(Element element);

/// Element `index` of unit `number` before the first step; 0 in the padding.
float initial_value(const Unit& unit, std::size_t number, std::size_t index);

/// A number that depends on every word and its position: a weighted sum divided by the root of the count, so that it is
/// of order 1.
double projection(const Words& words, std::size_t elements);

/// The seed that represents a rank's data of a micro-batch; it determines the input of the first unit and the noise of
/// its gradients.
std::uint64_t sample_seed(int step, int micro, int rank);
double first_activation(std::uint64_t seed);
/// The activation after a unit, computed from the activation before it; in the backward pass the same for the gradient.
double next_activation(double activation, double projected);

/// The gradient of element `index` from one rank's micro-batch. |gradient| < 1.
double gradient(std::uint64_t seed, std::size_t number, std::size_t index, double activation, float value);
/// The same in fixed point, with 40 fractional bits.
std::int64_t fixed(double gradient);
double from_fixed(std::int64_t sum);

struct AdamState {
  explicit AdamState(std::size_t count) : master(count), mean(count), square(count) {}
  std::vector<float> master, mean, square;
};
/// One step (from 0) of Adam (Kingma and Ba, ICLR 2015, algorithm 1), with an epsilon of 1e-3, so that an error in the
/// last bit of a gradient stays an error in the last bit of the update.
class Adam {
 public:
  Adam(double rate, int step);
  void update(AdamState& state, std::size_t index, float gradient) const;

 private:
  float rate_, mean_correction_, square_correction_;
};

double learning_rate(double highest, int step);
/// The factor for all gradients if the largest gradient has the magnitude `norm`.
double clip(double norm);

}  // namespace zero_step
