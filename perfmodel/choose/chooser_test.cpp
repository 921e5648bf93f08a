// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/choose/chooser.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "datatype/build.hpp"
#include "datatype/expression.hpp"
#include "perfmodel/choose/test_allocations.hpp"

namespace bestride::inline perfmodel {
namespace {

Shape make_shape(Shape::Class kind, std::int64_t bytes, std::int64_t block, std::int64_t jump = 0) {
  Shape shape;
  shape.kind = kind;
  shape.bytes = shape.unit_bytes = bytes;
  shape.block_bytes = block;
  shape.blocks = bytes / block;
  shape.inner_count = shape.outer_count = shape.blocks;
  shape.loops = kind == Shape::Class::nest ? 2 : 1;
  if (kind == Shape::Class::nest)
    shape.inner_count = shape.outer_count = static_cast<std::int64_t>(std::sqrt(shape.blocks));
  shape.jump = jump ? jump : 2 * block;
  shape.footprint = shape.blocks * shape.jump;
  return shape;
}

constexpr Allowed everything{.respell = true, .pack = true};
constexpr Shape::Class classes[] = {Shape::Class::vector, Shape::Class::nest, Shape::Class::record, Shape::Class::list};

TEST(Chooser, TakesTheLeastBeyondTheMargin) {
  std::mt19937 random(7);
  const Chooser chooser(MachineProfile::built_in(), 0.05);
  int others = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::int64_t block = 1 << random() % 13, bytes = block * (2 + static_cast<std::int64_t>(random() % 100000));
    const Shape shape =
        make_shape(classes[random() % 4], bytes, block, block * (2 + static_cast<std::int64_t>(random() % 50)));
    const auto kind = static_cast<CallKind>(random() % call_kind_count);
    const auto distance = static_cast<Distance>(random() % distance_count);
    const Choice choice = chooser.choose(shape, kind, distance, everything);
    const double margin = chooser.margin(shape, kind, distance);
    const double taken = choice.seconds[static_cast<std::size_t>(choice.strategy)];
    const double forward = choice.seconds[0];
    for (double seconds : choice.seconds) EXPECT_GT(seconds, 0);
    if (choice.strategy == Strategy::forward) {
      for (double seconds : choice.seconds) EXPECT_GE(seconds, forward * (1 - margin));
    } else {
      ++others;
      EXPECT_LT(taken, forward * (1 - margin));
      for (double seconds : choice.seconds) EXPECT_LE(taken, seconds);
    }
  }
  EXPECT_GT(others, 500);
}

/// With a library that the built-in curves do not describe, messages are left alone or, in a small region, packed.
TEST(Chooser, AnotherLibraryIsLeftAloneOrPackedWhereEveryLibraryGained) {
  std::mt19937 random(11);
  const Chooser known(MachineProfile::built_in());
  const Chooser other(MachineProfile::built_in(), Chooser::default_margin, /*library_known=*/false);
  int packed = 0, not_respelled = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::int64_t block = 1 << random() % 13, bytes = block * (2 + static_cast<std::int64_t>(random() % 100000));
    const Shape shape =
        make_shape(classes[random() % 4], bytes, block, block * (2 + static_cast<std::int64_t>(random() % 50)));
    const auto kind = static_cast<CallKind>(random() % call_kind_count);
    const auto distance = static_cast<Distance>(random() % distance_count);
    const Choice choice = other.choose(shape, kind, distance, everything);
    if (!is_message(kind)) {
      EXPECT_EQ(choice.strategy, known.choose(shape, kind, distance, everything).strategy);
      continue;
    }
    ASSERT_NE(choice.strategy, Strategy::respell);
    EXPECT_EQ(other.contiguous_strategy(bytes, kind, distance), Strategy::forward);
    not_respelled += known.choose(shape, kind, distance, everything).strategy == Strategy::respell;
    if (choice.strategy != Strategy::pack) continue;
    ++packed;
    EXPECT_LE(block, 64);
    EXPECT_NE(shape.kind, Shape::Class::nest);
    EXPECT_GE(bytes, shape.kind == Shape::Class::list ? 32 * 1024 : shape.kind == Shape::Class::record ? 768 : 8193);
  }
  EXPECT_GT(packed, 500);
  EXPECT_GT(not_respelled, 500);
}

