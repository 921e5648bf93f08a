// SPDX-License-Identifier: Apache-2.0
// A program loads the CUDA driver long after MPI_Init: the next call with a device pointer detects it. With an
// argument, a plugin of that name is loaded before, unloaded, and loaded again.
#include <dlfcn.h>
#include <mpi.h>

#include <cstdio>
#include <vector>

#include "tests/gpu/device_buffer.hpp"

using namespace bestride::test;

namespace {

constexpr int bytes = 4096;

bool gets_through(const void* out, void* in) {
  return MPI_Sendrecv(out, bytes, MPI_CHAR, 0, 1, in, bytes, MPI_CHAR, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE) ==
         MPI_SUCCESS;
}

bool host_messages_get_through() {
  for (int i = 0; i < 1000; ++i) {
    const std::vector<char> out(bytes, static_cast<char>(i));
    std::vector<char> in(bytes);
    if (!gets_through(out.data(), in.data()) || in != out) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  bool good = host_messages_get_through();
  for (int i = 0; argc > 1 && i < 2; ++i) {
    void* const plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    good = good && plugin && host_messages_get_through();
    if (plugin && i == 0) good = dlclose(plugin) == 0 && host_messages_get_through() && good;
  }
  good = good && start_cuda();
  if (good) {
    const DeviceBuffer out(Kind::device, bytes), in(Kind::device, bytes);
    const std::vector<char> sent(bytes, 'x');
    out.write(sent);
    good = gets_through(out.data(), in.data()) && in.read() == sent;
  }
  if (!good) std::puts("FAILED");
  MPI_Finalize();
  return good ? 0 : 1;
}
