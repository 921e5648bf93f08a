// SPDX-License-Identifier: Apache-2.0
// write_profile FILE here|elsewhere|another-library [collectives | one-node | only-alltoall | near | rails NAMES | GPU
// [options]]: writes a complete profile of this machine, of another one, or with another MPI library. Only device
// values are measurements. "options": bulk copies from 1 KiB on, and CUDA graphs, are faster. "collectives": broadcasts
// on 2 x 2 ranks, of which the hierarchy takes three times as long. "one-node": with 2 ranks on one node, all
// collectives but barriers and those with neighbors are faster through shared memory from 64 B to 4 KiB, and slower at
// other sizes. "only-alltoall": the same of blocking alltoalls; all others are slower at every size. "rails": local
// ranks use these NICs. "near": between ranks that share a cache, an equivalent datatype takes a third of the time of
// contiguous messages of 16 KiB and more.
#include <cstdio>
#include <string>
#include <utility>

#include "perfmodel/profile/machine.hpp"
#include "perfmodel/profile/profile.hpp"

int main(int argc, char** argv) {
  if (argc < 3 || argc > 5) return 2;
  bestride::MachineFingerprint fingerprint = bestride::fingerprint_here("");
  if (std::string(argv[2]) == "elsewhere") fingerprint.cpu = "Abacus 3000";
  if (std::string(argv[2]) == "another-library") fingerprint.mpi_library = "Another MPI 1.0";
  bestride::DeviceMeasurements device;
  bestride::CollectiveMeasurements collectives;
  bestride::Measurements measured;
  const bool near = argc == 4 && std::string(argv[3]) == "near";
  const bool only_alltoall = argc == 4 && std::string(argv[3]) == "only-alltoall";
  const bool one_node = only_alltoall || (argc == 4 && std::string(argv[3]) == "one-node");
  if (argc == 4 && std::string(argv[3]) == "collectives") {
    bestride::CollectiveSetting& setting = collectives.settings.emplace_back();
    setting.nodes = 2, setting.ranks = 4, setting.max_ranks_per_node = 2;
    constexpr auto what = static_cast<std::size_t>(bestride::Collective::broadcast);
    setting.library[what][1].fill(3e-3f);
    setting.hierarchical[what][1].fill(9e-3f);
  } else if (near) {
    using enum bestride::CallClass;
    for (const auto call_class : {send_cache, exchange_cache})
      for (int i = 0; i < bestride::curve_points; ++i) {
        const double plain = 1e-6 + static_cast<double>(bestride::curve_bytes_at(i)) * 1e-10;
        measured.curve(bestride::ContiguousForm::plain, call_class).set(i, plain);
        measured.curve(bestride::ContiguousForm::respelled, call_class)
            .set(i, bestride::curve_bytes_at(i) < 16384 ? plain : plain / 3);
      }
  } else if (argc >= 4 && std::string(argv[3]) != "rails" && !one_node) {
    fingerprint.gpu = argv[3];
    device.set(bestride::DeviceFloor::launch, 1e-5);
  }
  bestride::Rails rails;
  if (argc == 5 && std::string(argv[3]) == "rails") {
    const auto list = bestride::rails_of_list(argv[4]);
    if (!list) return 2;
    rails = *list;
  } else if (argc == 5) {
    using enum bestride::DeviceFloor;
    for (const auto floor : {again, again_many}) device.set(floor, 2e-5);
    for (const auto floor : {graph, graph_many}) device.set(floor, 1e-5);
    for (const auto direction : {bestride::Direction::pack, bestride::Direction::unpack})
      for (int block = 5; block < bestride::block_points; ++block) {
        device[{bestride::DeviceWork::kernel, direction}].set(9, block, 2e-5);
        device[{bestride::DeviceWork::bulk, direction}].set(9, block, block == 5 ? 3e-5 : 1e-5);
      }
  }
  bestride::MachineProfile profile = bestride::MachineProfile::from(measured, fingerprint, device, collectives);
  profile.rails = rails;
  if (near) profile.respell_contiguous_from = 16384;
  if (one_node) {
    profile.one_node.ranks = 2;
    for (std::size_t i = 0; i < bestride::one_node_calls.size(); ++i) {
      const bestride::OneNodeCall& call = bestride::one_node_calls[i];
      const bool may_gain = !only_alltoall || (call.kind == bestride::OneNodeCall::Kind::collective &&
                                               call.what == bestride::Collective::alltoall && call.blocking);
      for (std::size_t size = 0; size < call.sizes(); ++size) {
        const bool gains = bestride::one_node_bytes[size] >= 64 && bestride::one_node_bytes[size] <= 4096;
        profile.one_node.curves[i].shared[size] = may_gain && gains ? 1e-6f : 3e-6f;
        profile.one_node.curves[i].library[size] = 2e-6f;
      }
    }
  }
  const auto written = profile.save(argv[1]);
  if (!written) std::fprintf(stderr, "%s\n", written.error().text.c_str());
  return written ? 0 : 1;
}
