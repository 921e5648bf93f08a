// SPDX-License-Identifier: Apache-2.0
#pragma once
// The network interfaces and RDMA ports of this host, from getifaddrs() and /sys.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bestride::inline model {

struct Nic {
  std::string name;      ///< as the transport's device variable expects it: "eth1"; for an RDMA port "mlx5_0:1"
  bool rdma = false;     ///< an RDMA port (InfiniBand, RoCE and similar); else a network interface
  bool up = false;       ///< up and connected
  bool address = false;  ///< has an IPv4 or a global IPv6 address; RDMA ports need none
  bool hardware =
      false;  ///< a hardware device: no bridge, veth, tunnel or loopback, and no member of a bond or a bridge
  std::int64_t speed_mbit = 0;  ///< 0: not known
  std::string driver;           ///< "" if not known
  std::string subnet;           ///< RDMA ports with equal subnets can reach each other; "" for network interfaces
};

/// The state of an interface as the kernel reports it. Unlike /sys, this always refers to the network namespace of the
/// caller.
struct InterfaceState {
  std::string name;
  bool up = false;
  bool address = false;
};
/// May throw std::bad_alloc.
std::vector<InterfaceState> interface_states();

/// RDMA ports sorted by name, then interfaces in the given order. `sys`: the directory to read, for tests. May throw
/// std::bad_alloc.
std::vector<Nic> nics_of(std::span<const InterfaceState> states, const std::string& sys = "/sys");
/// The NICs of this host. May throw std::bad_alloc.
std::vector<Nic> nics_here();

}  // namespace bestride::inline model
