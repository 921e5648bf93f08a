// SPDX-License-Identifier: Apache-2.0
// One-sided calls, files, partitioned messages, external data and attached buffers with device memory give an error of
// a separate class through the error handler of the window, file or communicator. Its text names the remedy. With host
// memory the same calls work.
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/gpu/device_buffer.hpp"
#include "tests/support/harness.hpp"

using namespace bestride::test;

namespace {

MPI_Win window;
MPI_File file;
int handled = 0;
void on_window(MPI_Win*, int*, ...) { ++handled; }
void on_file(MPI_File*, int*, ...) { ++handled; }
void on_comm(MPI_Comm*, int*, ...) { ++handled; }

struct Call {
  const char* name;
  int (*run)(void* buffer);
};

int complete(int error, MPI_Request* request) {
  return error == MPI_SUCCESS ? MPI_Wait(request, MPI_STATUS_IGNORE) : error;
}
int other[8];  // host memory for a call's other buffers

#define CALL(name, ...)                                                    \
  {#name, [](void* b) -> int { return MPI_##name(__VA_ARGS__); }}, {       \
#name "_c", [](void* b) -> int { return MPI_##name##_c(__VA_ARGS__); } \
  }
#define PENDING(name, ...)                                                                              \
  {#name,                                                                                               \
   [](void* b) -> int {                                                                                 \
     MPI_Request r;                                                                                     \
     return complete(MPI_##name(__VA_ARGS__, &r), &r);                                                  \
   }},                                                                                                  \
  {                                                                                                     \
#name "_c", [](void* b) -> int { MPI_Request r; return complete(MPI_##name##_c(__VA_ARGS__, &r), &r); } \
  }

const Call on_windows[] = {
    CALL(Put, b, 1, MPI_INT, 0, 0, 1, MPI_INT, window),
    CALL(Get, b, 1, MPI_INT, 0, 0, 1, MPI_INT, window),
    CALL(Accumulate, b, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window),
    CALL(Get_accumulate, b, 1, MPI_INT, other, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window),
    CALL(Get_accumulate, other, 1, MPI_INT, b, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window),
    PENDING(Rput, b, 1, MPI_INT, 0, 0, 1, MPI_INT, window),
    PENDING(Rget, b, 1, MPI_INT, 0, 0, 1, MPI_INT, window),
    PENDING(Raccumulate, b, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window),
    PENDING(Rget_accumulate, b, 1, MPI_INT, other, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window),
    PENDING(Rget_accumulate, other, 1, MPI_INT, b, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window),
    {"Fetch_and_op", [](void* b) { return MPI_Fetch_and_op(b, other, MPI_INT, 0, 0, MPI_SUM, window); }},
    {"Fetch_and_op", [](void* b) { return MPI_Fetch_and_op(other, b, MPI_INT, 0, 0, MPI_SUM, window); }},
    {"Compare_and_swap", [](void* b) { return MPI_Compare_and_swap(b, other, other + 1, MPI_INT, 0, 0, window); }},
    {"Compare_and_swap", [](void* b) { return MPI_Compare_and_swap(other, b, other + 1, MPI_INT, 0, 0, window); }},
    {"Compare_and_swap", [](void* b) { return MPI_Compare_and_swap(other, other + 1, b, MPI_INT, 0, 0, window); }},
};

const Call on_files[] = {
    CALL(File_write_at, file, 0, b, 4, MPI_INT, MPI_STATUS_IGNORE),
    CALL(File_read_at, file, 0, b, 4, MPI_INT, MPI_STATUS_IGNORE),
    CALL(File_write_at_all, file, 0, b, 4, MPI_INT, MPI_STATUS_IGNORE),
    CALL(File_read_at_all, file, 0, b, 4, MPI_INT, MPI_STATUS_IGNORE),
    CALL(File_write, file, b, 4, MPI_INT, MPI_STATUS_IGNORE),
    CALL(File_read, file, b, 4, MPI_INT, MPI_STATUS_IGNORE),
    CALL(File_write_all, file, b, 4, MPI_INT, MPI_STATUS_IGNORE),
    CALL(File_read_all, file, b, 4, MPI_INT, MPI_STATUS_IGNORE),
    CALL(File_write_shared, file, b, 4, MPI_INT, MPI_STATUS_IGNORE),
    CALL(File_read_shared, file, b, 4, MPI_INT, MPI_STATUS_IGNORE),
    CALL(File_write_ordered, file, b, 4, MPI_INT, MPI_STATUS_IGNORE),
    CALL(File_read_ordered, file, b, 4, MPI_INT, MPI_STATUS_IGNORE),
    PENDING(File_iwrite_at, file, 0, b, 4, MPI_INT),
    PENDING(File_iread_at, file, 0, b, 4, MPI_INT),
    PENDING(File_iwrite, file, b, 4, MPI_INT),
    PENDING(File_iread, file, b, 4, MPI_INT),
    PENDING(File_iwrite_shared, file, b, 4, MPI_INT),
    PENDING(File_iread_shared, file, b, 4, MPI_INT),
    PENDING(File_iwrite_all, file, b, 4, MPI_INT),
    PENDING(File_iread_all, file, b, 4, MPI_INT),
    PENDING(File_iwrite_at_all, file, 0, b, 4, MPI_INT),
    PENDING(File_iread_at_all, file, 0, b, 4, MPI_INT),
};
// The begin call is refused, so there is no end call.
const Call beginnings[] = {
    CALL(File_write_all_begin, file, b, 4, MPI_INT),       CALL(File_read_all_begin, file, b, 4, MPI_INT),
    CALL(File_write_at_all_begin, file, 0, b, 4, MPI_INT), CALL(File_read_at_all_begin, file, 0, b, 4, MPI_INT),
    CALL(File_write_ordered_begin, file, b, 4, MPI_INT),   CALL(File_read_ordered_begin, file, b, 4, MPI_INT),
};

template <class Count>
int pack_external(int (*call)(const char*, const void*, Count, MPI_Datatype, void*, Count, Count*), const void* user,
                  void* packed) {
  Count position = 0;
  return call("external32", user, 1, MPI_INT, packed, 16, &position);
}
int pack_both(const void* user, void* packed) {
  MPI_Aint position = 0;
  if (const int error = MPI_Pack_external("external32", user, 1, MPI_INT, packed, 16, &position)) return error;
  position = 0;
  return MPI_Unpack_external("external32", packed, 16, &position, other, 1, MPI_INT);
}
int unpack_into(void* user) {
  MPI_Aint position = 0;
  return MPI_Unpack_external("external32", other, 16, &position, user, 1, MPI_INT);
}
int unpack_into_c(void* user) {
  MPI_Count position = 0;
  return MPI_Unpack_external_c("external32", other, 16, &position, user, 1, MPI_INT);
}
const Call externals[] = {
    {"Pack_external", [](void* b) { return pack_both(b, other); }},
    {"Pack_external", [](void* b) { return pack_both(other, b); }},
    {"Pack_external_c", [](void* b) { return pack_external<MPI_Count>(&MPI_Pack_external_c, b, other); }},
    {"Unpack_external", unpack_into},
    {"Unpack_external_c", unpack_into_c},
};

void expect_refused(const char* name, int error) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (error == MPI_SUCCESS || error_class(error) <= MPI_ERR_LASTCODE)
    return fail_check(__FILE__, __LINE__, std::string(name) + ": not refused");
  MPI_Error_string(error, text, &length);
  if (!std::strstr(text, "host memory") || !std::strstr(text, "BESTRIDE_GPU_AWARE=yes"))
    fail_check(__FILE__, __LINE__, std::string(name) + ": " + text);
  if (handled != 1)
    fail_check(__FILE__, __LINE__,
               std::string(name) + ": the error handler was called " + std::to_string(handled) + " times");
  handled = 0;
}

template <std::size_t n>
void expect_all(const Call (&calls)[n], bool host_too) {
  const DeviceBuffer device(Kind::device, 256), managed(Kind::managed, 256);
  alignas(16) char host[256] = {};
  handled = 0;
  for (const Call& call : calls) {
    expect_refused(call.name, call.run(device.data() + 16));
    for (void* reached : {static_cast<void*>(host), static_cast<void*>(managed.data())})
      if (host_too && call.run(reached) != MPI_SUCCESS)
        fail_check(__FILE__, __LINE__, std::string(call.name) + ": an error with host or managed memory");
    CHECK_EQUAL(0, handled);
  }
}

}  // namespace

