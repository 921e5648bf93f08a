// SPDX-License-Identifier: Apache-2.0
#include "calls.hpp"

#include <unistd.h>
#include <cstdio>
#include <functional>

namespace spellings {
namespace {

constexpr MPI_Comm world = MPI_COMM_WORLD;

int rank() {
  static const int mine = [] {
    int number;
    MPI_Comm_rank(world, &number);
    return number;
  }();
  return mine;
}

using Body = std::function<void(const Side&, const Side&)>;

class Simple final : public Call {
 public:
  Simple(bool many_out, bool many_in, Body body) : many_out_(many_out), many_in_(many_in), body_(std::move(body)) {}
  bool many_out() const override { return many_out_; }
  bool many_in() const override { return many_in_; }
  void operator()(const Side& out, const Side& in) override { body_(out, in); }

 private:
  bool many_out_, many_in_;
  Body body_;
};

/// Counts and displacements of a v-form, in extents of the type: the second block starts `step` bytes after the first.
struct Places {
  int counts[2], elements[2], bytes[2];
  MPI_Datatype types[2];
  explicit Places(const Side& side)
      : counts{side.spelled.count, side.spelled.count},
        elements{0, 0},
        bytes{0, int(side.step)},
        types{side.spelled.type, side.spelled.type} {
    MPI_Aint lower, extent;
    MPI_Type_get_extent(side.spelled.type, &lower, &extent);
    elements[1] = int(side.step / extent);
  }
};

/// Put, get and accumulate between the ranks, over a window of plain memory or from MPI_Win_allocate (shared on one
/// host).
class OneSided final : public Call {
 public:
  using Access = std::function<void(const Side& here, const Side& there, MPI_Win win)>;
  OneSided(MPI_Win win, bool doubles, Access access) : win_(win), doubles_(doubles), access_(std::move(access)) {}
  bool takes(const Shape& shape) const override { return !doubles_ || shape.doubles; }
  void operator()(const Side& out, const Side& in) override { access_(out, in, win_); }

 private:
  MPI_Win win_;
  bool doubles_;
  Access access_;
};

/// Rank 0 only, because the file belongs to one process.
class File final : public Call {
 public:
  using Access = std::function<void(const Side&, MPI_File)>;
  explicit File(Access access) : access_(std::move(access)) {
    if (rank() != 0) return;
    char name[64];
    std::snprintf(name, sizeof name, "/dev/shm/spellings.%ld", long(getpid()));
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                  &file_);
    const std::vector<char> bytes(2 << 20);
    MPI_File_write_at(file_, 0, bytes.data(), int(bytes.size()), MPI_BYTE, MPI_STATUS_IGNORE);
  }
  ~File() override {
    if (rank() == 0) MPI_File_close(&file_);
  }
  void operator()(const Side& out, const Side&) override {
    if (rank() == 0) access_(out, file_);
  }

 private:
  MPI_File file_ = MPI_FILE_NULL;
  Access access_;
};

}  // namespace

Windows::Windows(void* memory, MPI_Aint size) {
  void* theirs;
  MPI_Win_create(memory, size, 1, MPI_INFO_NULL, world, &created);
  MPI_Win_allocate(size, 1, MPI_INFO_NULL, world, &theirs, &allocated);
}

Windows::~Windows() {
  MPI_Win_free(&created);
  MPI_Win_free(&allocated);
}

