// SPDX-License-Identifier: Apache-2.0
// Every kernel against the reference packer: random layouts, every kernel forced, any alignment, any range, many in one
// launch. Bytes outside the layout keep their canary.
#include "kernels/cuda/launch/batch.hpp"

#include "kernels/cuda/device/device_layout.hpp"
#include "kernels/cuda/kernels/work.hpp"
#include "kernels/cuda/testing/test_application.hpp"
#include "kernels/test_trees.hpp"

namespace bestride::cuda {
namespace {

using namespace test;
using bestride::test::Trees;

constexpr GpuKernel all_kernels[] = {GpuKernel::automatic, GpuKernel::words, GpuKernel::transpose,
                                     GpuKernel::bulk,      GpuKernel::bytes, GpuKernel::ordered};

void synchronize(Device& device, StreamHandle stream) {
  const Current current(device);
  ASSERT_TRUE(static_cast<bool>(current));
  ASSERT_EQ(device.driver().cuStreamSynchronize(stream), code::success);
}

/// One buffer of a move, in device memory between canaries, at a chosen misalignment.
class Side {
 public:
  Side(std::size_t size, std::size_t slack, unsigned seed)
      : content_(noise(size + slack + margin, seed)),
        slack_(slack),
        size_(size),
        memory_(MemoryKind::device, content_.size()) {
    memory_.write(content_);
  }
  Address address() const { return memory_.address() + slack_; }
  Bytes part() const {
    return {content_.begin() + static_cast<std::ptrdiff_t>(slack_),
            content_.begin() + static_cast<std::ptrdiff_t>(slack_ + size_)};
  }
  /// True if the memory has `part` in its place and everything around it is unchanged.
  bool holds(const Bytes& part) const {
    Bytes expected = content_;
    std::copy(part.begin(), part.end(), expected.begin() + static_cast<std::ptrdiff_t>(slack_));
    return memory_.read() == expected;
  }

 private:
  static constexpr std::size_t margin = 64;
  Bytes content_;
  std::size_t slack_, size_;
  TestMemory memory_;
};

struct Case {
  LayoutPtr layout;
  DeviceLayoutPtr device_layout;
  Direction direction;
  std::int64_t first, last;
  std::unique_ptr<Side> user, packed;

  Case(Device& device, LayoutPtr of, Direction method, Trees& draw, bool ranged)
      : layout(std::move(of)), direction(method), first(0), last(layout->size()) {
    Result<DeviceLayoutPtr> made = device.device_layout(layout);
    EXPECT_TRUE(made) << made.error().text;
    device_layout = *made;
    if (ranged) {
      first = draw.between(0, layout->size() - 1);
      last = draw.between(first + 1, layout->size());
      if (draw.chance(0.5)) first &= ~std::int64_t{15};
    }
    const auto slack = [&] {
      return static_cast<std::size_t>(draw.chance(0.4)   ? 0
                                      : draw.chance(0.5) ? 4 * draw.between(0, 4)
                                                         : draw.between(0, 17));
    };
    user = std::make_unique<Side>(span_of(*layout), slack(), 1);
    packed = std::make_unique<Side>(static_cast<std::size_t>(last - first), slack(), 2);
  }
  BatchItem item() const {
    return {device_layout, base_for(*layout, user->address()), packed->address(), direction, first, last};
  }
  void check() const {
    SCOPED_TRACE(layout->text() + (direction == Direction::pack ? " packed " : " unpacked ") + std::to_string(first) +
                 ".." + std::to_string(last));
    if (direction == Direction::pack) {
      ASSERT_TRUE(packed->holds(packed_by_reference(layout, user->part(), first, last)));
      ASSERT_TRUE(user->holds(user->part())) << "pack wrote its source";
    } else {
      ASSERT_TRUE(user->holds(unpacked_by_reference(layout, user->part(), packed->part(), first, last)));
      ASSERT_TRUE(packed->holds(packed->part())) << "unpack wrote its source";
    }
  }
};

class Batches : public OnDevice {
 protected:
  void run(const std::vector<Case>& cases, const KernelOptions& options) {
    std::vector<BatchItem> items;
    items.reserve(cases.size());
    for (const Case& one : cases) items.push_back(one.item());
    Result<Batch> batch = Batch::make(device_, items, options);
    ASSERT_TRUE(batch) << batch.error().text;
    const StreamHandle stream = device_->stream();
    const Result<Done> launched = batch->launch(stream);
    ASSERT_TRUE(launched) << launched.error().text;
    synchronize(*device_, stream);
    SCOPED_TRACE(batch->text());
    for (const Case& one : cases) {
      one.check();
      if (HasFatalFailure()) return;
    }
  }
  void SetUp() override {
    OnDevice::SetUp();
    if (!IsSkipped()) device_ = device();
  }
  DevicePtr device_;
};

TEST_F(Batches, EveryKernelEqualsTheReference) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Trees draw(seed);
    for (int i = 0; i < 40; ++i) {
      const LayoutPtr layout = draw.draw(i % 8 == 0 ? 30000 : 2500);
      for (const GpuKernel kernel : all_kernels)
        for (const Direction direction : {Direction::pack, Direction::unpack}) {
          std::vector<Case> one;
          one.emplace_back(*device_, layout, direction, draw, draw.chance(0.4));
          run(one, {kernel, draw.chance(0.5) ? 1 : 0});
          if (HasFatalFailure()) return;
        }
    }
  }
}

