// SPDX-License-Identifier: Apache-2.0
#include "model/nics.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "model/sys_file.hpp"

namespace bestride::inline model {
namespace {

bool is_address(const sockaddr* address) noexcept {
  if (!address) return false;
  if (address->sa_family == AF_INET) return true;
  if (address->sa_family != AF_INET6) return false;
  const in6_addr& number = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  return !IN6_IS_ADDR_LINKLOCAL(&number) && !IN6_IS_ADDR_LOOPBACK(&number);
}

std::int64_t positive(const std::string& text) noexcept { return std::max(0L, std::strtol(text.c_str(), nullptr, 10)); }

Nic rdma_port(const std::string& device, const std::string& port, const std::string& sys) {
  const std::string folder = sys + "/class/infiniband/" + device;
  const std::string here = folder + "/ports/" + port + "/";
  Nic nic;
  nic.name = device + ":" + port;
  nic.rdma = nic.address = nic.hardware = true;
  nic.up = sys_line(here + "state").find("ACTIVE") != std::string::npos;
  nic.speed_mbit = positive(sys_line(here + "rate")) * 1000;  // "100 Gb/sec (4X EDR)"
  nic.driver = sys_link(folder + "/device/driver");
  // The upper half of a GID is the subnet prefix (InfiniBand Architecture, volume 1, 4.1.1). For RoCE it carries no
  // information.
  nic.subnet = sys_line(here + "link_layer") + " " + sys_line(here + "gids/0").substr(0, 19);
  return nic;
}

}  // namespace

std::vector<InterfaceState> interface_states() {
  std::vector<InterfaceState> states;
  ifaddrs* found = nullptr;
  if (getifaddrs(&found) != 0) return states;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(found, freeifaddrs);
  for (const ifaddrs* each = found; each; each = each->ifa_next) {
    auto known = std::find_if(states.begin(), states.end(),
                              [each](const InterfaceState& state) { return state.name == each->ifa_name; });
    if (known == states.end()) known = states.insert(known, InterfaceState{each->ifa_name});
    constexpr unsigned connected = IFF_UP | IFF_RUNNING;
    known->up = (each->ifa_flags & connected) == connected;
    known->address |= is_address(each->ifa_addr);
  }
  return states;
}

std::vector<Nic> nics_of(std::span<const InterfaceState> states, const std::string& sys) {
  std::vector<Nic> nics;
  for (const std::string& device : sys_names(sys + "/class/infiniband"))
    for (const std::string& port : sys_names(sys + "/class/infiniband/" + device + "/ports"))
      nics.push_back(rdma_port(device, port, sys));
  for (const InterfaceState& state : states) {
    const std::string folder = sys + "/class/net/" + state.name + "/";
    Nic nic;
    nic.name = state.name;
    nic.up = state.up;
    nic.address = state.address;
    nic.hardware = sys_has(folder + "device") && !sys_has(folder + "master") && !sys_has(folder + "wireless");
    nic.speed_mbit = positive(sys_line(folder + "speed"));  // "-1" or an error if the speed is unknown
    nic.driver = sys_link(folder + "device/driver");
    nics.push_back(nic);
  }
  return nics;
}

std::vector<Nic> nics_here() { return nics_of(interface_states()); }

}  // namespace bestride::inline model
