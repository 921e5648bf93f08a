// SPDX-License-Identifier: Apache-2.0
// The kernels on the host, exported for the stand-in CUDA driver of the tests, which cannot run device code and looks
// for this table. A real driver ignores it.
#include "device_kernels.hpp"

extern "C" {
// The interface of the stand-in (tests/fake_cuda/control.h), declared here because this program includes no file of the
// project.
struct fake_cuda_launch {
  unsigned grid, block;
  void* (*at)(const fake_cuda_launch*, unsigned long long address, unsigned long long bytes);
};
struct fake_cuda_kernel {
  const char* name;
  unsigned long long parameter_bytes;
  int (*run)(const fake_cuda_launch*, const void* parameter);
};
}

namespace halo3d {
namespace {

constexpr int illegal_address = 700;

/// Runs the kernel as one thread that does all the work.
template <class Action>
int with_array(const fake_cuda_launch* launch, const void* parameter, Action&& action) {
  const Job& job = *static_cast<const Job*>(parameter);
  void* array = launch->at(launch, job.array, job.elements * std::uint64_t(job.real_bytes));
  Tally* tally = job.tally ? static_cast<Tally*>(launch->at(launch, job.tally, sizeof(Tally))) : nullptr;
  if (!array || (job.tally && !tally)) return illegal_address;
  if (job.real_bytes == 4)
    action(job, static_cast<float*>(array), tally);
  else
    action(job, static_cast<double*>(array), tally);
  return 0;
}

int clear(const fake_cuda_launch* launch, const void* parameter) {
  return with_array(launch, parameter, [](const Job& job, auto* array, Tally*) { clear_elements(job, array, 0, 1); });
}
int update(const fake_cuda_launch* launch, const void* parameter) {
  return with_array(launch, parameter, [](const Job& job, auto* array, Tally*) { update_elements(job, array, 0, 1); });
}
int check(const fake_cuda_launch* launch, const void* parameter) {
  return with_array(launch, parameter,
                    [](const Job& job, auto* array, Tally* tally) { check_elements(job, array, 0, 1, *tally); });
}

}  // namespace
}  // namespace halo3d

extern "C" __attribute__((visibility("default")))
const fake_cuda_kernel fake_cuda_kernels[] = {{"halo3d_clear", sizeof(halo3d::Job), halo3d::clear},
                                              {"halo3d_update", sizeof(halo3d::Job), halo3d::update},
                                              {"halo3d_check", sizeof(halo3d::Job), halo3d::check},
                                              {nullptr, 0, nullptr}};