TEST_F(Batches, ManyInOneLaunch) {
  Trees draw(17);
  for (const int count : {2, 5, 26, 90}) {
    std::vector<Case> cases;
    cases.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i)
      cases.emplace_back(*device_, draw.draw(1200), draw.chance(0.5) ? Direction::pack : Direction::unpack, draw,
                         draw.chance(0.3));
    run(cases, {});
    if (HasFatalFailure()) return;
  }
}

/// Each kernel is chosen for the shapes that it is meant for.
TEST_F(Batches, KernelsAreChosenByShape) {
  Trees draw(5);
  const auto text = [&](const Built& built, GpuKernel kernel) {
    const LayoutPtr layout = intern(*built);
    const DeviceLayoutPtr device_layout = *device_->device_layout(layout);
    const TestMemory user(MemoryKind::device, span_of(*layout)),
        packed(MemoryKind::device, static_cast<std::size_t>(layout->size()));
    const BatchItem item{device_layout, base_for(*layout, user.address()), packed.address(), Direction::pack, 0, -1};
    return Batch::make(device_, {&item, 1}, {kernel, 0})->text();
  };
  const Built rows = make_repeat(*make_block(0, 64), 100, 256);
  const Built column = make_repeat(*make_block(0, 8), 100, 800);
  const Built turned = make_repeat(*column, 100, 8);
  // The grid is as large as the work, and no larger than the device.
  const auto grid = [&](int tiles) {
    return std::to_string(std::min(tiles, static_cast<int>(blocks_per_multiprocessor) * device_->multiprocessors()));
  };
  EXPECT_EQ(text(rows, GpuKernel::automatic), "1 pieces, 6400 B: words 16, grid 2");
  EXPECT_EQ(text(turned, GpuKernel::automatic), "1 pieces, 80000 B: transpose 8, grid " + grid(16));
  EXPECT_EQ(text(turned, GpuKernel::words), "1 pieces, 80000 B: words 8, grid " + grid(40));
  EXPECT_EQ(text(rows, GpuKernel::bytes), "1 pieces, 6400 B: words 1, grid " + grid(25));
  EXPECT_EQ(text(make_repeat(*make_block(0, 16384), 4, 20000), GpuKernel::bulk), "1 pieces, 65536 B: bulk, grid 8");
  EXPECT_EQ(text(make_repeat(*make_block(0, 12), 10, 20), GpuKernel::automatic), "1 pieces, 120 B: words 4, grid 1");
  std::vector<std::int64_t> offsets, lengths;
  for (std::int64_t i = 0; i < 40; ++i) {
    offsets.push_back((i * 7 % 40) * 100 + i % 3 * 8);
    lengths.push_back(i % 2 == 0 ? 16 : 24);
  }
  EXPECT_EQ(text(make_blocks(offsets, lengths), GpuKernel::automatic), "1 pieces, 800 B: mixed list 4, grid 1");
}

TEST_F(Batches, ThresholdsCanBeMoved) {
  const auto text = [&](const Built& built, const KernelOptions& options, std::int64_t bulk_from = 0) {
    const LayoutPtr layout = intern(*built);
    const DeviceLayoutPtr device_layout = *device_->device_layout(layout);
    const TestMemory user(MemoryKind::device, span_of(*layout)),
        packed(MemoryKind::device, static_cast<std::size_t>(layout->size()));
    const BatchItem item{device_layout, base_for(*layout, user.address()), packed.address(), Direction::pack, 0, -1,
                         bulk_from};
    return Batch::make(device_, {&item, 1}, options)->text();
  };
  const Built turned = make_repeat(*make_repeat(*make_block(0, 8), 20, 800), 20, 8);
  KernelOptions transpose_later;
  transpose_later.transpose_turns = 21;
  EXPECT_NE(text(turned, {}).find("transpose 8"), std::string::npos);
  EXPECT_NE(text(turned, transpose_later).find("words 8"), std::string::npos);
  const Built rows = make_repeat(*make_block(0, 4096), 16 * device_->multiprocessors(), 8192);
  KernelOptions bulk;
  bulk.bulk_from = 4096;
  EXPECT_NE(text(rows, {}).find("words 16"), std::string::npos);
  EXPECT_NE(text(rows, bulk).find("bulk"), std::string::npos);
  bulk.bulk_from = 4097;
  EXPECT_NE(text(rows, bulk).find("words 16"), std::string::npos);
  EXPECT_NE(text(rows, {}, 4096).find("bulk"), std::string::npos) << "the item requests it";
  EXPECT_NE(text(rows, {GpuKernel::words}, 4096).find("words 16"), std::string::npos) << "unless a kernel is forced";
  // Fewer words per thread give more thread blocks, if the grid limit allows it.
  KernelOptions one_word{GpuKernel::automatic, 64};
  one_word.rounds = 1;
  EXPECT_NE(text(rows, one_word), text(rows, {GpuKernel::automatic, 64}));
}

