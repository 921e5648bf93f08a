// SPDX-License-Identifier: Apache-2.0
#pragma once
// The network interfaces and RDMA ports of this host, as getifaddrs() and /sys tell of them.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bestride {

struct Nic {
  std::string name;            ///< as a transport's device variable names it: "eth1"; an RDMA port "mlx5_0:1"
  bool rdma = false;           ///< a port of InfiniBand, RoCE or the like; else a network interface
  bool up = false;             ///< and connected
  bool address = false;        ///< has an IPv4 or a global IPv6 address; RDMA ports need none
  bool hardware = false;       ///< a device of its own: no bridge, veth, tunnel or loopback, and no part of a bond or a bridge
  std::int64_t speed_mbit = 0; ///< 0: not known
  std::string driver;          ///< "" if not known
  std::string subnet;          ///< RDMA ports of equal subnet reach each other; "" for network interfaces
};

/// What the kernel says of an interface besides /sys: unlike /sys, always of the caller's network namespace.
struct InterfaceState {
  std::string name;
  bool up = false;
  bool address = false;
};
/// May throw std::bad_alloc.
std::vector<InterfaceState> interface_states();

/// RDMA ports, by name, then interfaces in the order given. `sys`: the folder to read, for tests. May throw std::bad_alloc.
std::vector<Nic> nics_of(std::span<const InterfaceState> states, const std::string& sys = "/sys");
/// Of this host. May throw std::bad_alloc.
std::vector<Nic> nics_here();

}  // namespace bestride
