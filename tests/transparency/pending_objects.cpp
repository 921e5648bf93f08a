// SPDX-License-Identifier: Apache-2.0
// While a nonblocking collective is pending, the calls that create and free communicators, windows and files progress
// it. Four ranks.
#include "tests/transparency/under_way.hpp"

using namespace bestride::test;

namespace {

/// Runs `call` on the communicator of the pending collective, then on another one.
void on_same_and_other(void (*call)(MPI_Comm)) {
  MPI_Comm comm, other;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  while_pending(comm, [=] { call(comm); });
  while_pending(comm, [=] { call(other); });
  MPI_Comm_free(&comm);
  MPI_Comm_free(&other);
}

/// Creates a communicator by `make`, uses it and frees it.
template <class Make>
void used_and_freed(Make&& make) {
  MPI_Comm made = MPI_COMM_NULL;
  make(&made);
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, made);
  CHECK(sum > 0);
  MPI_Comm_free(&made);
}

/// A window of 4 ints on each rank.
struct Window {
  explicit Window(MPI_Comm comm) { MPI_Win_create(data, sizeof data, sizeof(int), MPI_INFO_NULL, comm, &win); }
  ~Window() { MPI_Win_free(&win); }
  int data[4] = {};
  MPI_Win win;
};

constexpr const char* file_name = "transparency_pending.out";

}  // namespace

MPI_CASE(comm_set_info) {
  on_same_and_other([](MPI_Comm comm) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Comm_set_info(comm, info);
    MPI_Info_free(&info);
  });
}

MPI_CASE(comm_dup) {
  on_same_and_other([](MPI_Comm comm) { used_and_freed([=](MPI_Comm* made) { MPI_Comm_dup(comm, made); }); });
}

MPI_CASE(comm_dup_with_info) {
  on_same_and_other([](MPI_Comm comm) {
    used_and_freed([=](MPI_Comm* made) { MPI_Comm_dup_with_info(comm, MPI_INFO_NULL, made); });
  });
}

MPI_CASE(comm_idup) {
  on_same_and_other([](MPI_Comm comm) {
    used_and_freed([=](MPI_Comm* made) {
      MPI_Request request;
      MPI_Comm_idup(comm, made, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    });
  });
}

MPI_CASE(comm_split) {
  on_same_and_other(
      [](MPI_Comm comm) { used_and_freed([=](MPI_Comm* made) { MPI_Comm_split(comm, world_rank() / 2, 0, made); }); });
}

MPI_CASE(comm_split_type) {
  on_same_and_other([](MPI_Comm comm) {
    used_and_freed([=](MPI_Comm* made) { MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, made); });
  });
}

MPI_CASE(comm_create) {
  on_same_and_other([](MPI_Comm comm) {
    used_and_freed([=](MPI_Comm* made) {
      MPI_Group group;
      MPI_Comm_group(comm, &group);
      MPI_Comm_create(comm, group, made);
      MPI_Group_free(&group);
    });
  });
}

MPI_CASE(comm_create_group) {
  on_same_and_other([](MPI_Comm comm) {
    used_and_freed([=](MPI_Comm* made) {
      MPI_Group group;
      MPI_Comm_group(comm, &group);
      MPI_Comm_create_group(comm, group, 9, made);
      MPI_Group_free(&group);
    });
  });
}

MPI_CASE(cart_create) {
  on_same_and_other([](MPI_Comm comm) {
    used_and_freed([=](MPI_Comm* made) {
      const int size = world_size(), periodic = 1;
      MPI_Cart_create(comm, 1, &size, &periodic, 0, made);
    });
  });
}

MPI_CASE(dist_graph_create) {
  on_same_and_other([](MPI_Comm comm) {
    used_and_freed([=](MPI_Comm* made) {
      const int rank = world_rank(), next = (rank + 1) % world_size(), degree = 1;
      MPI_Dist_graph_create(comm, 1, &rank, &degree, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, made);
    });
  });
}

MPI_CASE(intercomm_create_and_merge) {
  on_same_and_other([](MPI_Comm comm) {
    MPI_Comm half, between, merged;
    MPI_Comm_split(comm, world_rank() % 2, 0, &half);
    MPI_Intercomm_create(half, 0, comm, 1 - world_rank() % 2, 4, &between);
    MPI_Intercomm_merge(between, world_rank() % 2, &merged);
    MPI_Barrier(merged);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&between);
    MPI_Comm_free(&half);
  });
}

MPI_CASE(comm_free_of_another) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  while_pending(comm, [] {
    MPI_Comm other;
    MPI_Comm_dup(MPI_COMM_WORLD, &other);
    Gather gather(other);
    gather.wait();
    MPI_Comm_free(&other);
  });
  MPI_Comm_free(&comm);
}

MPI_CASE(win_create) {
  on_same_and_other([](MPI_Comm comm) { const Window window(comm); });
}

MPI_CASE(win_allocate) {
  on_same_and_other([](MPI_Comm comm) {
    int* memory;
    MPI_Win win;
    MPI_Win_allocate(4096, 1, MPI_INFO_NULL, comm, &memory, &win);
    MPI_Win_free(&win);
  });
}

MPI_CASE(win_fence) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  {
    Window window(comm);
    while_pending(comm, [&] {
      const int value = world_rank() + 10, next = (world_rank() + 1) % world_size();
      MPI_Win_fence(0, window.win);
      MPI_Put(&value, 1, MPI_INT, next, 1, 1, MPI_INT, window.win);
      MPI_Win_fence(0, window.win);
      CHECK_EQUAL((world_rank() + world_size() - 1) % world_size() + 10, window.data[1]);
    });
  }
  MPI_Comm_free(&comm);
}

MPI_CASE(win_lock_and_unlock) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  {
    Window window(comm);
    while_pending(comm, [&] {
      const int one = 1;
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win);
      MPI_Accumulate(&one, 1, MPI_INT, 0, 2, 1, MPI_INT, MPI_SUM, window.win);
      MPI_Win_unlock(0, window.win);
      MPI_Win_lock_all(0, window.win);
      MPI_Win_flush_all(window.win);
      MPI_Win_unlock_all(window.win);
      MPI_Barrier(MPI_COMM_WORLD);
    });
  }
  MPI_Comm_free(&comm);
}

MPI_CASE(file_open_and_close) {
  on_same_and_other([](MPI_Comm comm) {
    MPI_File file;
    MPI_File_open(comm, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_close(&file);
  });
}

MPI_CASE(file_collectives) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_File file;
  MPI_File_open(comm, file_name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
  while_pending(comm, [&] {
    const int out[2] = {world_rank(), 7};
    int in[2] = {-1, -1};
    const MPI_Offset place = world_rank() * 8, next = (world_rank() + 1) % world_size() * 8;
    MPI_File_set_size(file, 0);
    MPI_File_write_at_all(file, place, out, 2, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at_all(file, next, in, 2, MPI_INT, MPI_STATUS_IGNORE);
    CHECK_EQUAL((world_rank() + 1) % world_size(), in[0]);
    MPI_Barrier(MPI_COMM_WORLD);
  });
  MPI_File_close(&file);
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) { return run_watched_cases(argc, argv); }