TEST_F(Batches, TransposesOfEveryWidthAndEdge) {
  Trees draw(6);
  for (const std::int64_t width : {1, 2, 4, 8})
    for (const std::int64_t rows : {2, 31, 32, 33, 70})
      for (const std::int64_t columns : {3, 32, 65}) {
        const Built inner = make_repeat(*make_block(0, width), rows, width * (columns + 1));
        Built turned = make_repeat(*inner, columns, width);
        if (rows == 33) turned = make_repeat(*turned, 3, 200000);
        for (const Direction direction : {Direction::pack, Direction::unpack}) {
          std::vector<Case> one;
          one.emplace_back(*device_, intern(*turned), direction, draw, false);
          run(one, {GpuKernel::transpose, 1});
          if (HasFatalFailure()) return;
        }
      }
}

TEST_F(Batches, BulkOnHardwareWithoutTheEngine) {
  app().capability(80);
  Trees draw(7);
  std::vector<Case> cases;
  for (const Direction direction : {Direction::pack, Direction::unpack})
    cases.emplace_back(*device_, intern(*make_repeat(*make_block(0, 9216), 5, 10240)), direction, draw, false);
  run(cases, {GpuKernel::bulk, 0});
  app().capability(90);
}

/// Strides beyond 32 bits and a span of 9 GiB: offsets are 64-bit everywhere.
TEST_F(Batches, FarApart) {
  const std::int64_t gib = std::int64_t{1} << 30;
  const std::vector<Built> layouts{
      make_repeat(*make_block(0, 8), 3, 4 * gib + 8), make_repeat(*make_repeat(*make_block(0, 4), 5, 12), 3, -4 * gib),
      make_blocks(std::vector<std::int64_t>{0, 5 * gib, 17, 8 * gib, 3 * gib, 40, 7 * gib, 90, 6 * gib, 300, 1000},
                  std::vector<std::int64_t>{4, 9, 8, 1, 16, 2, 30, 7, 8, 8, 5})};
  const TestMemory user(MemoryKind::device, static_cast<std::size_t>(9 * gib));
  if (user.address() == 0) GTEST_SKIP() << "no 9 GiB of device memory";
  for (const Built& built : layouts) {
    const LayoutPtr layout = intern(*built);
    const DeviceLayoutPtr device_layout = *device_->device_layout(layout);
    const std::size_t size = static_cast<std::size_t>(layout->size());
    const TestMemory sent(MemoryKind::device, size), back(MemoryKind::device, size);
    sent.write(noise(size, 3));
    const Address base = base_for(*layout, user.address());
    for (const auto& [packed, direction] : {std::pair{&sent, Direction::unpack}, std::pair{&back, Direction::pack}}) {
      const BatchItem item{device_layout, base, packed->address(), direction, 0, -1};
      Result<Batch> batch = Batch::make(device_, {&item, 1});
      ASSERT_TRUE(batch);
      ASSERT_TRUE(batch->launch(device_->stream(0)));
    }
    synchronize(*device_, device_->stream(0));
    EXPECT_EQ(sent.read(), back.read()) << layout->text();
  }
}

TEST_F(Batches, LaunchedAgain) {
  Trees draw(8);
  const LayoutPtr layout = intern(*make_repeat(*make_block(0, 12), 50, 40));
  Case one(*device_, layout, Direction::pack, draw, false);
  const BatchItem item = one.item();
  Result<Batch> batch = Batch::make(device_, {&item, 1});
  ASSERT_TRUE(batch);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(batch->launch(device_->stream(1)));
    synchronize(*device_, device_->stream(1));
    one.check();
  }
}

TEST_F(Batches, NothingToMove) {
  const DeviceLayoutPtr device_layout = *device_->device_layout(intern(Placed{}));
  const BatchItem item{device_layout, 0, 0, Direction::pack, 0, -1};
  Result<Batch> batch = Batch::make(device_, {&item, 1});
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->grid(), 0u);
  EXPECT_TRUE(batch->launch(device_->stream()));
  EXPECT_TRUE(Batch::make(device_, {}));
}

TEST_F(Batches, RejectsOverlapsTooLongToOrder) {
  const LayoutPtr layout = intern(*make_repeat(*make_block(0, 2), ordered_block_limit + 1, 1));
  const DeviceLayoutPtr device_layout = *device_->device_layout(layout);
  BatchItem item{device_layout, 0, 0, Direction::unpack, 0, -1};
  EXPECT_FALSE(Batch::make(device_, {&item, 1}));
  item.direction = Direction::pack;
  EXPECT_TRUE(Batch::make(device_, {&item, 1}));
}

}  // namespace
}  // namespace bestride::cuda