std::vector<NamedCall> all_calls(const Windows& windows) {
  std::vector<NamedCall> calls;
  const auto add = [&](const char* name, bool many_out, bool many_in, Body body) {
    calls.push_back({name, std::make_unique<Simple>(many_out, many_in, std::move(body))});
  };
  add("Sendrecv", false, false, [](const Side& out, const Side& in) {
    MPI_Sendrecv(out.at, out.spelled.count, out.spelled.type, 1 - rank(), 0, in.at, in.spelled.count, in.spelled.type,
                 1 - rank(), 0, world, MPI_STATUS_IGNORE);
  });
  add("Bcast", false, false, [](const Side& out, const Side& in) {
    const Side& side = rank() == 0 ? out : in;
    MPI_Bcast(side.at, side.spelled.count, side.spelled.type, 0, world);
  });
  add("Gather", false, true, [](const Side& out, const Side& in) {
    MPI_Gather(out.at, out.spelled.count, out.spelled.type, in.at, in.spelled.count, in.spelled.type, 0, world);
  });
  add("Gatherv", false, true, [](const Side& out, const Side& in) {
    const Places places(in);
    MPI_Gatherv(out.at, out.spelled.count, out.spelled.type, in.at, places.counts, places.elements, in.spelled.type, 0,
                world);
  });
  add("Scatter", true, false, [](const Side& out, const Side& in) {
    MPI_Scatter(out.at, out.spelled.count, out.spelled.type, in.at, in.spelled.count, in.spelled.type, 0, world);
  });
  add("Scatterv", true, false, [](const Side& out, const Side& in) {
    const Places places(out);
    MPI_Scatterv(out.at, places.counts, places.elements, out.spelled.type, in.at, in.spelled.count, in.spelled.type, 0,
                 world);
  });
  add("Allgather", false, true, [](const Side& out, const Side& in) {
    MPI_Allgather(out.at, out.spelled.count, out.spelled.type, in.at, in.spelled.count, in.spelled.type, world);
  });
  add("Allgatherv", false, true, [](const Side& out, const Side& in) {
    const Places places(in);
    MPI_Allgatherv(out.at, out.spelled.count, out.spelled.type, in.at, places.counts, places.elements, in.spelled.type,
                   world);
  });
  add("Alltoall", true, true, [](const Side& out, const Side& in) {
    MPI_Alltoall(out.at, out.spelled.count, out.spelled.type, in.at, in.spelled.count, in.spelled.type, world);
  });
  add("Alltoallv", true, true, [](const Side& out, const Side& in) {
    const Places from(out), to(in);
    MPI_Alltoallv(out.at, from.counts, from.elements, out.spelled.type, in.at, to.counts, to.elements, in.spelled.type,
                  world);
  });
  add("Alltoallw", false, false, [](const Side& out, const Side& in) {
    const Places from(out), to(in);
    MPI_Alltoallw(out.at, from.counts, from.bytes, from.types, in.at, to.counts, to.bytes, to.types, world);
  });
  add("Ibcast", false, false, [](const Side& out, const Side& in) {
    const Side& side = rank() == 0 ? out : in;
    MPI_Request request;
    MPI_Ibcast(side.at, side.spelled.count, side.spelled.type, 0, world, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
  add("Iallgather", false, true, [](const Side& out, const Side& in) {
    MPI_Request request;
    MPI_Iallgather(out.at, out.spelled.count, out.spelled.type, in.at, in.spelled.count, in.spelled.type, world,
                   &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
  add("Ialltoallw", false, false, [](const Side& out, const Side& in) {
    const Places from(out), to(in);
    MPI_Request request;
    MPI_Ialltoallw(out.at, from.counts, from.bytes, from.types, in.at, to.counts, to.bytes, to.types, world, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });

  const auto aim = [&](const std::string& where, MPI_Win win) {
    const auto access = [&](const char* name, bool doubles, OneSided::Access body) {
      calls.push_back({name + where, std::make_unique<OneSided>(win, doubles, std::move(body))});
    };
    access("Put, fence", false, [](const Side& here, const Side& there, MPI_Win w) {
      MPI_Win_fence(MPI_MODE_NOPRECEDE, w);
      MPI_Put(here.at, here.spelled.count, here.spelled.type, 1 - rank(), 0, there.spelled.count, there.spelled.type,
              w);
      MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
    });
    access("Get, lock", false, [](const Side& here, const Side& there, MPI_Win w) {
      MPI_Win_lock(MPI_LOCK_SHARED, 1 - rank(), 0, w);
      MPI_Get(here.at, here.spelled.count, here.spelled.type, 1 - rank(), 0, there.spelled.count, there.spelled.type,
              w);
      MPI_Win_unlock(1 - rank(), w);
    });
    access("Accumulate, fence", true, [](const Side& here, const Side& there, MPI_Win w) {
      MPI_Win_fence(MPI_MODE_NOPRECEDE, w);
      MPI_Accumulate(here.at, here.spelled.count, here.spelled.type, 1 - rank(), 0, there.spelled.count,
                     there.spelled.type, MPI_SUM, w);
      MPI_Win_fence(MPI_MODE_NOSUCCEED, w);
    });
  };
  aim(" (created)", windows.created);
  aim(" (allocated)", windows.allocated);

  calls.push_back({"File_write_at", std::make_unique<File>([](const Side& side, MPI_File file) {
                     MPI_File_write_at(file, 0, side.at, side.spelled.count, side.spelled.type, MPI_STATUS_IGNORE);
                   })});
  calls.push_back({"File_read_at", std::make_unique<File>([](const Side& side, MPI_File file) {
                     MPI_File_read_at(file, 0, side.at, side.spelled.count, side.spelled.type, MPI_STATUS_IGNORE);
                   })});
  return calls;
}

}  // namespace spellings
