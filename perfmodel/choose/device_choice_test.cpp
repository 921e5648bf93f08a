// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "perfmodel/choose/chooser.hpp"
#include "perfmodel/choose/test_allocations.hpp"

namespace bestride::inline perfmodel {
namespace {

using cuda::TransferMethod;
using enum cuda::TransferMethod;
constexpr std::int64_t KiB = 1024, MiB = 1024 * 1024;
constexpr double never = std::numeric_limits<double>::infinity();
const Chooser built_in(MachineProfile::built_in());

Shape make_shape(std::int64_t bytes, std::int64_t block, Shape::Class kind = Shape::Class::vector,
                 std::int64_t jump = 0) {
  Shape shape;
  shape.kind = bytes == block ? Shape::Class::contiguous : kind;
  shape.bytes = shape.unit_bytes = bytes;
  shape.block_bytes = block;
  shape.blocks = bytes / block;
  shape.loops = 1;
  shape.jump = jump ? jump : 2 * block;
  return shape;
}

double at(const DeviceChoice& choice, TransferMethod method) {
  return choice.seconds[static_cast<std::size_t>(method)];
}
TransferMethod method_of(const Shape& shape, const DeviceAllowed& allowed, Distance distance = Distance::node) {
  return built_in.choose_device(shape, CallKind::send, distance, allowed).method;
}

TEST(DeviceChooser, ChoosesTheSuitableAllowedMethod) {
  const DeviceAllowed host{.copy_engine = false}, boxes{.copy_engine = true}, aware{.aware = true, .copy_engine = true};
  EXPECT_EQ(method_of(make_shape(1 * KiB, 8), host), oneshot);
  EXPECT_EQ(method_of(make_shape(64 * KiB, 64), boxes), oneshot);
  EXPECT_EQ(method_of(make_shape(4 * MiB, 64 * KiB), boxes), copy_engine);
  EXPECT_EQ(method_of(make_shape(64 * MiB, 8), host), pipelined);
  EXPECT_EQ(method_of(make_shape(64 * MiB, 8), boxes), pipelined) << "8 bytes are no row for a copy engine";
  EXPECT_EQ(method_of(make_shape(64 * MiB, 8), aware), device);
  EXPECT_EQ(method_of(make_shape(4 * MiB, 4 * MiB), boxes), staged) << "one copy";
  const DeviceChoice none =
      built_in.choose_device(make_shape(4 * MiB, 8), CallKind::send, Distance::node, {.kernels = false});
  EXPECT_FALSE(none.possible());
  const DeviceChoice contiguous =
      built_in.choose_device(make_shape(4 * MiB, 4 * MiB), CallKind::send, Distance::node, {.kernels = false});
  EXPECT_TRUE(contiguous.possible()) << "contiguous bytes need no kernel";
  const DeviceChoice boxed = built_in.choose_device(make_shape(4 * MiB, 8), CallKind::send, Distance::node,
                                                    {.copy_engine = true, .kernels = false});
  EXPECT_EQ(boxed.method, copy_engine);
  EXPECT_TRUE(boxed.possible());
}

TEST(DeviceChooser, ChoosesTheLeastAndMarksImpossibleMethods) {
  for (std::int64_t bytes = 64; bytes <= 256 * MiB; bytes *= 4)
    for (std::int64_t block : {1, 3, 8, 24, 256, 5000, 1 << 20})
      for (bool is_aware : {false, true})
        for (bool box : {false, true})
          for (CallKind kind : {CallKind::pack, CallKind::unpack, CallKind::send, CallKind::receive, CallKind::isend,
                                CallKind::irecv}) {
            if (block > bytes) continue;
            const Shape shape = make_shape(bytes, block);
            const DeviceChoice choice =
                built_in.choose_device(shape, kind, Distance::network, {.aware = is_aware, .copy_engine = box});
            ASSERT_TRUE(choice.possible());
            EXPECT_EQ(std::isinf(at(choice, device)), !is_aware);
            EXPECT_EQ(std::isinf(at(choice, copy_engine)), !box);
            EXPECT_LE(at(choice, pipelined), at(choice, staged));
            EXPECT_GE(choice.chunk, 256 * KiB);
            for (double seconds : choice.seconds) {
              EXPECT_GT(seconds, 0);
              EXPECT_GE(seconds, at(choice, choice.method));
            }
          }
}

TEST(DeviceChooser, MoreBytesNeverCostLess) {
  for (Shape::Class kind : {Shape::Class::vector, Shape::Class::list})
    for (std::int64_t block : {1, 8, 64, 4096, 65536})
      for (CallKind call : {CallKind::pack, CallKind::send, CallKind::irecv}) {
        std::array<double, cuda::transfer_method_count> before{};
        for (std::int64_t bytes = 2 * block; bytes < 128 * MiB; bytes += std::max(block, bytes / 7 / block * block)) {
          const DeviceChoice choice = built_in.choose_device(make_shape(bytes, block, kind), call, Distance::node,
                                                             {.aware = true, .copy_engine = true});
          for (std::size_t method = 0; method < before.size(); ++method) {
            EXPECT_GE(choice.seconds[method], before[method] * 0.9999)
                << cuda::name(static_cast<TransferMethod>(method)) << " " << bytes << " of " << block;
            before[method] = choice.seconds[method];
          }
        }
      }
}

TEST(DeviceChooser, ShorterBlocksFartherApartAndListsCostMore) {
  const auto staged_seconds = [](const Shape& shape) {
    return at(built_in.choose_device(shape, CallKind::send, Distance::node, {}), staged);
  };
  const double plain = staged_seconds(make_shape(16 * MiB, 64));
  EXPECT_GT(staged_seconds(make_shape(16 * MiB, 4)), plain);
  EXPECT_GT(staged_seconds(make_shape(16 * MiB, 4, Shape::Class::vector, 4096)),
            staged_seconds(make_shape(16 * MiB, 4)));
  EXPECT_GT(staged_seconds(make_shape(16 * MiB, 64, Shape::Class::list)), plain);
}

TEST(DeviceChooser, UsesAForcedMethodIfPossible) {
  const Shape shape = make_shape(1 * KiB, 8);
  EXPECT_EQ(method_of(shape, {.forced = pipelined}), pipelined);
  EXPECT_EQ(method_of(shape, {.forced = copy_engine}), oneshot) << "no box";
  EXPECT_EQ(method_of(shape, {.forced = device}), oneshot) << "MPI takes no device memory";
  EXPECT_EQ(method_of(shape, {.aware = true, .forced = device}), device);
}

TEST(DeviceChooser, PackIntoDeviceMemoryIsOneKernel) {
  const DeviceChoice choice =
      built_in.choose_device(make_shape(64 * KiB, 8), CallKind::pack, Distance::self, {.aware = true});
  EXPECT_EQ(choice.method, device);
  EXPECT_LT(at(choice, device), at(choice, oneshot));
}

TEST(DeviceChooser, AllocatesNothing) {
  const Shape shape = make_shape(64 * MiB, 24, Shape::Class::nest, 4000);
  (void)built_in.choose_device(shape, CallKind::send, Distance::node, {});
  const long before = allocations;
  double sum = 0;
  for (int i = 0; i < 1000; ++i)
    sum += at(built_in.choose_device(shape, CallKind::send, Distance::node, {.aware = true}), staged);
  EXPECT_EQ(allocations, before);
  EXPECT_GT(sum, 0);
}

TEST(DeviceChooser, NamesAreReadBack) {
  for (int i = 0; i < cuda::transfer_method_count; ++i) {
    TransferMethod method = staged;
    ASSERT_TRUE(cuda::parse(cuda::name(static_cast<TransferMethod>(i)), &method));
    EXPECT_EQ(static_cast<int>(method), i);
  }
  TransferMethod method = staged;
  EXPECT_FALSE(cuda::parse("teleport", &method));
}

/// A GPU on which every kernel takes `kernel` seconds and every copy takes `copies` seconds.
DeviceMeasurements uniform(double kernel, double copies) {
  DeviceMeasurements measured;
  for (int index = 0; index < device_grid_count; ++index)
    for (int i = 0; i < bytes_points; ++i)
      for (int k = 0; k < block_points; k += 3)
        measured.grids[static_cast<std::size_t>(index)].set(
            i, k, device_grid_key(index).work == DeviceWork::kernel ? kernel : copies);
  for (CostCurve& curve : measured.dma)
    for (int i = 0; i < curve_points; i += 2) curve.set(i, copies);
  return measured;
}

TEST(DeviceCosts, EveryGridHasOneIndex) {
  for (int index = 0; index < device_grid_count; ++index) EXPECT_EQ(device_grid_index(device_grid_key(index)), index);
}

TEST(DeviceCosts, HaveNoHoles) {
  const DeviceCosts completed = DeviceCosts::from(uniform(1e-5, 2e-5));
  EXPECT_TRUE(completed.calibrated());
  for (const DeviceCosts* costs : {&DeviceCosts::built_in(), &completed}) {
    for (const CostGrid& grid : costs->filled().grids) EXPECT_EQ(grid.measured(), bytes_points * block_points);
    for (const CostCurve& curve : costs->filled().dma)
      for (float value : curve.log_seconds) EXPECT_FALSE(std::isnan(value));
    for (const CostCurve& curve : costs->filled().contiguous)
      for (float value : curve.log_seconds) EXPECT_FALSE(std::isnan(value));
    for (float value : costs->filled().log_floors) EXPECT_FALSE(std::isnan(value));
  }
  EXPECT_NEAR(
      completed.predict(make_shape(64 * KiB, 8), Direction::pack, 0, never).seconds[static_cast<std::size_t>(oneshot)],
      2e-5, 1e-8);
}

TEST(DeviceCosts, WithTooFewPointsTheBuiltInProfileIsUsed) {
  DeviceMeasurements measured;
  measured[{DeviceWork::kernel, Direction::pack, DeviceWalk::dense}].set(3, 3, 1.0);
  measured.dma[0].set(0, 1.0);
  const DeviceCosts costs = DeviceCosts::from(measured);
  const Shape shape = make_shape(64 * KiB, 32);
  const auto mine = costs.predict(shape, Direction::pack, 0, 0),
             theirs = DeviceCosts::built_in().predict(shape, Direction::pack, 0, 0);
  EXPECT_EQ(mine.seconds, theirs.seconds);
}

TEST(DeviceCosts, OfAStandInDriverAreStoredButNotUsed) {
  DeviceMeasurements measured = uniform(1.0, 1.0);
  measured.stand_in = true;
  const DeviceCosts costs = DeviceCosts::from(measured);
  EXPECT_FALSE(costs.calibrated());
  EXPECT_TRUE(costs.measured().stand_in);
  const Shape shape = make_shape(64 * KiB, 32);
  EXPECT_LT(costs.predict(shape, Direction::pack, 0, 0).seconds[0], 1e-3);
}

TEST(DeviceChooser, UsesTheProfilesCurvesUnlessTheyAreOfAnotherGpu) {
  DeviceMeasurements measured = uniform(1.0, 1e-6);
  for (int i = 0; i < curve_points; ++i) measured.contiguous[static_cast<std::size_t>(Distance::node)].set(i, 0.5);
  const MachineProfile profile = MachineProfile::from(Measurements(), {}, measured);
  const Shape shape = make_shape(64 * KiB, 32);
  const DeviceChoice mine = Chooser(profile).choose_device(shape, CallKind::send, Distance::node, {.aware = true});
  EXPECT_NEAR(at(mine, device), 1.5, 1e-3) << "kernel and message";
  EXPECT_NEAR(at(mine, staged), 1.0, 1e-3) << "kernel, copy and the host's message";
  const DeviceChoice theirs =
      Chooser(profile).choose_device(shape, CallKind::send, Distance::node, {.aware = true, .other_gpu = true});
  EXPECT_EQ(theirs.seconds, built_in.choose_device(shape, CallKind::send, Distance::node, {.aware = true}).seconds);
}

/// Every second message size of the kernels' grid takes `kernel` seconds; with the bulk copy engine it takes
/// `bulk(block)`.
template <class Bulk>
DeviceCosts with_bulk(double kernel, const Bulk& bulk) {
  DeviceMeasurements measured;
  for (int i = 1; i < bytes_points; i += 2)
    for (int k = 0; k < block_points; ++k) {
      measured[{DeviceWork::kernel, Direction::pack}].set(i, k, kernel);
      if (block_lengths[static_cast<std::size_t>(k)] >= 64 && i >= 5)
        measured[{DeviceWork::bulk, Direction::pack}].set(i, k, bulk(i, block_lengths[static_cast<std::size_t>(k)]));
    }
  return DeviceCosts::from(measured);
}

TEST(DeviceCosts, BulkCopiesStartWhereAllLongerBlocksAreFaster) {
  const auto from = [](const DeviceCosts& costs) { return costs.bulk_from(Direction::pack); };
  EXPECT_EQ(from(DeviceCosts::built_in()), 0);
  EXPECT_EQ(from(with_bulk(1e-5, [](int, std::int64_t) { return 0.97e-5; })), 0) << "by too little";
  EXPECT_EQ(from(with_bulk(1e-5, [](int, std::int64_t) { return 0.9e-5; })), 64) << "shorter ones were not measured";
  EXPECT_EQ(from(with_bulk(1e-5, [](int, std::int64_t block) { return block >= 1024 ? 0.9e-5 : 2e-5; })), 1024);
  EXPECT_EQ(from(with_bulk(1e-5, [](int i, std::int64_t block) { return block >= 4096 || i > 5 ? 0.9e-5 : 2e-5; })),
            4096)
      << "not for every message";
  EXPECT_EQ(from(with_bulk(1e-5, [](int, std::int64_t block) { return block < 4096 ? 0.9e-5 : 2e-5; })), 0)
      << "longer ones are slower";
  EXPECT_EQ(with_bulk(1e-5, [](int, std::int64_t) { return 0.9e-5; }).bulk_from(Direction::unpack), 0)
      << "not measured";
}

TEST(DeviceCosts, GraphsIfMeasuredFaster) {
  const auto costs = [](double graph, double graph_many, bool whole = true) {
    DeviceMeasurements measured;
    measured.set(DeviceFloor::again, 10e-6);
    measured.set(DeviceFloor::again_many, 62e-6);
    measured.set(DeviceFloor::graph, graph);
    if (whole) measured.set(DeviceFloor::graph_many, graph_many);
    return DeviceCosts::from(measured);
  };
  EXPECT_FALSE(DeviceCosts::built_in().graph_is_faster(1));
  EXPECT_FALSE(DeviceCosts::built_in().graph_is_faster(27));
  const DeviceCosts many = costs(12e-6, 30e-6);
  EXPECT_FALSE(many.graph_is_faster(1));
  EXPECT_FALSE(many.graph_is_faster(2)) << "14 us and 12.7";
  EXPECT_TRUE(many.graph_is_faster(4));
  EXPECT_TRUE(many.graph_is_faster(100));
  EXPECT_TRUE(costs(8e-6, 100e-6).graph_is_faster(1));
  EXPECT_FALSE(costs(8e-6, 100e-6).graph_is_faster(27));
  EXPECT_FALSE(costs(9.9e-6, 61e-6).graph_is_faster(27)) << "by too little";
  EXPECT_FALSE(costs(1e-6, 0, false).graph_is_faster(27)) << "half of it was not measured";
}

TEST(DeviceCosts, PipelineHidesTheShorterStage) {
  DeviceMeasurements measured;
  for (int i = 0; i < bytes_points; ++i)
    for (int k = 0; k < block_points; k += 7)
      measured[{DeviceWork::kernel, Direction::pack, DeviceWalk::dense}].set(
          i, k, 1e-6 + static_cast<double>(bytes_at(i)) * 1e-10);
  for (int i = 0; i < curve_points; ++i) measured.dma[0].set(i, 1e-6 + static_cast<double>(curve_bytes_at(i)) * 1e-10);
  measured.set(DeviceFloor::launch, 1e-6);
  measured.set(DeviceFloor::sync, 0.5e-6);
  measured.set(DeviceFloor::chunk, 1e-6);
  const auto all = DeviceCosts::from(measured).predict(make_shape(64 * MiB, 8), Direction::pack, 0, never).seconds;
  EXPECT_LT(all[static_cast<std::size_t>(pipelined)], 0.53 * all[static_cast<std::size_t>(staged)]);
  EXPECT_GT(all[static_cast<std::size_t>(pipelined)], 0.5 * all[static_cast<std::size_t>(staged)]);
}

}  // namespace
}  // namespace bestride::inline perfmodel