// With TEST_LATE the program calls MPI before it loads the driver. The next intercepted call detects the driver and
// enables interception on demand.
MPI_CASE(driver_after_mpi) {
  if (!std::getenv("TEST_LATE")) return;
  int out = 1, in = 0;
  const auto exchange = [&] {
    MPI_Sendrecv(&out, 1, MPI_INT, 0, 0, &in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  };
  exchange();
  CHECK(start_cuda());
  exchange();
}

MPI_CASE(windows) {
  int target[4] = {};
  MPI_Errhandler handler;
  MPI_Win_create_errhandler(on_window, &handler);
  MPI_Win_create(target, sizeof target, 1, MPI_INFO_NULL, MPI_COMM_SELF, &window);
  MPI_Win_set_errhandler(window, handler);
  MPI_Win_lock_all(0, window);
  expect_all(on_windows, true);
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_SELF, &window);
  MPI_Win_set_errhandler(window, handler);
  const DeviceBuffer device(Kind::device, 256);
  expect_refused("Win_attach", MPI_Win_attach(window, device.data(), 256));
  MPI_Win_free(&window);
  MPI_Errhandler_free(&handler);
}

MPI_CASE(external_data_and_attached_buffers) {
  MPI_Errhandler handler, before;
  MPI_Comm_create_errhandler(on_comm, &handler);
  MPI_Comm_get_errhandler(MPI_COMM_SELF, &before);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
  expect_all(externals, true);
  const DeviceBuffer device(Kind::device, 256);
  expect_refused("Buffer_attach", MPI_Buffer_attach(device.data(), 256));
  expect_refused("Buffer_attach_c", MPI_Buffer_attach_c(device.data(), 256));
  MPI_Comm_set_errhandler(MPI_COMM_SELF, before);
  MPI_Errhandler_free(&handler);
  MPI_Errhandler_free(&before);
}

