// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/launch/quantise.hpp"

#include <algorithm>

#include "kernels/cuda/kernels/quantise_tile.hpp"
#include "kernels/quantise/quantise.hpp"

namespace bestride::cuda {
namespace {

constexpr std::int64_t most_numbers = std::int64_t{1} << 40;

Result<Done> launch(Device& device, const QuantiseWork& work, StreamHandle stream) noexcept try {
  if (work.count <= 0) return Done{};
  if (work.count > most_numbers) return Error{"too many numbers for one GPU launch"};
  if (work.numbers % static_cast<Address>(number_bytes(work.format)) != 0)
    return Error{"numbers in device memory lie at no multiple of their size"};
  if (work.codes % 8 != 0) return Error{"codes in device memory lie at no multiple of 8"};
  const Result<FunctionHandle> kernel = device.kernel(quantise_kernel);
  if (!kernel) return kernel.error();
  const Current current(device);
  if (!current) return device.gone();
  const std::int64_t tiles = (work.count + quantise_tile_numbers - 1) / quantise_tile_numbers;
  const std::int64_t resident = std::int64_t{blocks_per_multiprocessor} * device.multiprocessors();
  // The driver copies the parameter before the launch call returns.
  QuantiseWork parameter = work;
  void* parameters[] = {&parameter};
  return device.check("cuLaunchKernel",
                      device.driver().cuLaunchKernel(*kernel, static_cast<unsigned>(std::min(tiles, resident)), 1, 1,
                                                     threads_per_block, 1, 1, 0, stream, parameters, nullptr));
} catch (...) {
  return Error{"out of memory"};
}

}  // namespace

Result<Done> quantise(Device& device, Address numbers, NumberFormat format, std::int64_t count, CodeBits bits,
                      Address codes, StreamHandle stream) noexcept {
  return launch(device, {numbers, codes, count, format, bits, QuantiseMethod::quantise}, stream);
}

Result<Done> dequantise(Device& device, Address codes, CodeBits bits, std::int64_t count, NumberFormat format,
                        Address numbers, StreamHandle stream) noexcept {
  return launch(device, {numbers, codes, count, format, bits, QuantiseMethod::dequantise}, stream);
}

Result<Done> dequantise_add(Device& device, Address codes, CodeBits bits, std::int64_t count, NumberFormat format,
                            Address accumulator, StreamHandle stream) noexcept try {
  if (format != NumberFormat::float32 && format != NumberFormat::float64)
    return Error{"an accumulator is of float32 or float64"};
  return launch(device, {accumulator, codes, count, format, bits, QuantiseMethod::add}, stream);
} catch (...) {
  return Error{"out of memory"};
}

}  // namespace bestride::cuda
