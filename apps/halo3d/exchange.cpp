// SPDX-License-Identifier: Apache-2.0
#include "exchange.hpp"

namespace halo3d {
namespace {

class PointToPoint : public Exchange {
 public:
  PointToPoint(const Grid& grid, const std::vector<Channel>& channels)
      : communicator_(grid.communicator()), channels_(channels), requests_(2 * channels.size(), MPI_REQUEST_NULL) {}

 protected:
  int request_count() const { return int(requests_.size()); }

  void post_all() {
    MPI_Request* request = requests_.data();
    for (const Channel& channel : channels_)
      MPI_Irecv(channel.receive.address(), 1, channel.receive.type.get(), channel.from, channel.tag, communicator_,
                request++);
    for (const Channel& channel : channels_)
      MPI_Isend(channel.send.address(), 1, channel.send.type.get(), channel.to, channel.tag, communicator_, request++);
  }

  MPI_Comm communicator_;
  const std::vector<Channel>& channels_;
  std::vector<MPI_Request> requests_;
};

class IsendWaitall : public PointToPoint {
 public:
  using PointToPoint::PointToPoint;
  void run() override {
    post_all();
    MPI_Waitall(request_count(), requests_.data(), MPI_STATUSES_IGNORE);
  }
};

class IsendWaitany : public PointToPoint {
 public:
  using PointToPoint::PointToPoint;
  void run() override {
    post_all();
    for (int done = 0; done < request_count(); ++done) {
      int which = MPI_UNDEFINED;
      MPI_Waitany(request_count(), requests_.data(), &which, MPI_STATUS_IGNORE);
    }
  }
};

class Sendrecv : public PointToPoint {
 public:
  using PointToPoint::PointToPoint;
  void run() override {
    for (const Channel& channel : channels_)
      MPI_Sendrecv(channel.send.address(), 1, channel.send.type.get(), channel.to, channel.tag,
                   channel.receive.address(), 1, channel.receive.type.get(), channel.from, channel.tag, communicator_,
                   MPI_STATUS_IGNORE);
  }
};

class Persistent : public PointToPoint {
 public:
  Persistent(const Grid& grid, const std::vector<Channel>& channels) : PointToPoint(grid, channels) {
    MPI_Request* request = requests_.data();
    for (const Channel& channel : channels_)
      MPI_Recv_init(channel.receive.address(), 1, channel.receive.type.get(), channel.from, channel.tag, communicator_,
                    request++);
    for (const Channel& channel : channels_)
      MPI_Send_init(channel.send.address(), 1, channel.send.type.get(), channel.to, channel.tag, communicator_,
                    request++);
  }
  ~Persistent() override {
    for (MPI_Request& request : requests_) MPI_Request_free(&request);
  }
  void run() override {
    MPI_Startall(request_count(), requests_.data());
    MPI_Waitall(request_count(), requests_.data(), MPI_STATUSES_IGNORE);
  }
};

}  // namespace

std::vector<Channel> channels_of(const Grid& grid, Field& field, const Options& options) {
  std::vector<Channel> channels;
  for (const Triple& direction : directions(options.neighbors)) {
    auto sends = face_types_of(field, field.inner_edge(direction), options);
    auto receives = face_types_of(field, field.halo(opposite(direction)), options);
    for (std::size_t part = 0; part < sends.size(); ++part)
      channels.push_back({direction, int(channels.size()), int(part), grid.neighbor(direction), std::move(sends[part]),
                          grid.neighbor(opposite(direction)), std::move(receives[part])});
  }
  return channels;
}

std::unique_ptr<Exchange> make_exchange(Method method, const Grid& grid, int neighbors,
                                        const std::vector<Channel>& channels) {
  switch (method) {
    case Method::isend_waitall: return std::make_unique<IsendWaitall>(grid, channels);
    case Method::isend_waitany: return std::make_unique<IsendWaitany>(grid, channels);
    case Method::sendrecv: return std::make_unique<Sendrecv>(grid, channels);
    case Method::persistent: return std::make_unique<Persistent>(grid, channels);
    case Method::neighbor_alltoallw: break;
  }
  return make_neighbor_alltoallw(grid, neighbors, channels);
}

}  // namespace halo3d
