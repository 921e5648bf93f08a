// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/collective/measurements.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "perfmodel/collective/test_values.hpp"
#include "perfmodel/profile/collective_json.hpp"
#include "perfmodel/profile/profile.hpp"

namespace bestride::inline perfmodel {
namespace {

TEST(CollectiveMeasurements, NewerPointReplacesTheNoise) {
  CollectiveMeasurements measured = measured_as(1, 1);
  const float before = measured.settings[0].hierarchical[0][1][4];
  measured.settings[0].noise[0][1].fill(0.5f);
  CollectiveMeasurements newer = measured_as(2, 1);
  newer.settings[0].noise[0][1][2] = 0.01f;
  newer.settings[0].library[0][1][4] = newer.settings[0].hierarchical[0][1][4] = CollectiveSetting::unmeasured;
  measured.merge(newer);
  EXPECT_EQ(measured.settings[0].noise[0][1][2], 0.01f);
  EXPECT_EQ(measured.settings[0].hierarchical[0][1][2], newer.settings[0].hierarchical[0][1][2]);
  EXPECT_EQ(measured.settings[0].hierarchical[0][1][4], before) << "not measured again";
  EXPECT_EQ(measured.settings[0].noise[0][1][4], 0.5f) << "not measured again";
  EXPECT_TRUE(std::isnan(measured.settings[0].noise[0][1][6])) << "measured again without noise";
}

TEST(CollectiveMeasurements, KeepsTheNewestSettings) {
  CollectiveMeasurements measured;
  for (int nodes : {2, 3, 4, 5, 3}) measured.merge(measured_as(nodes, 1, nodes, 2));
  ASSERT_EQ(measured.settings.size(), 3u);
  EXPECT_EQ(measured.settings[0].nodes, 4);
  EXPECT_EQ(measured.settings[1].nodes, 5);
  EXPECT_EQ(measured.settings[2].nodes, 3);
  CollectiveMeasurements none;
  EXPECT_FALSE(none.any());
  none.link.latency_s = 1e-6;
  EXPECT_TRUE(none.any());
  EXPECT_EQ(none.filled_link().latency_s, 1e-6);
  EXPECT_EQ(none.filled_link().copy_byte_s, LinkCosts::built_in().copy_byte_s);
  CollectiveMeasurements piece;
  piece.link.piece_bytes = 32 * KiB;
  EXPECT_TRUE(piece.any());
  piece.merge(none);
  EXPECT_EQ(piece.filled_link().piece_bytes, 32 * KiB) << "not measured again";
  none.merge(piece);
  EXPECT_EQ(none.link.piece_bytes, 32 * KiB);
}

class CollectivesInAProfile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "bestride_collectives_" + std::to_string(::getpid());
    path_ = folder_ + "/profile.json";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  /// The error of load() for a profile with these measurements, written without a check.
  std::string refusal(const CollectiveMeasurements& measured) const {
    EXPECT_TRUE(MachineProfile::from(Measurements(), {}, {}, measured).save(path_));
    const auto loaded = MachineProfile::load(path_);
    EXPECT_FALSE(loaded);
    return loaded ? "" : loaded.error().text;
  }
  std::string folder_, path_;
};

TEST_F(CollectivesInAProfile, RoundTrip) {
  CollectiveMeasurements before = measured_as(2, 3, 3, 2, reduce_scatter);
  before.link.latency_s = 12.34e-6;
  before.link.wire_byte_s = 41.8e-9;
  before.link.piece_bytes = 32 * KiB;
  before.settings[0].noise[static_cast<std::size_t>(reduce_scatter)][1][2] = 0.0312f;
  ASSERT_TRUE(MachineProfile::from(Measurements(), {}, {}, before).save(path_));
  const auto profile = MachineProfile::load(path_);
  ASSERT_TRUE(profile) << profile.error().text;
  const CollectiveMeasurements& after = profile->collectives();
  EXPECT_NEAR(after.link.latency_s, 12.34e-6, 1e-11);
  EXPECT_NEAR(after.link.wire_byte_s, 41.8e-9, 1e-14);
  EXPECT_TRUE(std::isnan(after.link.copy_byte_s));
  EXPECT_EQ(after.link.piece_bytes, 32 * KiB);
  ASSERT_EQ(after.settings.size(), 1u);
  EXPECT_TRUE(after.settings[0].same_place(before.settings[0]));
  const auto what = static_cast<std::size_t>(reduce_scatter);
  EXPECT_NEAR(after.settings[0].noise[what][1][2], 0.0312, 1e-6);
  EXPECT_TRUE(std::isnan(after.settings[0].noise[what][1][4]));
  for (std::size_t size = 0; size < collective_sizes; ++size) {
    EXPECT_TRUE(std::isnan(after.settings[0].library[what][0][size]));
    if (size % 2)
      EXPECT_TRUE(std::isnan(after.settings[0].library[what][1][size]));
    else
      EXPECT_NEAR(after.settings[0].library[what][1][size] / before.settings[0].library[what][1][size], 1, 1e-3);
  }
  ASSERT_TRUE(MachineProfile::from(Measurements(), {}, {}, after).save(path_ + "2"));
  EXPECT_EQ(std::filesystem::file_size(path_), std::filesystem::file_size(path_ + "2"));
}

/// Files of older versions have keys for a form of the library that is no longer measured.
TEST(CollectivesSection, UnknownKeyOfACurveIsIgnored) {
  Json section = json_of(measured_as(2, 3));
  Json& curve = section["settings"][0]["curves"][0];
  curve["library_nonblocking_ns"] = curve["library_ns"];
  curve["library_nonblocking_noise"] = curve["noise"];
  CollectiveMeasurements measured;
  EXPECT_EQ(read_collectives(section, &measured), "");
  EXPECT_EQ(json_of(measured), json_of(measured_as(2, 3)));
}

TEST_F(CollectivesInAProfile, InvalidSectionIsRejected) {
  const auto expect_one_line = [](const std::string& text, const char* cause) {
    EXPECT_NE(text.find(cause), std::string::npos) << text;
    EXPECT_NE(text.find("the built-in profile is used"), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos);
  };
  CollectiveMeasurements bad = measured_as(1, 1);
  bad.link.copy_byte_s = 1e6;
  expect_one_line(refusal(bad), "'copy_byte' has a bad value");
  bad = measured_as(1, 1);
  bad.link.piece_bytes = 1000;
  expect_one_line(refusal(bad), "'piece' has a bad value");
  bad = measured_as(1, 1);
  bad.settings[0].nodes = 9;  // more than there are ranks
  expect_one_line(refusal(bad), "bad entry");
  bad = measured_as(1, 1);
  bad.settings[0].ring_entries = 3;
  expect_one_line(refusal(bad), "bad entry");
  bad = measured_as(1, 1);
  bad.settings[0].library[0][1][2] = 1e9f;
  expect_one_line(refusal(bad), "bad entry");
  bad = measured_as(1, 1);
  bad.settings[0].noise[0][1][2] = -1;
  expect_one_line(refusal(bad), "bad entry");
  bad = measured_as(1, 1);
  bad.settings.resize(4, bad.settings[0]);
  expect_one_line(refusal(bad), "more measured sets");
}

}  // namespace
}  // namespace bestride::inline perfmodel
