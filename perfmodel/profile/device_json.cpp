// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/profile/device_json.hpp"

#include <algorithm>

namespace bestride::inline perfmodel {
namespace {

/// The version of this section. A file with another version of it is refused.
constexpr int device_version = 2;

bool any(const CostCurve& curve) {
  return std::any_of(curve.log_seconds.begin(), curve.log_seconds.end(),
                     [](float value) { return !std::isnan(value); });
}

}  // namespace

Json json_of(const DeviceMeasurements& measured) {
  Json section{{"version", device_version}, {"stand_in", measured.stand_in}};
  for (int i = 0; i < device_floor_count; ++i)
    section["floors"][std::string(name(static_cast<DeviceFloor>(i)))] =
        point(measured.log_floors[static_cast<std::size_t>(i)]);
  section["copies"] = Json::array();
  for (int i = 0; i < device_direction_count; ++i)
    if (const CostCurve& curve = measured.dma[static_cast<std::size_t>(i)]; any(curve))
      section["copies"].push_back({{"direction", name(static_cast<Direction>(i))}, {"ns", row_of(curve.log_seconds)}});
  section["contiguous"] = Json::array();
  for (int i = 0; i < distance_count; ++i)
    if (const CostCurve& curve = measured.contiguous[static_cast<std::size_t>(i)]; any(curve))
      section["contiguous"].push_back(
          {{"distance", name(static_cast<Distance>(i))}, {"ns", row_of(curve.log_seconds)}});
  section["grids"] = Json::array();
  for (int index = 0; index < device_grid_count; ++index) {
    const CostGrid& grid = measured.grids[static_cast<std::size_t>(index)];
    if (grid.measured() == 0) continue;
    const DeviceGridKey key = device_grid_key(index);
    Json rows = Json::array();
    for (const auto& row : grid.log_seconds) rows.push_back(row_of(row));
    section["grids"].push_back({{"work", name(key.work)},
                                {"direction", name(key.direction)},
                                {"walk", name(key.walk)},
                                {"ns", std::move(rows)}});
  }
  return section;
}

std::string read_device(const Json& section, DeviceMeasurements* measured) {
  if (section.at("version") != device_version) return "its section for the GPU is another version's";
  measured->stand_in = section.at("stand_in").get<bool>();
  for (int i = 0; i < device_floor_count; ++i)
    if (!read_point(section.at("floors").at(std::string(name(static_cast<DeviceFloor>(i)))),
                    &measured->log_floors[static_cast<std::size_t>(i)]))
      return "a floor of the GPU has a bad entry";
  for (const Json& entry : section.at("copies")) {
    Direction direction;
    if (!named(entry.at("direction"), device_direction_count, &direction))
      return "a copy curve of the GPU has an unknown direction";
    if (!read_row(entry.at("ns"), &measured->dma[static_cast<std::size_t>(direction)].log_seconds))
      return "a copy curve of the GPU has a bad entry";
  }
  for (const Json& entry : section.at("contiguous")) {
    Distance distance;
    if (!named(entry.at("distance"), distance_count, &distance))
      return "a contiguous curve of the GPU has an unknown distance";
    if (!read_row(entry.at("ns"), &measured->contiguous[static_cast<std::size_t>(distance)].log_seconds))
      return "a contiguous curve of the GPU has a bad entry";
  }
  for (const Json& entry : section.at("grids")) {
    DeviceGridKey key;
    if (!named(entry.at("work"), device_work_count, &key.work) ||
        !named(entry.at("direction"), device_direction_count, &key.direction) ||
        !named(entry.at("walk"), device_walk_count, &key.walk))
      return "a grid of the GPU has an unknown work, direction or walk";
    const Json& rows = entry.at("ns");
    bool good = rows.is_array() && rows.size() == bytes_points;
    for (std::size_t i = 0; good && i < rows.size(); ++i) good = read_row(rows[i], &(*measured)[key].log_seconds[i]);
    if (!good) return "the grid of the GPU's " + std::string(name(key.work)) + " has a bad entry";
  }
  return "";
}

}  // namespace bestride::inline perfmodel
