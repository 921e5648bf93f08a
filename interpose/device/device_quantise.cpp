// SPDX-License-Identifier: Apache-2.0
#include "interpose/device/device_quantise.hpp"

#include <optional>

#include "base/variables.hpp"
#include "kernels/cuda/kernels/quantise_tile.hpp"
#include "kernels/cuda/launch/quantise.hpp"
#include "kernels/quantise/quantise.hpp"

namespace bestride {
namespace {

using cuda::Address;
using cuda::Done;

/// One stream runs everything: the pack or the copy in, the launches, the copy out or the unpack.
class CodeLaunch {
 public:
  CodeLaunch(const Staging& numbers, Direction direction, NumberFormat format, CodeBits bits,
             std::span<const NumberRun> runs)
      : numbers_(numbers),
        device_(numbers.device()),
        current_(*device_),
        stream_(device_->stream()),
        packing_(direction == Direction::pack),
        format_(format),
        bits_(bits),
        runs_(runs) {}

  Result<Done> run(std::byte* host, std::int64_t bytes) {
    if (!current_) return device_->gone();
    Result<cuda::Buffer> codes = device_->scratch(bytes);
    if (!codes) return codes.error();
    codes_ = std::move(*codes);
    Result<Done> ok = find_numbers();
    if (ok) ok = device_->order(stream_);
    const auto size = static_cast<std::size_t>(bytes);
    if (ok && packing_ && packed_) ok = packed_->launch(stream_);
    if (ok && !packing_)
      ok = device_->check("cuMemcpyHtoDAsync",
                          device_->driver().cuMemcpyHtoDAsync(codes_.address(), host, size, stream_));
    for (const NumberRun& run : runs_)
      if (ok) ok = code(run);
    if (ok && packing_)
      ok = device_->check("cuMemcpyDtoHAsync",
                          device_->driver().cuMemcpyDtoHAsync(host, codes_.address(), size, stream_));
    if (ok && !packing_ && packed_) ok = packed_->launch(stream_);
    return ok ? wait() : ok;
  }

  /// After a failure: waits until nothing is in flight, unless the device is lost.
  void drain() noexcept {
    if (current_ && device_->alive()) device_->driver().cuStreamSynchronize(stream_);
  }

 private:
  /// Sets first_: the numbers where they are if they are contiguous and aligned, else packed in scratch memory.
  Result<Done> find_numbers() {
    const std::int64_t number = number_bytes(format_);
    const Layout& layout = numbers_.layout();
    first_ = numbers_.user_address() + static_cast<Address>(layout.offset());
    if (layout.contiguous() && first_ % static_cast<Address>(number) == 0) return Done{};
    const std::int64_t first = runs_.front().first * number, last = (runs_.back().first + runs_.back().count) * number;
    Result<cuda::Buffer> plain = device_->scratch(last - first);
    if (!plain) return plain.error();
    plain_ = std::move(*plain);
    first_ = plain_.address() - static_cast<Address>(first);
    static const cuda::KernelOptions options = cuda::KernelOptions::from_settings();
    const cuda::BatchItem item{numbers_.device_layout(),
                               numbers_.user_address(),
                               plain_.address(),
                               packing_ ? Direction::pack : Direction::unpack,
                               first,
                               last};
    Result<cuda::Batch> batch = cuda::Batch::make(device_, {&item, 1}, options);
    if (!batch) return batch.error();
    packed_.emplace(std::move(*batch));
    return Done{};
  }

  Result<Done> code(const NumberRun& run) {
    const Address numbers = first_ + static_cast<Address>(run.first * number_bytes(format_)),
                  codes = codes_.address() + static_cast<Address>(run.codes);
    return packing_ ? cuda::quantise(*device_, numbers, format_, run.count, bits_, codes, stream_)
                    : cuda::dequantise(*device_, codes, bits_, run.count, format_, numbers, stream_);
  }

  /// Waits for an event instead of the stream, so that it does not wait for later work of other threads.
  Result<Done> wait() {
    Result<cuda::Event> event = device_->record(stream_);
    if (!event) return event.error();
    return device_->check("cuEventSynchronize", device_->driver().cuEventSynchronize(event->handle()));
  }

  const Staging& numbers_;
  const cuda::DevicePtr device_;
  const cuda::Current current_;
  const cuda::StreamHandle stream_;
  const bool packing_;
  const NumberFormat format_;
  const CodeBits bits_;
  const std::span<const NumberRun> runs_;
  cuda::Buffer codes_, plain_;
  std::optional<cuda::Batch> packed_;
  Address first_ = 0;  ///< address of the first packed number
};

}  // namespace

Result<Done> move_codes(const Staging& numbers, Direction direction, NumberFormat format, CodeBits bits,
                        std::span<const NumberRun> runs, std::byte* codes, std::int64_t bytes) noexcept try {
  CodeLaunch launch(numbers, direction, format, bits, runs);
  Result<Done> ok = Done{};
  try {
    ok = launch.run(codes, bytes);
  } catch (...) {
    ok = Error{"out of memory"};
  }
  if (!ok) launch.drain();
  return ok;
} catch (...) {
  return Error{"out of memory"};
}

bool codes_pay(const Staging& numbers, Direction direction, std::int64_t code_bytes, int runs) noexcept try {
  static const std::string& setting = Settings::get().text("BESTRIDE_GPU_QUANTIZE");
  if (setting == "never" || !numbers.device_layout() || !numbers.device()->kernel(cuda::quantise_kernel)) return false;
  if (setting == "always") return true;
  const DeviceCosts& costs = device_costs(*numbers.device());
  const Shape shape = Shape::of(numbers.layout());
  const auto way = static_cast<std::size_t>(numbers.way().way);
  return costs.coded_seconds(shape, direction, code_bytes, runs) < costs.predict(shape, direction, 0, 0).seconds[way];
} catch (...) {
  return false;
}

}  // namespace bestride
