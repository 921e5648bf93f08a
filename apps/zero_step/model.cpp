// SPDX-License-Identifier: Apache-2.0
#include "model.hpp"

#include <climits>

namespace zero_step {
namespace {

Unit make_unit(std::string name, std::vector<Tensor> tensors, std::size_t ranks) {
  Unit unit{std::move(name), std::move(tensors)};
  for (const Tensor& tensor : unit.tensors) unit.elements += tensor.elements;
  unit.share = (unit.elements + ranks - 1) / ranks;
  return unit;
}

}  // namespace

std::vector<Unit> make_units(const Options& options, int ranks) {
  const std::size_t width = options.hidden, inner = 4 * width, share = ranks;
  std::vector<Unit> units;
  units.push_back(make_unit("embedding", {{"embedding", options.vocabulary * width, Kind::weight}}, share));
  for (int layer = 0; layer < options.layers; ++layer)
    units.push_back(make_unit("layer " + std::to_string(layer),
                              {{"norm 1", width, Kind::gain},
                               {"query, key, value", 3 * width * width, Kind::weight},
                               {"query, key, value bias", 3 * width, Kind::bias},
                               {"out", width * width, Kind::weight},
                               {"out bias", width, Kind::bias},
                               {"norm 2", width, Kind::gain},
                               {"up", width * inner, Kind::weight},
                               {"up bias", inner, Kind::bias},
                               {"down", inner * width, Kind::weight},
                               {"down bias", width, Kind::bias}},
                              share));
  units.push_back(make_unit("final norm", {{"gain", width, Kind::gain}, {"bias", width, Kind::bias}}, share));
  return units;
}

std::size_t parameters_of(const std::vector<Unit>& units) {
  std::size_t sum = 0;
  for (const Unit& unit : units) sum += unit.elements;
  return sum;
}

std::string validate(const std::vector<Unit>& units) {
  for (const Unit& unit : units)
    if (unit.share > INT_MAX)
      return unit.name + " has " + std::to_string(unit.share) +
             " parameters a rank, more than one call can take: " + "use more ranks or a smaller --hidden";
  return "";
}

}  // namespace zero_step
