// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/profile/image.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "perfmodel/profile/built_in_model.hpp"
#include "perfmodel/profile/json_points.hpp"

namespace bestride::inline perfmodel {
namespace {

const GridKey key{CallClass::send_node, Shape::Class::vector, Engine::split};
constexpr float marked = -3;  ///< log2 of seconds that no profile has

/// A profile with an image whose curves differ from the profile's in one point: by it the tests see which was read.
class ImageTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "bestride-image-XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    path_ = folder_ + "/profile.json";
    auto measured = make_mapped<Measurements>(built_in_curves);
    MachineProfile profile = MachineProfile::from(*measured, {"Example CPU", "MPICH", "2 cores", "0.1.0"}, device());
    profile.rails = {"eth0", "eth1"};
    profile.respell_contiguous_from = 12345;
    ASSERT_TRUE(profile.save(path_));
    written_ = content(image_path(path_));
    const auto image = read_image(path_);
    ASSERT_TRUE(image);
    rest_ = image->rest;
    auto curves = make_mapped<Measurements>(*image->curves);
    (*curves)[key].log_seconds[2][3] = marked;
    ASSERT_TRUE(write_image(path_, *curves, rest_));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static DeviceMeasurements device() {
    DeviceMeasurements device;
    device.set(DeviceFloor::launch, 3e-6);
    return device;
  }
  static std::string content(const std::string& path) {
    std::stringstream all;
    all << std::ifstream(path).rdbuf();
    return all.str();
  }
  static void write(const std::string& path, const std::string& all) { std::ofstream(path) << all; }
  bool image_is_read() const {
    const auto loaded = MachineProfile::load_for_predictions(path_);
    EXPECT_TRUE(loaded);
    return loaded && loaded->grid(key).log_seconds[2][3] == marked;
  }

  std::string folder_, path_, rest_;
  std::string written_;  ///< the image that save() wrote
};

TEST_F(ImageTest, HasEverythingThatTheProfileHas) {
  write(image_path(path_), written_);
  const auto from_image = MachineProfile::load_for_predictions(path_), parsed = MachineProfile::load(path_);
  ASSERT_TRUE(from_image);
  ASSERT_TRUE(parsed);
  for (int index = 0; index < grid_count; ++index)
    EXPECT_EQ(from_image->grid(grid_key(index)).log_seconds, parsed->grid(grid_key(index)).log_seconds);
  for (const ContiguousForm form : {ContiguousForm::plain, ContiguousForm::respelled})
    for (int call_class = 0; call_class < call_class_count; ++call_class)
      for (const double bytes : {64.0, 5e3, 1e8})
        EXPECT_EQ(from_image->contiguous_seconds(bytes, form, static_cast<CallClass>(call_class)),
                  parsed->contiguous_seconds(bytes, form, static_cast<CallClass>(call_class)));
  EXPECT_EQ(why_stale(from_image->fingerprint, parsed->fingerprint), "");
  EXPECT_EQ(from_image->fingerprint.cpu, "Example CPU");
  EXPECT_EQ(from_image->rails, parsed->rails);
  EXPECT_EQ(from_image->respell_contiguous_from, 12345);
  EXPECT_EQ(from_image->path, path_);
  EXPECT_TRUE(from_image->device().calibrated());
  EXPECT_EQ(from_image->device().measured().seconds(DeviceFloor::launch),
            parsed->device().measured().seconds(DeviceFloor::launch));
}

TEST_F(ImageTest, IsReadInPlaceOfTheProfile) {
  EXPECT_TRUE(image_is_read());
  EXPECT_NE(MachineProfile::load(path_)->grid(key).log_seconds[2][3], marked) << "load() reads the profile itself";
}

TEST_F(ImageTest, OfAnotherContentIsIgnored) {
  const std::string text = content(path_);
  for (const std::string& other : {text + " ", " " + text}) {
    write(path_, other);
    EXPECT_FALSE(image_is_read());
  }
  write(path_, text);
  EXPECT_TRUE(image_is_read()) << "the same content again";
}

TEST_F(ImageTest, OfADamagedProfileIsIgnored) {
  std::string text = content(path_);
  const auto digit = text.find("\"ns\":[") + 8;
  text[digit] = text[digit] == '1' ? '2' : '1';
  write(path_, text);
  const auto refused = MachineProfile::load_for_predictions(path_);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text.find("changed or damaged"), std::string::npos);
}

TEST_F(ImageTest, DamagedOneIsIgnored) {
  const std::string image = content(image_path(path_));
  for (std::size_t at = 0; at < image.size(); at += at < 128 ? 1 : 4999) {
    std::string damaged = image;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    write(image_path(path_), damaged);
    EXPECT_FALSE(image_is_read()) << at;
  }
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{50}, std::size_t{96}, image.size() / 2, image.size() - 1}) {
    write(image_path(path_), image.substr(0, length));
    EXPECT_FALSE(image_is_read()) << length;
  }
  write(image_path(path_), image + "x");
  EXPECT_FALSE(image_is_read());
}

TEST_F(ImageTest, MissingOrUnreadableOneIsIgnored) {
  std::filesystem::remove(image_path(path_));
  EXPECT_FALSE(image_is_read());
  std::filesystem::create_directory(image_path(path_));
  EXPECT_FALSE(image_is_read());
  EXPECT_TRUE(MachineProfile::load(path_)->save(path_)) << "a profile without an image is good, too";
}

TEST_F(ImageTest, WithoutProfileIsNotRead) {
  std::filesystem::remove(path_);
  EXPECT_FALSE(MachineProfile::load_for_predictions(path_));
}

TEST_F(ImageTest, NewProfileReplacesIt) {
  ASSERT_TRUE(MachineProfile::load(path_)->save(path_));
  EXPECT_FALSE(image_is_read());
  EXPECT_TRUE(read_image(path_)) << "there is one of the new profile";
}

}  // namespace
}  // namespace bestride::inline perfmodel
