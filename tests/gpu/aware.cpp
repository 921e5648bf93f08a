// SPDX-License-Identifier: Apache-2.0
// A GPU-aware MPI library, simulated by aware_tool.c, gets contiguous device memory unchanged. Derived types are
// packed into device memory, and the library gets the packed buffer. Two ranks.
#include <dlfcn.h>

#include "tests/support/typed_data.hpp"

using namespace bestride::test;

namespace {

int given() {
  const auto* count = static_cast<const int*>(dlsym(RTLD_DEFAULT, "aware_tool_given"));
  return count ? *count : -1;
}

/// Sends one message. `expected`: how many calls on each rank pass device memory to the tool.
void message(const char* type, int count, MemoryPlace from, MemoryPlace to, int expected) {
  set_memory_place(from);
  TypedData out = outgoing(type, count, 0);
  set_memory_place(to);
  TypedData in = incoming(type, count);
  const int before = given();
  if (world_rank() == 0) {
    MPI_Send(out.address(), count, out.type(), 1, 1, MPI_COMM_WORLD);
    out.expect_untouched();
  } else {
    MPI_Status status;
    MPI_Recv(in.address(), count, in.type(), 0, 1, MPI_COMM_WORLD, &status);
    check_status(status, 0, 1, in.type(), count);
    in.expect(outgoing(type, count, 0).packed());
  }
  CHECK_EQUAL(before + expected, given());
}

}  // namespace

MPI_CASE(device_memory_is_passed_to_the_library) {
  CHECK(given() >= 0);
  for (const char* type : {"double", "contiguous(7,float)", small_type, large_type, record_type, list_type})
    message(type, 3, MemoryPlace::device, MemoryPlace::device, 1);
}

MPI_CASE(host_memory_stays_host_memory) {
  for (const char* type : {"double", small_type, record_type}) {
    message(type, 3, MemoryPlace::host, MemoryPlace::host, 0);
    message(type, 3, MemoryPlace::pinned, MemoryPlace::pinned, 0);
  }
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
