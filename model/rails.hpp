// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rails: which of a host's NICs the local ranks use, each its own.
//
// MPICH over TCP uses one NIC however many there are. So each rank is given one before the MPI library starts: local rank l takes rail
// l mod rails, on every host the same function of l alone, because local rank l exchanges its slices with the local ranks l of other
// hosts, which must then be on the same rail.
// Alternative that lost: l * rails / local_ranks, which keeps neighbouring cores on one NIC, and near it where ranks are bound in order.
// On hosts with unequal numbers of ranks it puts the same l on different rails.
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "model/nics.hpp"

namespace bestride {

/// The names of the rails, in order; an error says why there are none, with the remedy. Either may throw std::bad_alloc.
using Rails = std::vector<std::string>;

/// As many as a list may have, and the bytes of a name. A NIC may stand in it twice: it then gets twice as many ranks.
inline constexpr std::size_t most_rails = 64, longest_rail_name = 64;

/// The names of "dev0,dev1". Whether a host has them is not asked.
Result<Rails> rails_of_list(std::string_view list);
/// "dev0,dev1".
std::string list_of(const Rails& rails);

/// Those of "dev0,dev1": each must be one of `nics`, up, and have an address.
Result<Rails> named_rails(std::string_view list, std::span<const Nic> nics);

/// At least two equal NICs, by themselves: the fastest that are up, hardware, have an address, and are of one driver and subnet.
/// Where there is an RDMA port that is up, network interfaces are none of the MPI library's business.
Result<Rails> equal_rails(std::span<const Nic> nics);

/// 0 .. rails-1. `rails` > 0.
constexpr int rail_of(int local_rank, int rails) noexcept { return local_rank % rails; }

/// The environment variables by which transports take a rail of that name: UCX; for network interfaces also libfabric's providers
/// tcp and sockets.
std::span<const char* const> device_variables(std::string_view rail) noexcept;

}  // namespace bestride
