// SPDX-License-Identifier: Apache-2.0
// The names of the grids' axes in the profile file.
#include <array>

#include "perfmodel/profile/profile.hpp"

namespace bestride::inline perfmodel {

std::string_view name(CallClass call_class) noexcept {
  constexpr std::array<std::string_view, call_class_count> names{
      "pack",           "unpack",         "send/self",        "send/node",
      "send/network",   "receive/self",   "receive/node",     "receive/network",
      "exchange/self",  "exchange/node",  "exchange/network", "send/cache",
      "send/domain",    "send/socket",    "receive/cache",    "receive/domain",
      "receive/socket", "exchange/cache", "exchange/domain",  "exchange/socket"};
  return names[static_cast<std::size_t>(call_class)];
}

std::string_view name(Engine engine) noexcept {
  constexpr std::array<std::string_view, engine_count> names{"split", "unsplit", "kernel"};
  return names[static_cast<std::size_t>(engine)];
}

std::string_view name(Spread spread) noexcept { return spread == Spread::dense ? "dense" : "wide"; }

std::string_view name(ContiguousForm form) noexcept { return form == ContiguousForm::plain ? "plain" : "respelled"; }

std::string_view name(Leaf leaf) noexcept {
  constexpr std::array<std::string_view, leaf_count> names{"four", "eight", "mixed"};
  return names[static_cast<std::size_t>(leaf)];
}

std::string_view name(Shape::Class kind) noexcept {
  constexpr std::array<std::string_view, class_count + 1> names{"contiguous", "vector", "nest", "record", "list"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view name(DeviceWork work) noexcept {
  constexpr std::array<std::string_view, device_work_count> names{"kernel", "oneshot", "copy", "bulk"};
  return names[static_cast<std::size_t>(work)];
}

std::string_view name(Direction direction) noexcept { return direction == Direction::pack ? "pack" : "unpack"; }

std::string_view name(DeviceWalk walk) noexcept {
  constexpr std::array<std::string_view, device_walk_count> names{"dense", "wide", "listed"};
  return names[static_cast<std::size_t>(walk)];
}

std::string_view name(DeviceFloor floor) noexcept {
  constexpr std::array<std::string_view, device_floor_count> names{"launch", "sync",       "chunk",     "again",
                                                                   "graph",  "again_many", "graph_many"};
  return names[static_cast<std::size_t>(floor)];
}

}  // namespace bestride::inline perfmodel
