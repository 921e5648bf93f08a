// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "exchange.hpp"

namespace halo3d {
namespace {

/// The send or receive arguments of one MPI_Neighbor_alltoallw.
struct Side {
  void* base = nullptr;
  std::vector<int> ranks;
  std::vector<int> counts;
  std::vector<MPI_Aint> displacements;
  std::vector<MPI_Datatype> types;

  void add(int rank, MPI_Aint displacement, MPI_Datatype type) {
    ranks.push_back(rank), counts.push_back(1), displacements.push_back(displacement), types.push_back(type);
  }
};

struct Call {
  Side send, receive;
};

class NeighborAlltoallw : public Exchange {
 public:
  /// Frees `communicator` at destruction if it is `owned`; `joined` holds the types that no other object owns.
  NeighborAlltoallw(MPI_Comm communicator, bool owned, std::vector<Call> calls, std::vector<Datatype> joined)
      : communicator_(communicator), owned_(owned), calls_(std::move(calls)), joined_(std::move(joined)) {}
  ~NeighborAlltoallw() override {
    if (owned_) MPI_Comm_free(&communicator_);
  }
  void run() override {
    for (const Call& call : calls_)
      MPI_Neighbor_alltoallw(call.send.base, call.send.counts.data(), call.send.displacements.data(),
                             call.send.types.data(), call.receive.base, call.receive.counts.data(),
                             call.receive.displacements.data(), call.receive.types.data(), communicator_);
  }

 private:
  MPI_Comm communicator_;
  bool owned_;
  std::vector<Call> calls_;
  std::vector<Datatype> joined_;
};

/// True if one rank is the neighbor in both directions, as with one or two ranks along a periodic dimension.
bool has_rank_twice(const Grid& grid) {
  for (const int ranks : grid.ranks())
    if (grid.periodic() && ranks <= 2) return true;
  return false;
}

/// On a Cartesian communicator the neighbors are in the order -z, +z, -y, +y, -x, +x; outside a border the entry is
/// MPI_PROC_NULL and stays in the list.
std::unique_ptr<Exchange> on_cartesian(const Grid& grid, const std::vector<Channel>& channels, int parts) {
  std::vector<Call> calls(parts);
  const auto add = [](Side& side, int rank, const FaceType& face) {
    side.base = face.base;
    side.add(rank, face.displacement, face.type.get());
  };
  for (int dimension = 0; dimension < 3; ++dimension)
    for (const int step : {-1, 1}) {
      Triple toward{};
      toward[dimension] = step;
      for (const Channel& channel : channels) {
        if (channel.direction == toward) add(calls[channel.part].send, channel.to, channel.send);
        if (channel.direction == opposite(toward)) add(calls[channel.part].receive, channel.from, channel.receive);
      }
    }
  return std::make_unique<NeighborAlltoallw>(grid.communicator(), false, std::move(calls), std::vector<Datatype>());
}

/// Adds `face` to the data sent to (or received from) `rank`, all in absolute addresses.
void gather(std::map<int, std::vector<const FaceType*>>& by_rank, int rank, const FaceType& face) {
  if (rank != MPI_PROC_NULL) by_rank[rank].push_back(&face);
}

Side side_of(const std::map<int, std::vector<const FaceType*>>& by_rank, std::vector<Datatype>& joined) {
  Side side;
  side.base = MPI_BOTTOM;
  for (const auto& [rank, faces] : by_rank) {
    std::vector<MPI_Aint> addresses;
    std::vector<MPI_Datatype> types;
    for (const FaceType* face : faces) {
      addresses.push_back(face->absolute());
      types.push_back(face->type.get());
    }
    if (faces.size() == 1) {
      side.add(rank, addresses[0], types[0]);
      continue;
    }
    joined.push_back(struct_of(addresses, types));
    joined.back().commit();
    side.add(rank, 0, joined.back().get());
  }
  return side;
}

/// Every rank is in the lists once, and all its data is in one struct, because MPI libraries disagree about the
/// matching of several blocks between the same two ranks (mpi-forum issue 153 and its corrections in MPICH and Open
/// MPI).
std::unique_ptr<Exchange> on_graph(const Grid& grid, const std::vector<Channel>& channels, int parts) {
  std::vector<Call> calls(parts);
  std::vector<Datatype> joined;
  for (int part = 0; part < parts; ++part) {
    std::map<int, std::vector<const FaceType*>> sends, receives;
    for (const Channel& channel : channels) {
      if (channel.part != part) continue;
      gather(sends, channel.to, channel.send);
      gather(receives, channel.from, channel.receive);
    }
    calls[part] = {side_of(sends, joined), side_of(receives, joined)};
  }
  const auto& sources = calls[0].receive.ranks;
  const auto& destinations = calls[0].send.ranks;
  MPI_Comm graph = MPI_COMM_NULL;
  MPI_Dist_graph_create_adjacent(grid.communicator(), int(sources.size()), sources.data(), MPI_UNWEIGHTED,
                                 int(destinations.size()), destinations.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0,
                                 &graph);
  return std::make_unique<NeighborAlltoallw>(graph, true, std::move(calls), std::move(joined));
}

}  // namespace

std::unique_ptr<Exchange> make_neighbor_alltoallw(const Grid& grid, int neighbors,
                                                  const std::vector<Channel>& channels) {
  int parts = 0;
  for (const Channel& channel : channels) parts = std::max(parts, channel.part + 1);
  return neighbors == 6 && !has_rank_twice(grid) ? on_cartesian(grid, channels, parts)
                                                 : on_graph(grid, channels, parts);
}

}  // namespace halo3d