/// What calibration measured holds for the library that it measured.
TEST(Chooser, MeasuredCurvesOfAnotherLibraryAreUsed) {
  Measurements measured;
  const auto set = [&](Engine engine, double ns_per_block) {
    for (int i = 0; i < bytes_points; ++i)
      for (int k = 0; k < block_points; ++k)
        measured[{CallClass::send_node, Shape::Class::vector, engine}].set(
            i, k, (1000 + static_cast<double>(bytes_at(i)) / block_lengths[k] * ns_per_block) * 1e-9);
  };
  set(Engine::split, 20), set(Engine::unsplit, 1), set(Engine::kernel, 30);
  for (const ContiguousForm form : {ContiguousForm::plain, ContiguousForm::respelled})
    for (int i = 0; i < curve_points; ++i)
      measured.curve(form, CallClass::send_node).set(i, (900 + static_cast<double>(curve_bytes_at(i)) * 0.1) * 1e-9);
  const MachineProfile profile = MachineProfile::from(measured, {});
  const Chooser other(profile, Chooser::default_margin, /*library_known=*/false);
  const auto strategy = [&](Shape::Class kind, CallKind call) {
    return other.choose(make_shape(kind, 64 * 1024, 8), call, Distance::node, everything).strategy;
  };
  EXPECT_EQ(strategy(Shape::Class::vector, CallKind::send), Strategy::respell) << "measured";
  EXPECT_EQ(strategy(Shape::Class::vector, CallKind::isend), Strategy::pack) << "not measured: built in";
  EXPECT_EQ(strategy(Shape::Class::nest, CallKind::send), Strategy::forward) << "not measured: built in";
}

TEST(Chooser, BuiltInCurvesAreOfOneLibraryAndVersion) {
  EXPECT_TRUE(built_in_curves_are_of("MPICH 4.0.2 ch4:ucx"));
  EXPECT_TRUE(built_in_curves_are_of("MPICH 4.0.3 ch4:ucx"));
  for (const char* other : {"", "MPICH 4.0.2", "MPICH 4.0.2 ch4:ofi", "MPICH 4.1.2 ch4:ucx", "MPICH 5.0.2 ch4:ucx",
                            "MPICH 3.4.3 ch4:ucx", "Intel(R) MPI Library 2021.18.1 for Linux* OS",
                            "MPI VERSION    : CRAY MPICH version 8.1.29.2 (ANL base 3.4a2)", "MVAPICH2 Version: 2.3.7"})
    EXPECT_FALSE(built_in_curves_are_of(other)) << other;
}

TEST(Chooser, DisallowedStrategiesAreInfinite) {
  const Chooser chooser(MachineProfile::built_in());
  const Shape shape = make_shape(Shape::Class::vector, 65536, 8);
  const Choice none = chooser.choose(shape, CallKind::send, Distance::node, {.respell = false, .pack = false});
  EXPECT_EQ(none.strategy, Strategy::forward);
  EXPECT_TRUE(std::isinf(none.seconds[1]) && std::isinf(none.seconds[2]));
  const Choice packing = chooser.choose(shape, CallKind::send, Distance::node, {.respell = false, .pack = true});
  EXPECT_EQ(packing.strategy, Strategy::pack);
}

TEST(Chooser, AllocatesNothing) {
  const Chooser chooser(MachineProfile::built_in());
  const Shape shape = make_shape(Shape::Class::nest, 100000, 24, 500);
  const long before = allocations;
  double sum = 0;
  for (int i = 0; i < 1000; ++i) sum += chooser.choose(shape, CallKind::send, Distance::node, everything).seconds[0];
  EXPECT_EQ(allocations, before);
  EXPECT_GT(sum, 0);
}

TEST(BuiltIn, ForwardsWithoutAClearGain) {
  const Chooser chooser(MachineProfile::built_in());
  for (CallKind kind : {CallKind::send, CallKind::receive}) {
    const auto choose = [&](Shape::Class of, std::int64_t bytes, std::int64_t block, std::int64_t jump = 0) {
      return chooser.choose(make_shape(of, bytes, block, jump), kind, Distance::node, everything).strategy;
    };
    using enum Shape::Class;
    EXPECT_EQ(choose(contiguous, 65536, 65536), Strategy::forward);
    EXPECT_EQ(choose(vector, 1024, 8), Strategy::forward);
    EXPECT_EQ(choose(vector, 1 << 20, 1024), Strategy::forward);
    EXPECT_EQ(choose(nest, 30752, 8, 512), Strategy::forward);
    EXPECT_EQ(choose(list, 2048, 8), Strategy::forward);
    EXPECT_EQ(choose(record, 64 << 20, 16), Strategy::forward);
    for (Shape::Class of : classes)
      EXPECT_EQ(chooser.choose(make_shape(of, 65536, 8), kind, Distance::self, everything).strategy, Strategy::forward);
    EXPECT_EQ(choose(vector, 65536, 8), Strategy::respell);
    EXPECT_EQ(choose(vector, 1 << 20, 16), Strategy::respell);
    EXPECT_EQ(choose(record, 65536, 16), Strategy::pack);
    EXPECT_EQ(choose(list, 65536, 8), Strategy::pack);
  }
}

TEST(BuiltIn, ForwardsElementsThatFitAFragment) {
  // resized(double, 0, 24) x 8192 is what respelling produces; MPICH moved it as fast as contiguous bytes.
  Shape shape = make_shape(Shape::Class::vector, 65536, 8);
  shape.unit_bytes = 8;
  EXPECT_EQ(Chooser(MachineProfile::built_in()).choose(shape, CallKind::send, Distance::node, everything).strategy,
            Strategy::forward);
}

