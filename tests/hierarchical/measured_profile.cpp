// SPDX-License-Identifier: Apache-2.0
// hierarchical_measured_profile FILE NODES: writes a profile of this machine. NODES has one digit for each rank, its
// node. In this profile all collectives are measured from 4 KiB to 1 MiB; the hierarchy is faster for allgathers, and
// the library for all others.
#include <mpi.h>

#include <cstdio>
#include <string_view>
#include <vector>

#include "perfmodel/profile/machine.hpp"
#include "perfmodel/profile/profile.hpp"

using namespace bestride;

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::vector<int> nodes;
  for (const char digit : std::string_view(argv[2])) nodes.push_back(digit - '0');
  const CollectiveShape shape = shape_of(Collective::allgather, 1, true, Topology(nodes));
  CollectiveMeasurements measured;
  CollectiveSetting& setting = measured.settings.emplace_back();
  setting.nodes = shape.nodes, setting.ranks = shape.ranks, setting.max_ranks_per_node = shape.max_ranks_per_node,
  setting.ring_entries = shape.ring_entries;
  for (std::size_t what = 0; what < collective_count; ++what)
    for (std::size_t size = 0; size < 5 && what != static_cast<std::size_t>(Collective::allgatherv); ++size) {
      const bool gathers = what == static_cast<std::size_t>(Collective::allgather);
      for (const std::size_t blocking : {0, 1}) {
        setting.library[what][blocking][size] = gathers ? 9e-3f : 1e-3f;
        setting.hierarchical[what][blocking][size] = gathers ? 1e-3f : 9e-3f;
        setting.noise[what][blocking][size] = 0.01f;
      }
    }
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length);
  const auto written = MachineProfile::from(Measurements(), fingerprint_here(version), {}, measured).save(argv[1]);
  if (!written) std::fprintf(stderr, "%s\n", written.error().text.c_str());
  return written ? 0 : 1;
}
