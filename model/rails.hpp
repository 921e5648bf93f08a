// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rails: the NICs of a host that its local ranks use, one for each rank.
//
// MPICH over TCP uses only one NIC of a host. So each rank is assigned a NIC before the MPI library starts: local rank
// l uses rail l mod rails. The rule depends on l alone and is the same on every host, because local rank l exchanges
// its slices with the local ranks l of other hosts, which must be on the same rail. Alternative considered: l * rails /
// local_ranks, which assigns neighboring cores to one NIC (a near one if ranks are bound in order), but puts the same
// l on different rails if hosts have unequal numbers of ranks.
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/nics.hpp"

namespace bestride::inline model {

/// The names of the rails, in order. In the functions below, an error states why there are no rails, and the remedy.
/// Functions without noexcept may throw std::bad_alloc.
using Rails = std::vector<std::string>;

/// The largest number of NICs in a list, and the largest length of a name in bytes. A NIC may be in the list twice; it
/// then gets twice as many ranks.
inline constexpr std::size_t max_rails = 64, longest_rail_name = 64;

/// The names in "dev0,dev1". Does not check that the host has them.
Result<Rails> rails_of_list(std::string_view list);
/// "dev0,dev1".
std::string list_of(const Rails& rails);

/// The names in "dev0,dev1"; each must be one of `nics`, be up, and have an address.
Result<Rails> named_rails(std::string_view list, std::span<const Nic> nics);

/// Finds at least two equal NICs: the fastest that are up, are hardware, have an address, and have the same driver and
/// subnet. If an RDMA port is up, network interfaces are not considered, because the MPI library does not use them.
Result<Rails> equal_rails(std::span<const Nic> nics);

/// 0 .. rails-1. `rails` > 0.
constexpr int rail_of(int local_rank, int rails) noexcept { return local_rank % rails; }

/// The environment variables by which transports select a rail of that name: UCX's; for network interfaces also those
/// of libfabric's providers tcp and sockets.
std::span<const char* const> device_variables(std::string_view rail) noexcept;

}  // namespace bestride::inline model
