// SPDX-License-Identifier: Apache-2.0
#include "device_kernels.hpp"

namespace {

using namespace halo3d;

template <class Action>
__device__ __forceinline__ void with_array(const Job& job, Action&& action) {
  const std::uint64_t first = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x,
                      step = std::uint64_t{gridDim.x} * blockDim.x;
  if (job.real_bytes == 4)
    action(reinterpret_cast<float*>(job.array), first, step);
  else
    action(reinterpret_cast<double*>(job.array), first, step);
}

}  // namespace

extern "C" __global__ void halo3d_clear(const __grid_constant__ Job job) {
  with_array(job,
             [&](auto* array, std::uint64_t first, std::uint64_t step) { clear_elements(job, array, first, step); });
}

extern "C" __global__ void halo3d_update(const __grid_constant__ Job job) {
  with_array(job,
             [&](auto* array, std::uint64_t first, std::uint64_t step) { update_elements(job, array, first, step); });
}

extern "C" __global__ void halo3d_check(const __grid_constant__ Job job) {
  Tally own{0, 0, 0, ~std::uint64_t{0}};
  with_array(
      job, [&](auto* array, std::uint64_t first, std::uint64_t step) { check_elements(job, array, first, step, own); });
  using Word = unsigned long long;
  Tally* all = reinterpret_cast<Tally*>(job.tally);
  if (own.halo_checked != 0) atomicAdd(reinterpret_cast<Word*>(&all->halo_checked), Word{own.halo_checked});
  if (own.other_checked != 0) atomicAdd(reinterpret_cast<Word*>(&all->other_checked), Word{own.other_checked});
  if (own.wrong == 0) return;
  atomicAdd(reinterpret_cast<Word*>(&all->wrong), Word{own.wrong});
  atomicMin(reinterpret_cast<Word*>(&all->first_wrong), Word{own.first_wrong});
}