TEST(BuiltIn, PacksForMpiPackWithAnyBlocks) {
  const Chooser chooser(MachineProfile::built_in());
  for (CallKind kind : {CallKind::pack, CallKind::unpack})
    for (Shape::Class of : classes) {
      for (std::int64_t block : {4, 8, 24, 100, 1000, 2048, 8192})
        for (std::int64_t bytes : {4000, 100000, 1000000})
          EXPECT_EQ(chooser.choose(make_shape(of, bytes, block), kind, Distance::self, everything).strategy,
                    Strategy::pack)
              << bytes << " " << block;
    }
}

/// Even if packing is predicted to gain.
TEST(Chooser, LongBlocksToTheRankItselfAreNotPacked) {
  const Chooser eager(MachineProfile::built_in(), -10);
  constexpr Allowed packing{.respell = false, .pack = true};
  for (CallKind kind : {CallKind::send, CallKind::receive, CallKind::isend})
    for (Shape::Class of : classes) {
      EXPECT_EQ(eager.choose(make_shape(of, 1 << 18, 1024), kind, Distance::self, packing).strategy, Strategy::forward);
      EXPECT_EQ(eager.choose(make_shape(of, 1 << 18, 8), kind, Distance::self, packing).strategy, Strategy::pack);
    }
}

TEST(Chooser, ForwardsMemoryBoundTypes) {
  const Chooser chooser(MachineProfile::built_in());
  const auto strategy = [&](const char* type, CallKind kind) {
    const auto evaluated = evaluate(*parse_type(type));
    const Shape shape = Shape::of(*intern(evaluated->bytes), {evaluated->unit_bytes, Leaf::eight});
    return chooser.choose(shape, kind, Distance::node, {true, true}).seconds;
  };
  constexpr double never = std::numeric_limits<double>::infinity();
  EXPECT_EQ(strategy("vector(32768,1,256,double)", CallKind::send)[2], never) << "2048 bytes apart";
  EXPECT_EQ(strategy("vector(32768,1,257,double)", CallKind::receive)[1], never);
  EXPECT_NE(strategy("vector(32768,1,256,double)", CallKind::isend)[2], never) << "measured in cold memory";
  EXPECT_NE(strategy("vector(32768,1,288,double)", CallKind::send)[2], never);
  EXPECT_NE(strategy("vector(4096,1,256,double)", CallKind::send)[2], never);
  EXPECT_NE(strategy("contiguous(256,resized(0,8,vector(256,1,256,double)))", CallKind::send)[2], never)
      << "a transpose shares its cache lines";
}

TEST(NearRanks, OnlyContiguousMessagesDependOnTheSharedCache) {
  Measurements measured;
  for (const CallClass call_class : {CallClass::send_cache, CallClass::exchange_cache})
    for (int i = 0; i < curve_points; ++i) {
      const double plain = 1e-6 + static_cast<double>(curve_bytes_at(i)) * 1e-10;
      measured.curve(ContiguousForm::plain, call_class).set(i, plain);
      measured.curve(ContiguousForm::respelled, call_class).set(i, curve_bytes_at(i) < 60000 ? plain : plain / 2);
    }
  const MachineProfile profile = MachineProfile::from(measured, {});
  const Chooser chooser(profile);
  for (const CallKind kind : {CallKind::send, CallKind::receive, CallKind::isend, CallKind::irecv}) {
    EXPECT_EQ(chooser.contiguous_strategy(1 << 20, kind, Distance::cache), Strategy::respell);
    EXPECT_EQ(chooser.contiguous_strategy(16384, kind, Distance::cache), Strategy::forward);
    for (const Distance distance : {Distance::domain, Distance::socket, Distance::node, Distance::network})
      EXPECT_EQ(chooser.contiguous_strategy(1 << 20, kind, distance), Strategy::forward);
    for (const Shape::Class with_gaps : classes)
      for (const std::int64_t block : {8, 64, 512})
        for (const std::int64_t bytes : {16384, 1 << 20}) {
          const Shape shape = make_shape(with_gaps, bytes, block);
          const Choice node = chooser.choose(shape, kind, Distance::node, everything);
          for (const Distance near : near_distances) {
            const Choice choice = chooser.choose(shape, kind, near, everything);
            EXPECT_EQ(choice.strategy, node.strategy);
            EXPECT_EQ(choice.seconds, node.seconds);
          }
        }
  }
  const std::int64_t from = chooser.respell_contiguous_from({Distance::cache, Distance::domain});
  EXPECT_GT(from, 32768);
  EXPECT_LE(from, 65536);
  EXPECT_EQ(chooser.respell_contiguous_from({Distance::domain, Distance::socket}), 0);
}

}  // namespace
}  // namespace bestride::inline perfmodel