MPI_CASE(files) {
  const std::string path = "gpu_refusals." + std::to_string(world_rank()) + ".tmp";
  MPI_Errhandler handler;
  MPI_File_create_errhandler(on_file, &handler);
  CHECK_EQUAL(MPI_SUCCESS,
              MPI_File_open(MPI_COMM_SELF, path.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                            MPI_INFO_NULL, &file));
  MPI_File_set_errhandler(file, handler);
  expect_all(on_files, true);
  expect_all(beginnings, false);
  MPI_File_close(&file);
  MPI_Errhandler_free(&handler);
}

MPI_CASE(communicators) {
  const DeviceBuffer device(Kind::device, 256);
  MPI_Comm comm;
  MPI_Errhandler handler;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  MPI_Comm_create_errhandler(on_comm, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  handled = 0;
  MPI_Win refused = MPI_WIN_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  expect_refused("Win_create", MPI_Win_create(device.data(), 256, 1, MPI_INFO_NULL, comm, &refused));
  expect_refused("Win_create_c", MPI_Win_create_c(device.data(), 256, 1, MPI_INFO_NULL, comm, &refused));
  expect_refused("Psend_init", MPI_Psend_init(device.data(), 2, 4, MPI_INT, 0, 0, comm, MPI_INFO_NULL, &request));
  expect_refused("Precv_init", MPI_Precv_init(device.data(), 2, 4, MPI_INT, 0, 0, comm, MPI_INFO_NULL, &request));
  MPI_Comm_free(&comm);
  MPI_Errhandler_free(&handler);
}

int main(int argc, char** argv) {
  if (argc < 2 || std::strcmp(argv[1], "--list") != 0)
    if (!std::getenv("TEST_LATE") && !start_cuda()) return 1;
  return run_cases(argc, argv);
}
