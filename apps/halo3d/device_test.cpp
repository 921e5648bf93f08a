// SPDX-License-Identifier: Apache-2.0
// The field in device memory, without messages: compares the initializer and the verifier on the GPU with those on the
// host. Runs on the stand-in driver or on hardware. Exits with 1 and prints the difference if there is one.
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "exchange.hpp"
#include "gpu.hpp"
#include "pattern.hpp"

namespace {

using namespace halo3d;

int failures = 0;

void expect(bool good, const char* what, const std::string& details = "") {
  if (good) return;
  ++failures;
  std::fprintf(stderr, "device_test: %s %s\n", what, details.c_str());
}

std::size_t bytes_of(const Field& field) { return field.array_elements() * field.element_bytes(); }

/// The same field in host and in device memory.
struct Pair {
  Pair(const Grid& grid, Options options) : host_options(options), device_options(options) {
    device_options.device = true;
    host = std::make_unique<Field>(host_options), device = std::make_unique<Field>(device_options);
    host_pattern = make_pattern(grid, *host, host_options),
    device_pattern = make_pattern(grid, *device, device_options);
  }
  void copy_to_device() {
    for (int array = 0; array < host->arrays(); ++array)
      Gpu::get().write(device->array(array), host->array(array), bytes_of(*host));
    Gpu::get().synchronize();
  }
  bool same() {
    for (int array = 0; array < host->arrays(); ++array) {
      std::vector<std::byte> copy(bytes_of(*host));
      Gpu::get().read(copy.data(), device->array(array), copy.size());
      if (std::memcmp(copy.data(), host->array(array), copy.size()) != 0) return false;
    }
    return true;
  }
  /// Runs both verifiers on the same bytes.
  Count check(int exchange, const char* what, bool same_place = true) {
    copy_to_device();
    Count on_host, on_device;
    host_pattern->check(exchange, on_host);
    device_pattern->check(exchange, on_device);
    const auto text = [](const Count& count) {
      return std::to_string(count.halo_checked) + " " + std::to_string(count.other_checked) + " " +
             std::to_string(count.wrong) + " " + count.first_wrong;
    };
    const bool equal = on_host.halo_checked == on_device.halo_checked &&
                       on_host.other_checked == on_device.other_checked && on_host.wrong == on_device.wrong &&
                       (!same_place || on_host.first_wrong == on_device.first_wrong);
    expect(equal, what, "host: " + text(on_host) + "; device: " + text(on_device));
    return on_device;
  }

  Options host_options, device_options;
  std::unique_ptr<Field> host, device;
  std::unique_ptr<Pattern> host_pattern, device_pattern;
};

void spoil(std::byte* bytes, const Field& field, std::size_t element) {
  std::byte* at = bytes + element * field.element_bytes();
  if (field.element() == Element::float32)
    *reinterpret_cast<float*>(at) += 1;
  else
    *reinterpret_cast<double*>(at) += 1;
}

void run_case(const Options& options, bool periodic) {
  const Grid grid(MPI_COMM_WORLD, options.grid, periodic);
  Pair pair(grid, options);
  pair.host_pattern->clear(), pair.device_pattern->clear();
  expect(pair.same(), "cleared fields differ");
  pair.host_pattern->update(7), pair.device_pattern->update(7);
  expect(pair.same(), "updated fields differ");

  const std::vector<Channel> channels = channels_of(grid, *pair.host, options);
  make_exchange(options.method, grid, options.neighbors, channels)->run();
  const Count good = pair.check(7, "the checks of exchanged values differ");
  expect(good.wrong == 0, "right values are reported as wrong", good.first_wrong);
  expect(pair.check(8, "the checks of a stale field differ").wrong > 0,
         "values of the previous exchange are reported as right");

  // One wrong element at a time: in the guards, in the middle, and throughout the array.
  const std::size_t elements = pair.host->array_elements();
  for (const std::size_t at :
       {std::size_t{0}, Field::guard - 1, Field::guard, elements / 2, elements - Field::guard, elements - 1}) {
    std::byte* last = pair.host->array(pair.host->arrays() - 1);
    std::vector<std::byte> kept(last, last + bytes_of(*pair.host));
    spoil(last, *pair.host, at);
    const Count one = pair.check(7, "the checks of a wrong element differ");
    expect(one.wrong == 1, "a wrong element is not found", std::to_string(at));
    std::copy(kept.begin(), kept.end(), last);
  }
  pair.copy_to_device();
  pair.host_pattern->damage(5), pair.device_pattern->damage(5);
  expect(pair.same(), "damage differs");
}

int run() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (const std::string error = Gpu::open(rank); !error.empty()) {
    std::fprintf(stderr, "device_test: %s\n", error.c_str());
    return 77;
  }
  int turn = 0;
  for (const Element element : {Element::float32, Element::float64})
    for (const Storage storage : {Storage::separate, Storage::interleaved})
      for (const int neighbors : {6, 26})
        for (const bool periodic : {true, false}) {
          Options options;
          options.cells = {4 + turn % 3, 5, 6 + turn % 4};
          options.element = element, options.storage = storage, options.neighbors = neighbors,
          options.periodic = periodic;
          options.quantities = 1 + turn % 4, options.exchanged = 1 + turn % 3 % options.quantities,
          options.radius = 1 + turn % 3;
          run_case(options, periodic);
          ++turn;
        }
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("device_test: %d cases, %d differences\n", turn, failures);
  return failures ? 1 : 0;
}

}  // namespace

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  const int code = run();
  MPI_Finalize();
  return code;
}
