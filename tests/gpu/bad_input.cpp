// SPDX-License-Identifier: Apache-2.0
// Device buffers that cannot be transferred, or only in an unusual way: the call returns an MPI error through the
// communicator's handler, or transfers the right bytes. It never crashes. One rank that sends to itself; two ranks in
// the cases in which one gives the other an address.
#include <cstring>

#include "tests/support/typed_data.hpp"

using namespace bestride::test;

namespace {

/// Device memory that the driver allocates and that is freed by the destructor.
struct Device {
  Device() : memory(MemoryPlace::device, 4096) { memory.write(std::vector<char>(4096, 1).data()); }
  DeviceMemory memory;
};

int send(void* buffer, int count, MPI_Datatype type) { return MPI_Send(buffer, count, type, 0, 7, MPI_COMM_SELF); }

void call_driver(const char* name, void* argument) {
  const auto entry = driver_entry_as<int (*)(void*)>(name);
  CHECK(entry && entry(argument) == 0);
}

}  // namespace

MPI_CASE(freed_device_memory) {
  const ReturnErrors returned(MPI_COMM_SELF);
  Device device;
  double there[4];
  // The library has detected that this is device memory.
  MPI_Sendrecv(device.memory.data(), 4, MPI_DOUBLE, 0, 1, there, 4, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  void* gone = device.memory.data();
  device.memory.release();
  CHECK_EQUAL(MPI_ERR_OTHER, send(gone, 4, MPI_DOUBLE));
  CHECK_EQUAL(MPI_ERR_OTHER, MPI_Recv(gone, 4, MPI_DOUBLE, MPI_ANY_SOURCE, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  MPI_Request request;
  CHECK_EQUAL(MPI_ERR_OTHER, MPI_Isend(gone, 4, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, &request));
  CHECK_EQUAL(MPI_ERR_OTHER, MPI_Irecv(gone, 4, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, &request));
  CHECK_EQUAL(MPI_ERR_OTHER, MPI_Send_init(gone, 4, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, &request));
  char packed[64];
  int position = 0;
  CHECK_EQUAL(MPI_ERR_OTHER, MPI_Pack(gone, 4, MPI_DOUBLE, packed, 64, &position, MPI_COMM_SELF));
}

MPI_CASE(memory_of_a_destroyed_context) {
  const ReturnErrors returned(MPI_COMM_SELF);
  const Device primary;  // also loads the driver
  const auto create = driver_entry_as<int (*)(void**, unsigned, int)>("cuCtxCreate_v2");
  void* context = nullptr;
  std::uint64_t memory = 0;
  CHECK(create(&context, 0, 0) == 0);
  CHECK(driver_entry_as<int (*)(std::uint64_t*, std::size_t)>("cuMemAlloc_v2")(&memory, 4096) == 0);
  double there[4];
  void* buffer = reinterpret_cast<void*>(memory);
  CHECK_EQUAL(MPI_SUCCESS,
              MPI_Sendrecv(buffer, 4, MPI_DOUBLE, 0, 1, there, 4, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  call_driver("cuCtxDestroy_v2", context);
  CHECK_EQUAL(MPI_ERR_OTHER, send(buffer, 4, MPI_DOUBLE));
}

MPI_CASE(host_and_device_memory_in_one_message) {
  Device device;
  double here[4] = {1, 2, 3, 4}, got[8] = {};
  const double there[4] = {5, 6, 7, 8};
  device.memory.write(std::vector<char>(4096).data());
  std::vector<char> page(4096);
  std::memcpy(page.data(), there, sizeof there);
  device.memory.write(page.data());
  MPI_Aint at[2];
  MPI_Get_address(here, &at[0]);
  MPI_Get_address(device.memory.data(), &at[1]);
  const int lengths[] = {4, 4};
  MPI_Datatype both;
  MPI_Type_create_hindexed(2, lengths, at, MPI_DOUBLE, &both);
  MPI_Type_commit(&both);
  MPI_Sendrecv(MPI_BOTTOM, 1, both, 0, 1, got, 8, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  for (int i = 0; i < 8; ++i) CHECK_EQUAL(i + 1.0, got[i]);
  for (double& each : got) each *= 10;
  MPI_Sendrecv(got, 8, MPI_DOUBLE, 0, 1, MPI_BOTTOM, 1, both, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  device.memory.read(page.data());
  for (int i = 0; i < 4; ++i) {
    double value;
    std::memcpy(&value, page.data() + 8 * i, 8);
    CHECK_EQUAL(10.0 * (i + 1), here[i]);
    CHECK_EQUAL(10.0 * (i + 5), value);
  }
  CHECK_EQUAL(0, page[32]);
  MPI_Type_free(&both);
}

/// The handle that cuIpcGetMemHandle returns.
struct IpcHandle {
  char bytes[64] = {};
};

// Memory of another process is ordinary device memory after it is mapped, and invalid before.
MPI_CASE(device_memory_of_another_process) {
  if (world_size() < 2) return;
  const ReturnErrors returned(MPI_COMM_SELF);
  constexpr std::size_t size = 4096;
  // Both processes have three buffers. The second address of rank 0 is usually between the first and the last of
  // rank 1, which frees its own second buffer.
  Device first, second, third;
  IpcHandle handle;
  void* there = nullptr;
  if (world_rank() == 0) {
    second.memory.write(std::vector<char>(size, 42).data());
    CHECK(driver_entry_as<int (*)(IpcHandle*, void*)>("cuIpcGetMemHandle")(&handle, second.memory.data()) == 0);
    there = second.memory.data();
  }
  MPI_Bcast(&handle, sizeof handle, MPI_BYTE, 0, MPI_COMM_WORLD);
  MPI_Bcast(&there, sizeof there, MPI_BYTE, 0, MPI_COMM_WORLD);
  double got[4] = {};
  const auto receive_from = [&](void* buffer) {
    return MPI_Sendrecv(buffer, 4, MPI_DOUBLE, 0, 1, got, 4, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  };
  if (world_rank() == 1) {
    CHECK_EQUAL(MPI_SUCCESS, receive_from(first.memory.data()));
    CHECK_EQUAL(MPI_SUCCESS, receive_from(third.memory.data()));
    // The address of another process cannot be detected if this process has memory at the same address.
    second.memory.release();
    const auto at = [](void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); };
    unsigned type = 0;
    const bool own =
        driver_entry_as<int (*)(void*, int, std::uint64_t)>("cuPointerGetAttribute")(&type, 2, at(there)) == 0;
    if (!own && at(there) > at(first.memory.data()) && at(there) < at(third.memory.data()))
      CHECK_EQUAL(MPI_ERR_OTHER, receive_from(there));

    std::uint64_t mapped = 0;
    CHECK(driver_entry_as<int (*)(std::uint64_t*, IpcHandle, unsigned)>("cuIpcOpenMemHandle_v2")(&mapped, handle, 1) ==
          0);
    void* buffer = reinterpret_cast<void*>(mapped);
    CHECK_EQUAL(MPI_SUCCESS, receive_from(buffer));
    const char expected[] = {42, 42, 42, 42, 42, 42, 42, 42};
    CHECK(std::memcmp(static_cast<const void*>(&got[3]), expected, sizeof expected) == 0);
    // Writes every second of eight numbers, which rank 0 checks below.
    const double sent[4] = {1, 2, 3, 4};
    MPI_Datatype type_of_four;
    MPI_Type_vector(4, 1, 2, MPI_DOUBLE, &type_of_four);
    MPI_Type_commit(&type_of_four);
    CHECK_EQUAL(MPI_SUCCESS, MPI_Sendrecv(sent, 4, MPI_DOUBLE, 0, 1, buffer, 1, type_of_four, 0, 1, MPI_COMM_SELF,
                                          MPI_STATUS_IGNORE));
    MPI_Type_free(&type_of_four);
    CHECK(driver_entry_as<int (*)(std::uint64_t)>("cuIpcCloseMemHandle")(mapped) == 0);
    CHECK_EQUAL(MPI_ERR_OTHER, receive_from(buffer));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (world_rank() == 0) {
    std::vector<char> page(size);
    second.memory.read(page.data());
    double value = 0;
    std::memcpy(&value, page.data() + 48, sizeof value);
    CHECK_EQUAL(4.0, value);
    CHECK_EQUAL(42, page[8]);
  }
}

// With TEST_LOST_DEVICE, a kernel fails and leaves the context unusable.
MPI_CASE(managed_memory_of_a_lost_device) {
  if (!std::getenv("TEST_LOST_DEVICE")) return;
  const ReturnErrors returned(MPI_COMM_SELF);
  DeviceMemory managed(MemoryPlace::managed, 4096);
  managed.write(std::vector<char>(4096, 1).data());
  CommittedType type("vector(4,1,2,double)");
  double there[4];
  const auto send_it = [&] {
    return MPI_Sendrecv(managed.data(), 1, type, 0, 1, there, 4, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
  };
  CHECK_EQUAL(MPI_SUCCESS, send_it());
  tolerate_driver_errors();
  driver_entry_as<void (*)(const char*)>("fake_cuda_fail")("kernel:1:700");
  CHECK_EQUAL(MPI_ERR_OTHER, send_it());
  driver_entry_as<void (*)(const char*)>("fake_cuda_fail")("");
  CHECK_EQUAL(MPI_ERR_OTHER, send_it());
  MPI_Request request;
  CHECK_EQUAL(MPI_ERR_OTHER, MPI_Isend(managed.data(), 1, type, 0, 1, MPI_COMM_SELF, &request));
  CHECK_EQUAL(MPI_ERR_OTHER, MPI_Recv(managed.data(), 1, type, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  CHECK(MPI_Allreduce(MPI_IN_PLACE, managed.data(), 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF) != MPI_SUCCESS);
  double here[4] = {1, 2, 3, 4};
  CHECK_EQUAL(MPI_SUCCESS,
              MPI_Sendrecv(here, 4, MPI_DOUBLE, 0, 1, there, 4, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE));
}

MPI_CASE(mpi_errors_are_unchanged) {
  const ReturnErrors returned(MPI_COMM_SELF);
  Device device;
  MPI_Request request;
  CHECK_EQUAL(MPI_ERR_COUNT, error_class(send(device.memory.data(), -1, MPI_DOUBLE)));
  CHECK_EQUAL(MPI_ERR_TYPE, error_class(send(device.memory.data(), 1, MPI_DATATYPE_NULL)));
  CHECK_EQUAL(MPI_ERR_RANK, error_class(MPI_Isend(device.memory.data(), 1, MPI_DOUBLE, 5, 1, MPI_COMM_SELF, &request)));
  CHECK_EQUAL(MPI_ERR_TAG, error_class(MPI_Isend(device.memory.data(), 1, MPI_DOUBLE, 0, -7, MPI_COMM_SELF, &request)));
  // A truncated message does not write device memory beyond the posted receive.
  double long_one[8] = {9, 9, 9, 9, 9, 9, 9, 9};
  const int error = MPI_Sendrecv(long_one, 8, MPI_DOUBLE, 0, 1, device.memory.data(), 4, MPI_DOUBLE, 0, 1,
                                 MPI_COMM_SELF, MPI_STATUS_IGNORE);
  CHECK_EQUAL(MPI_ERR_TRUNCATE, error_class(error));
  std::vector<char> page(4096);
  device.memory.read(page.data());
  CHECK_EQUAL(1, page[32]);
}

MPI_CASE(an_unusable_driver) {
  // Unusable only with a driver version that is too old (CMakeLists.txt).
  const bool unusable = std::getenv("FAKE_CUDA_VERSION") || std::getenv("FAKE_CUDA_MISSING");
  const ReturnErrors returned(MPI_COMM_SELF);
  Device device;
  double there[4];
  CHECK_EQUAL(unusable ? MPI_ERR_OTHER : MPI_SUCCESS, MPI_Sendrecv(device.memory.data(), 4, MPI_DOUBLE, 0, 1, there, 4,
                                                                   MPI_DOUBLE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE));
  double here[4] = {1, 2, 3, 4};
  CHECK_EQUAL(MPI_SUCCESS,
              MPI_Sendrecv(here, 4, MPI_DOUBLE, 0, 1, there, 4, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE));
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
