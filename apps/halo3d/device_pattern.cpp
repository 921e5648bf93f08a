// SPDX-License-Identifier: Apache-2.0
#include "device_kernels.hpp"
#include "gpu.hpp"
#include "pattern.hpp"

namespace halo3d {
namespace {

class DevicePattern : public Pattern {
 public:
  DevicePattern(const Grid& grid, Field& field, const Options& options)
      : rank_(grid.rank()),
        field_(field),
        domain_(domain_of(grid, field, options)),
        tally_(Gpu::get().allocate(sizeof(Tally))) {}
  ~DevicePattern() override { Gpu::get().free(tally_); }
  DevicePattern(const DevicePattern&) = delete;
  DevicePattern& operator=(const DevicePattern&) = delete;

  void clear() override { launch_on_all("halo3d_clear", 0); }
  void update(int exchange) override { launch_on_all("halo3d_update", exchange); }
  void damage(int count) override;
  void check(int exchange, Count& count) override;

 private:
  Job job_for(int array, int exchange) const;
  void launch_on_all(const char* kernel, int exchange);
  double element(int array, std::uint64_t index) const;
  std::byte* address(int array, std::uint64_t index) const {
    return field_.array(array) + index * field_.element_bytes();
  }

  int rank_;
  Field& field_;
  Domain domain_;
  std::byte* tally_;
};

Job DevicePattern::job_for(int array, int exchange) const {
  Job job{};
  job.domain = domain_;
  job.array = reinterpret_cast<std::uint64_t>(field_.array(array));
  job.elements = field_.array_elements();
  job.tally = reinterpret_cast<std::uint64_t>(tally_);
  job.guard = std::int32_t(Field::guard);
  job.quantity = array;  // 0 for the one array of structs
  job.stride = field_.cell_stride();
  job.exchange = exchange;
  job.real_bytes = std::int32_t(field_.element_bytes());
  return job;
}

/// Waits for the kernels: MPI gets the field next, and its content must then be complete.
void DevicePattern::launch_on_all(const char* kernel, int exchange) {
  for (int array = 0; array < field_.arrays(); ++array) {
    Job job = job_for(array, exchange);
    Gpu::get().launch(kernel, job.elements, &job);
  }
  Gpu::get().synchronize();
}

double DevicePattern::element(int array, std::uint64_t index) const {
  float single = 0;
  double value = 0;
  if (field_.element() == Element::float32)
    Gpu::get().read(&single, address(array, index), sizeof single), value = single;
  else
    Gpu::get().read(&value, address(array, index), sizeof value);
  return value;
}

void DevicePattern::damage(int count) {
  const Job job = job_for(0, 0);
  for (std::uint64_t index = 0; index < job.elements && count > 0; ++index) {
    const Spot at = spot_at(job, index);
    if (at.direction < 0 || at.direction == interior_index || at.quantity != 0 || !filled(domain_, at.direction, 0))
      continue;
    const double spoilt = element(0, index) + 1;
    const float single = float(spoilt);
    const void* source = field_.element() == Element::float32 ? static_cast<const void*>(&single) : &spoilt;
    Gpu::get().write(address(0, index), source, field_.element_bytes());
    --count;
  }
  Gpu::get().synchronize();
}

void DevicePattern::check(int exchange, Count& count) {
  for (int array = 0; array < field_.arrays(); ++array) {
    Job job = job_for(array, exchange);
    Tally tally{0, 0, 0, ~std::uint64_t{0}};
    Gpu::get().write(tally_, &tally, sizeof tally);
    Gpu::get().launch("halo3d_check", job.elements, &job);
    Gpu::get().synchronize();
    Gpu::get().read(&tally, tally_, sizeof tally);
    count.halo_checked += std::int64_t(tally.halo_checked);
    count.other_checked += std::int64_t(tally.other_checked);
    count.wrong += std::int64_t(tally.wrong);
    if (tally.wrong == 0 || !count.first_wrong.empty()) continue;
    const Spot at = spot_at(job, tally.first_wrong);
    count.first_wrong = at.direction < 0 ? wrong_guard(rank_, array)
                                         : wrong_cell(rank_, exchange, at.quantity, {at.z, at.y, at.x},
                                                      element(array, tally.first_wrong), value_at(job, at));
  }
}

}  // namespace

std::unique_ptr<Pattern> make_device_pattern(const Grid& grid, Field& field, const Options& options) {
  return std::make_unique<DevicePattern>(grid, field, options);
}

}  // namespace halo3d
