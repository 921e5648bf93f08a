// SPDX-License-Identifier: Apache-2.0
#include "model/rails.hpp"

#include <algorithm>

namespace bestride::inline model {
namespace {

std::string names_of(std::span<const Nic> nics) {
  std::string names;
  for (const Nic& nic : nics)
    if (nic.up) names += (names.empty() ? "" : " ") + nic.name;
  return names.empty() ? "none" : names;
}

Error no_such(const std::string& name, std::span<const Nic> nics) {
  for (const Nic& nic : nics)
    if (nic.rdma && nic.name.substr(0, nic.name.find(':')) == name)
      return {"'" + name + "' lacks its port; write " + nic.name};
  return {"this host has no '" + name + "'; what is up here: " + names_of(nics)};
}

bool alike(const Nic& a, const Nic& b) { return a.driver == b.driver && a.subnet == b.subnet; }

}  // namespace

Result<Rails> rails_of_list(std::string_view list) {
  Rails rails;
  for (bool more = true; more;) {
    const std::size_t comma = list.find(',');
    more = comma != std::string_view::npos;
    const std::string_view name = list.substr(0, comma);
    list.remove_prefix(more ? comma + 1 : list.size());
    if (name.empty()) return Error{"a name is missing; write NICs with commas between them, such as eth0,eth1"};
    if (name.size() > longest_rail_name) return Error{"'" + std::string(name) + "' is longer than any NIC's name"};
    if (std::any_of(name.begin(), name.end(), [](unsigned char c) { return c <= ' ' || c == 0x7f; }))
      return Error{"a name has a blank in it; write NICs with commas alone between them, such as eth0,eth1"};
    rails.emplace_back(name);
    if (rails.size() > max_rails)
      return Error{"more than " + std::to_string(max_rails) + " NICs are named; name fewer"};
  }
  return rails;
}

std::string list_of(const Rails& rails) {
  std::string list;
  for (std::size_t i = 0; i < rails.size(); ++i) list += (i == 0 ? "" : ",") + rails[i];
  return list;
}

Result<Rails> named_rails(std::string_view list, std::span<const Nic> nics) {
  const Result<Rails> rails = rails_of_list(list);
  if (!rails) return rails;
  for (const std::string& name : *rails) {
    const auto nic = std::find_if(nics.begin(), nics.end(), [&name](const Nic& one) { return one.name == name; });
    if (nic == nics.end()) return no_such(name, nics);
    if (!nic->up) return Error{"'" + name + "' is down; what is up here: " + names_of(nics)};
    if (!nic->address) return Error{"'" + name + "' has no address; give it one, or name other NICs"};
  }
  return rails;
}

Result<Rails> equal_rails(std::span<const Nic> nics) {
  const bool rdma = std::any_of(nics.begin(), nics.end(), [](const Nic& nic) { return nic.rdma && nic.up; });
  std::vector<Nic> candidates;
  std::int64_t fastest = 1;  // excludes NICs of unknown speed
  for (const Nic& nic : nics) {
    if (nic.rdma != rdma || !nic.up || !nic.hardware || !nic.address) continue;
    candidates.push_back(nic);
    fastest = std::max(fastest, nic.speed_mbit);
  }
  std::erase_if(candidates, [fastest](const Nic& nic) { return nic.speed_mbit < fastest; });
  if (candidates.size() < 2) return Error{"this host has fewer than two equal NICs; name some, such as eth0,eth1"};
  Rails rails;
  for (const Nic& nic : candidates) {
    if (!alike(nic, candidates[0]))
      return Error{candidates[0].name + " and " + nic.name +
                   " are of the same speed but not alike; name the rails, such as eth0,eth1"};
    // UCX supports no other RDMA devices, and the transports of other libraries distribute the traffic of a rank over
    // the NICs themselves.
    if (rdma && !nic.driver.starts_with("mlx"))
      return Error{nic.name + " is no device of UCX; leave the choice to the MPI library"};
    rails.push_back(nic.name);
  }
  return rails;
}

std::span<const char* const> device_variables(std::string_view rail) noexcept {
  static constexpr const char* all[] = {"UCX_NET_DEVICES", "FI_TCP_IFACE", "FI_SOCKETS_IFACE"};
  const bool rdma = rail.find(':') != std::string_view::npos;
  return std::span(all).first(rdma ? 1 : 3);
}

}  // namespace bestride::inline model
