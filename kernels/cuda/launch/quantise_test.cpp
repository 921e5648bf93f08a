// SPDX-License-Identifier: Apache-2.0
// Quantisation on the device gives the bytes of the scalar kernels: all formats, widths and kinds of blocks, several
// tiles, any count. Bytes next to the result keep their canary.
#include "kernels/cuda/launch/quantise.hpp"

#include "kernels/cuda/testing/test_application.hpp"
#include "kernels/quantise/test_numbers.hpp"

namespace bestride::cuda {
namespace {

using namespace test;
using namespace bestride::test;
using Content = std::vector<unsigned char>;

constexpr std::size_t margin = 64;
constexpr std::int64_t counts[] = {1, 2, 3, 63, 64, 65, 255, 256, 257, 511, 512, 513, 1025, 3001};

/// Content in device memory, between canaries.
class There {
 public:
  explicit There(const Content& content)
      : content_(margin, 0xa5), memory_(MemoryKind::device, content.size() + 2 * margin) {
    content_.insert(content_.end(), content.begin(), content.end());
    content_.insert(content_.end(), margin, 0xa5);
    memory_.write(content_);
  }
  Address address() const { return memory_.address() + margin; }
  /// The current content; checks that the canaries are intact.
  Content read() const {
    const Content all = memory_.read();
    EXPECT_TRUE(std::equal(all.begin(), all.begin() + margin, content_.begin()));
    EXPECT_TRUE(std::equal(all.end() - margin, all.end(), content_.end() - margin));
    return {all.begin() + margin, all.end() - margin};
  }

 private:
  Content content_;
  TestMemory memory_;
};

class DeviceQuantise : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) return;
    device_ = device();
    ASSERT_NE(device_, nullptr);
  }
  void finish(const Result<Done>& launched) {
    ASSERT_TRUE(launched) << launched.error().text;
    const Current current(*device_);
    ASSERT_EQ(device_->driver().cuStreamSynchronize(device_->stream(0)), code::success);
  }
  void check(NumberFormat format, CodeBits bits, Kind kind, std::int64_t count, Random& random);

  DevicePtr device_;
};

/// Sums may contain another NaN.
bool same_numbers(const Content& a, const Content& b, NumberFormat format) {
  const Shape shape = shape_of(format);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(a.size()) / shape.size; ++i) {
    const std::uint64_t x = get(a.data(), shape, i), y = get(b.data(), shape, i);
    if (x != y && !(std::isnan(value_of(shape, x)) && std::isnan(value_of(shape, y)))) return false;
  }
  return a.size() == b.size();
}

void DeviceQuantise::check(NumberFormat format, CodeBits bits, Kind kind, std::int64_t count, Random& random) {
  SCOPED_TRACE(std::string(name_of(format)) + (bits == CodeBits::int8 ? " int8" : " int4") + ", kind " +
               std::to_string(static_cast<int>(kind)) + ", " + std::to_string(count));
  const StreamHandle stream = device_->stream(0);
  Content numbers(static_cast<std::size_t>(count * number_bytes(format)));
  fill(numbers.data(), format, count, kind, random);
  Content codes(static_cast<std::size_t>(quantised_bytes(count, format, bits))), back(numbers.size());
  bestride::quantise(numbers.data(), format, count, bits, codes.data(), Isa::scalar);
  bestride::dequantise(codes.data(), bits, count, format, back.data(), Isa::scalar);

  const There numbers_there(numbers), codes_there(Content(codes.size(), 0xee)), back_there(Content(back.size(), 0xee));
  finish(quantise(*device_, numbers_there.address(), format, count, bits, codes_there.address(), stream));
  ASSERT_EQ(codes_there.read(), codes);
  finish(dequantise(*device_, codes_there.address(), bits, count, format, back_there.address(), stream));
  ASSERT_EQ(back_there.read(), back);
  ASSERT_EQ(numbers_there.read(), numbers);

  if (format == NumberFormat::float32)
    bestride::dequantise_add(codes.data(), bits, count, reinterpret_cast<float*>(numbers.data()), Isa::scalar);
  else if (format == NumberFormat::float64)
    bestride::dequantise_add(codes.data(), bits, count, reinterpret_cast<double*>(numbers.data()), Isa::scalar);
  const Result<Done> added =
      dequantise_add(*device_, codes_there.address(), bits, count, format, numbers_there.address(), stream);
  if (number_bytes(format) == 2) {
    ASSERT_FALSE(added);
    return;
  }
  finish(added);
  ASSERT_TRUE(same_numbers(numbers_there.read(), numbers, format)) << "add";
}

TEST_F(DeviceQuantise, GivesTheBytesOfTheScalarKernels) {
  Random random(1);
  for (const NumberFormat format : all_formats)
    for (const CodeBits bits : all_bits)
      for (const Kind kind : all_kinds)
        for (const std::int64_t count : counts) {
          if (!random.chance(30)) continue;
          check(format, bits, kind, count, random);
          if (HasFatalFailure()) return;
        }
}

/// More tiles than a launch has thread blocks.
TEST_F(DeviceQuantise, WalksMoreTilesThanThreadBlocks) {
  Random random(2);
  const std::int64_t tiles = 3 * device_->multiprocessors() + 2;
  check(NumberFormat::bfloat16, CodeBits::int4, Kind::not_finite, tiles * 512 + 7, random);
  check(NumberFormat::float32, CodeBits::int8, Kind::usual, tiles * 512 + 7, random);
}

TEST_F(DeviceQuantise, RefusesWhatItCannotReach) {
  const There memory(Content(4096));
  const Address at = memory.address();
  const StreamHandle stream = device_->stream(0);
  EXPECT_FALSE(quantise(*device_, at + 2, NumberFormat::float32, 8, CodeBits::int8, at + 1024, stream));
  EXPECT_FALSE(quantise(*device_, at, NumberFormat::float32, 8, CodeBits::int8, at + 1028, stream));
  EXPECT_FALSE(
      dequantise(*device_, at + 1024, CodeBits::int8, (std::int64_t{1} << 40) + 1, NumberFormat::float32, at, stream));
  EXPECT_TRUE(quantise(*device_, at, NumberFormat::float32, 0, CodeBits::int8, at + 1024, stream));
  finish(quantise(*device_, at, NumberFormat::float32, 8, CodeBits::int8, at + 1024, stream));
}

TEST_F(DeviceQuantise, SaysWhenTheLaunchFails) {
  if (!stand_in()) GTEST_SKIP() << "needs the stand-in";
  const There memory(Content(4096));
  app().fail("cuLaunchKernel:1:2");
  const Result<Done> launched = quantise(*device_, memory.address(), NumberFormat::float32, 8, CodeBits::int8,
                                         memory.address() + 1024, device_->stream(0));
  ASSERT_FALSE(launched);
  EXPECT_NE(launched.error().text.find("cuLaunchKernel"), std::string::npos);
}

}  // namespace
}  // namespace bestride::cuda
