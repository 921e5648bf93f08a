// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/profile/profile.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "perfmodel/profile/built_in_model.hpp"
#include "perfmodel/profile/complete.hpp"
#include "perfmodel/profile/json_points.hpp"
#include "perfmodel/profile/machine.hpp"

namespace bestride::inline perfmodel {
namespace {

const MachineFingerprint somewhere{"Example CPU, avx2", "MPICH 4.0.2 ch4:ucx", "2 cores, L2 2048 KiB, L3 32768 KiB",
                                   "0.1.0"};

/// Measurements of two call classes at every second point; forward costs `ratio` times as much as our kernels.
Measurements some_measurements(double ratio) {
  Measurements measured;
  for (CallClass call_class : {CallClass::pack, CallClass::send_node})
    for (int c = 1; c <= class_count; ++c)
      for (Engine engine : {Engine::split, Engine::unsplit, Engine::kernel})
        for (int i = 0; i < bytes_points; i += 2)
          for (int k = 0; k < block_points; k += 2) {
            const double bytes = static_cast<double>(bytes_at(i));
            const double seconds = 1e-7 + bytes * 1e-10 + bytes / static_cast<double>(block_lengths[k]) * 1e-9;
            measured[{call_class, static_cast<Shape::Class>(c), engine}].set(
                i, k, engine == Engine::split ? ratio * seconds : seconds);
          }
  for (int i = 0; i < curve_points; ++i)
    measured.curve(ContiguousForm::plain, CallClass::send_node)
        .set(i, 5e-8 + static_cast<double>(curve_bytes_at(i)) * 5e-11);
  return measured;
}

class ProfileFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "bestride_profile_" + std::to_string(::getpid());
    path_ = folder_ + "/deep/profile.json";
    const auto saved = MachineProfile::from(some_measurements(3), somewhere).save(path_);
    ASSERT_TRUE(saved) << saved.error().text;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string text() const {
    std::ostringstream out;
    out << std::ifstream(path_).rdbuf();
    return out.str();
  }
  void write(const std::string& text) const { std::ofstream(path_, std::ios::trunc) << text; }
  void replace(const std::string& from, const std::string& to) const {
    std::string all = text();
    const auto at = all.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write(all.replace(at, from.size(), to));
  }
  /// The error of load(), one line.
  std::string refusal() const {
    const auto loaded = MachineProfile::load(path_);
    EXPECT_FALSE(loaded);
    if (loaded) return "";
    EXPECT_EQ(loaded.error().text.find('\n'), std::string::npos);
    EXPECT_NE(loaded.error().text.find(path_), std::string::npos) << "names the file";
    EXPECT_NE(loaded.error().text.find("bestride calibrate"), std::string::npos) << "names the remedy";
    return loaded.error().text;
  }
  std::string folder_, path_;
};

TEST_F(ProfileFile, RoundTrip) {
  const MachineProfile before = MachineProfile::from(some_measurements(3), somewhere);
  const auto after = MachineProfile::load(path_);
  ASSERT_TRUE(after) << after.error().text;
  EXPECT_EQ(after->path, path_);
  EXPECT_EQ(after->fingerprint.cpu, somewhere.cpu);
  EXPECT_EQ(why_stale(after->fingerprint, somewhere), "");
  for (int index = 0; index < grid_count; ++index)
    for (int i = 0; i < bytes_points; ++i)
      for (int k = 0; k < block_points; ++k)
        ASSERT_NEAR(after->grid(grid_key(index)).log_seconds[i][k], before.grid(grid_key(index)).log_seconds[i][k],
                    2e-3);
  const std::string first = text();
  ASSERT_TRUE(after->save(path_));
  EXPECT_EQ(text(), first) << "a file read and written again is the same file";
}

/// With a valid signature: FNV-1a, 64 bit, of the rest (docs/profile.md).
std::string sealed(Json file) {
  file.erase("signature");
  std::uint64_t hash = 1469598103934665603u;
  for (unsigned char byte : file.dump()) hash = (hash ^ byte) * 1099511628211u;
  char text[32];
  std::snprintf(text, sizeof text, "fnv1a64:%016llx", static_cast<unsigned long long>(hash));
  file["signature"] = text;
  return file.dump();
}

/// One point of each kind that a GPU has.
DeviceMeasurements some_device() {
  DeviceMeasurements device;
  for (int i = 0; i < device_floor_count; ++i) device.set(static_cast<DeviceFloor>(i), 1e-6 * (i + 1));
  device.dma[1].set(4, 5e-6);
  device.contiguous[2].set(8, 6e-6);
  for (int index = 0; index < device_grid_count; ++index)
    device.grids[static_cast<std::size_t>(index)].set(2, 3, 1e-6 * (index + 7));
  return device;
}

TEST_F(ProfileFile, RoundTripOfTheGpu) {
  EXPECT_EQ(text().find("gpu"), std::string::npos) << "a profile without one does not mention it";
  MachineFingerprint with_gpu = somewhere;
  with_gpu.gpu = "Example GPU, CUDA 13.0";
  ASSERT_TRUE(MachineProfile::from(some_measurements(3), with_gpu, some_device()).save(path_));
  const auto after = MachineProfile::load(path_);
  ASSERT_TRUE(after) << after.error().text;
  EXPECT_EQ(after->fingerprint.gpu, with_gpu.gpu);
  EXPECT_TRUE(after->device().calibrated());
  const DeviceMeasurements before = some_device(), &read = after->device().measured();
  for (std::size_t i = 0; i < before.grids.size(); ++i)
    EXPECT_NEAR(read.grids[i].log_seconds[2][3], before.grids[i].log_seconds[2][3], 2e-3);
  for (std::size_t i = 0; i < before.log_floors.size(); ++i)
    EXPECT_NEAR(read.log_floors[i], before.log_floors[i], 2e-3);
  EXPECT_NEAR(read.dma[1].log_seconds[4], before.dma[1].log_seconds[4], 2e-3);
  EXPECT_NEAR(read.contiguous[2].log_seconds[8], before.contiguous[2].log_seconds[8], 2e-3);
  EXPECT_FALSE(read.stand_in);
  const std::string first = text();
  ASSERT_TRUE(after->save(path_));
  EXPECT_EQ(text(), first);
  replace("\"stand_in\":false", "\"stand_in\":true");
  EXPECT_NE(refusal().find("signature"), std::string::npos) << "the GPU's section is signed like the rest";
}

TEST_F(ProfileFile, StandInDriverIsMarkedAndNotUsed) {
  DeviceMeasurements device = some_device();
  device.stand_in = true;
  ASSERT_TRUE(MachineProfile::from(some_measurements(3), somewhere, device).save(path_));
  const auto after = MachineProfile::load(path_);
  ASSERT_TRUE(after) << after.error().text;
  EXPECT_TRUE(after->device().measured().stand_in);
  EXPECT_FALSE(after->device().calibrated());
}

TEST_F(ProfileFile, RoundTripOfRails) {
  EXPECT_EQ(text().find("rails"), std::string::npos) << "a profile without them does not mention them";
  const auto without = MachineProfile::load(path_);
  ASSERT_TRUE(without);
  EXPECT_TRUE(without->rails.empty());
  EXPECT_FALSE(profile_may_have_rails(path_));
  EXPECT_FALSE(profile_may_have_rails("")) << "there is no profile";
  EXPECT_TRUE(profile_may_have_rails(path_ + ".missing")) << "load() says why";
  MachineProfile profile = MachineProfile::from(some_measurements(3), somewhere);
  profile.rails = {"eth0", "mlx5_0:1", "eth0"};
  ASSERT_TRUE(profile.save(path_));
  const auto after = MachineProfile::load(path_);
  ASSERT_TRUE(after) << after.error().text;
  EXPECT_EQ(after->rails, profile.rails);
  EXPECT_TRUE(profile_may_have_rails(path_));
  const std::string first = text();
  ASSERT_TRUE(after->save(path_));
  EXPECT_EQ(text(), first);
  replace("eth0", "eth1");
  EXPECT_NE(refusal().find("signature"), std::string::npos);
}

TEST_F(ProfileFile, RoundTripOfCollectivesOnOneNode) {
  EXPECT_EQ(text().find("one_node"), std::string::npos) << "a profile without them does not mention them";
  MachineProfile profile = MachineProfile::from(some_measurements(3), somewhere);
  profile.one_node.ranks = 16;
  OneNodeCurve& curve = profile.one_node.curves[3];
  curve.shared[2] = 1.25e-6f, curve.library[2] = 2.5e-6f;
  ASSERT_TRUE(profile.save(path_));
  for (const bool image : {false, true}) {
    const auto after = image ? MachineProfile::load_for_predictions(path_) : MachineProfile::load(path_);
    ASSERT_TRUE(after) << after.error().text;
    EXPECT_EQ(after->one_node.ranks, 16);
    for (std::size_t i = 0; i < one_node_calls.size(); ++i) EXPECT_EQ(after->one_node.curves[i].any(), i == 3);
    EXPECT_FLOAT_EQ(after->one_node.curves[3].shared[2], 1.25e-6f);
    EXPECT_FLOAT_EQ(after->one_node.curves[3].library[2], 2.5e-6f);
    EXPECT_TRUE(std::isnan(after->one_node.curves[3].shared[1]));
  }
  const std::string first = text();
  ASSERT_TRUE(MachineProfile::load(path_)->save(path_));
  EXPECT_EQ(text(), first);
  const Json good = Json::parse(first);
  const auto with = [&](const char* key, const Json& value) {
    Json file = good;
    file["one_node"][key] = value;
    write(sealed(std::move(file)));
    return refusal();
  };
  EXPECT_NE(with("version", 2).find("another version's"), std::string::npos);
  EXPECT_NE(with("bytes", {8, 64}).find("sizes of collectives on one node"), std::string::npos);
  for (const Json& ranks : {Json(1), Json("2"), Json(nullptr), Json(2.5), Json(1 << 30)})
    EXPECT_NE(with("ranks", ranks).find("bad number of ranks"), std::string::npos) << ranks;
  Json call = good["one_node"]["calls"][0];
  call["call"] = "scan";
  EXPECT_NE(with("calls", Json::array({call})).find("unknown call"), std::string::npos);
  call = good["one_node"]["calls"][0];
  call["shared_ns"] = {1, 2};
  EXPECT_NE(with("calls", Json::array({call})).find("bad entry"), std::string::npos);
  call["shared_ns"] = Json(std::vector<double>(one_node_bytes.size(), -1));
  EXPECT_NE(with("calls", Json::array({call})).find("bad entry"), std::string::npos);
}

TEST_F(ProfileFile, InvalidRailsRejectTheFile) {
  const auto with = [this](const Json& rails) {
    Json file = Json::parse(text());
    file["rails"] = rails;
    write(sealed(std::move(file)));
    return refusal();
  };
  for (const Json& rails : {Json("eth0,eth1"), Json(2), Json(nullptr), Json::object(), Json::array(), Json{"eth0", 1},
                            Json{"eth0", nullptr}})
    EXPECT_NE(with(rails).find("its rails are no list of NICs"), std::string::npos) << rails;
  for (const Json& rails : {Json{""}, Json{"", "eth0"}, Json{"eth0", ""}})
    EXPECT_NE(with(rails).find("a name is missing"), std::string::npos) << rails;
  EXPECT_NE(with(Json{"eth0,eth1"}).find("comma"), std::string::npos);
  EXPECT_NE(with(Json{"eth0", "eth 1"}).find("blank"), std::string::npos);
  EXPECT_NE(with(Json{"eth0", "eth1\n"}).find("blank"), std::string::npos);
  EXPECT_NE(with(Json{std::string(longest_rail_name + 1, 'e')}).find("longer than"), std::string::npos);
  EXPECT_NE(with(Json(std::vector<std::string>(max_rails + 1, "eth0"))).find("more than 64"), std::string::npos);
  // The maximum number and length.
  Json file = Json::parse(text());
  file["rails"] = std::vector<std::string>(max_rails, std::string(longest_rail_name, 'e'));
  write(sealed(std::move(file)));
  const auto loaded = MachineProfile::load(path_);
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->rails.size(), max_rails);
}

TEST_F(ProfileFile, LeavesNoTemporaryFile) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/deep"))
    files.insert(entry.path().filename());
  EXPECT_EQ(files, (std::set<std::string>{"profile.json", "profile.json.image"}));
}

TEST_F(ProfileFile, Truncated) {
  const std::string whole = text();
  for (std::size_t length : {std::size_t{0}, std::size_t{1}, whole.size() / 2, whole.size() - 3}) {
    write(whole.substr(0, length));
    EXPECT_NE(refusal().find("cut short"), std::string::npos);
  }
}

TEST_F(ProfileFile, DetectsEveryChangedDigit) {
  const std::string whole = text();
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    std::string changed = whole;
    char& c = changed[random() % changed.size()];
    if (c == '\n' || c == ' ') continue;
    c = c == '7' ? '8' : '7';
    write(changed);
    EXPECT_FALSE(MachineProfile::load(path_));
  }
}

TEST_F(ProfileFile, EditedByHand) {
  replace("Example CPU", "Another CPU");
  EXPECT_NE(refusal().find("signature"), std::string::npos);
}

TEST_F(ProfileFile, WhitespaceIsNoChange) {
  replace(",\"version\"", ",\n  \"version\"");
  EXPECT_TRUE(MachineProfile::load(path_));
}

TEST_F(ProfileFile, OfAnotherVersion) {
  replace("\"version\":2", "\"version\":3");
  EXPECT_NE(refusal().find("another version of bestride (format 3"), std::string::npos);
}

TEST_F(ProfileFile, OtherJson) {
  write("{\"hello\": [1, 2, 3]}");
  EXPECT_NE(refusal().find("not a bestride profile"), std::string::npos);
  write(
      "\x7f"
      "ELF\x02\x01");
  EXPECT_NE(refusal().find("not JSON"), std::string::npos);
  write(std::string(100000, '['));
  refusal();
}

TEST_F(ProfileFile, Unreadable) {
  std::filesystem::remove(path_);
  EXPECT_NE(refusal().find("No such file"), std::string::npos);
  std::filesystem::create_directory(path_);
  EXPECT_NE(refusal().find("not a file"), std::string::npos);
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_NE(refusal().find("is a FIFO, not a file"), std::string::npos) << "and does not wait for a writer";
}

TEST_F(ProfileFile, NotWritable) {
  const auto saved = MachineProfile::from(some_measurements(3), somewhere).save(path_ + "/below/a/file");
  ASSERT_FALSE(saved);
  EXPECT_NE(saved.error().text.find("--output"), std::string::npos);
}

TEST(Fingerprint, DifferencesAreNamed) {
  MachineFingerprint here = somewhere;
  EXPECT_EQ(why_stale(somewhere, here), "");
  here.mpi_library = "MPICH 4.2.3 ch4:ofi";
  const std::string line = why_stale(somewhere, here);
  EXPECT_NE(line.find("MPI library"), std::string::npos);
  EXPECT_NE(line.find("4.2.3"), std::string::npos);
  EXPECT_NE(line.find("bestride calibrate"), std::string::npos);
  here = somewhere;
  here.gpu = "GPU B, CUDA 13.0";
  EXPECT_EQ(why_stale(somewhere, here), "") << "no GPU was measured";
  MachineFingerprint with_gpu = somewhere;
  with_gpu.gpu = "GPU A, CUDA 13.0";
  EXPECT_NE(why_stale(with_gpu, here).find("GPU or driver ('GPU A, CUDA 13.0', here 'GPU B, CUDA 13.0')"),
            std::string::npos);
  EXPECT_EQ(why_stale(with_gpu, somewhere), "") << "the GPU is unknown here";
  EXPECT_EQ(why_stale(MachineProfile::built_in().fingerprint, here), "") << "the built-in profile is never stale";
}

TEST(Fingerprint, OfThisMachine) {
  const MachineFingerprint here =
      fingerprint_here("MPICH Version:\t4.0.2\nMPICH Release date:\tx\nMPICH Device:\tch4:ucx\n");
  EXPECT_FALSE(here.cpu.empty());
  EXPECT_EQ(here.mpi_library, "MPICH 4.0.2 ch4:ucx");
  EXPECT_EQ(short_mpi_version("Open MPI v4.1.4, package: x\nmore"), "Open MPI v4.1.4, package: x");
}

TEST(Complete, ClassWithTooFewPointsIsTheBuiltInOne) {
  Measurements measured;
  measured[{CallClass::send_node, Shape::Class::vector, Engine::split}].set(2, 2, 1e-3);
  measured[{CallClass::send_node, Shape::Class::vector, Engine::kernel}].set(2, 2, 1e-3);
  const MachineProfile profile = MachineProfile::from(measured, somewhere);
  for (int index = 0; index < grid_count; ++index)
    EXPECT_EQ(profile.grid(grid_key(index)).log_seconds, MachineProfile::built_in().grid(grid_key(index)).log_seconds);
}

TEST(BuiltIn, IsWhatTheModelComputes) {
  Measurements curves;
  fill_built_in(&curves);
  for (std::size_t form = 0; form < curves.contiguous.size(); ++form)
    for (std::size_t call_class = 0; call_class < curves.contiguous[form].size(); ++call_class)
      EXPECT_EQ(curves.contiguous[form][call_class].log_seconds,
                built_in_curves.contiguous[form][call_class].log_seconds);
  for (std::size_t index = 0; index < curves.grids.size(); ++index)
    EXPECT_EQ(curves.grids[index].log_seconds, built_in_curves.grids[index].log_seconds);
  EXPECT_EQ(curves.nests_scale, built_in_curves.nests_scale);
}

TEST(Complete, LeavesNoHole) {
  const MachineProfile profile = MachineProfile::from(some_measurements(3), somewhere);
  for (int index = 0; index < grid_count; ++index) {
    EXPECT_EQ(profile.grid(grid_key(index)).measured(), bytes_points * block_points);
    EXPECT_EQ(MachineProfile::built_in().grid(grid_key(index)).measured(), bytes_points * block_points);
  }
}

TEST(Complete, ContiguousMessagesOfBothSidesAreMeasuredOnce) {
  Measurements measured = some_measurements(3);
  measured.curve(ContiguousForm::plain, CallClass::receive_node)
      .set(6, 1e-3);  // noise; all other points were disturbed
  const MachineProfile profile = MachineProfile::from(measured, somewhere);
  for (double bytes : {64.0, 512.0, 1e5})
    EXPECT_DOUBLE_EQ(profile.contiguous_seconds(bytes, ContiguousForm::plain, CallClass::receive_node),
                     profile.contiguous_seconds(bytes, ContiguousForm::plain, CallClass::send_node));
  EXPECT_LT(profile.contiguous_seconds(512, ContiguousForm::plain, CallClass::receive_node), 1e-6);
}

TEST(Complete, WithoutShortMessagesTheBuiltInCurveIsUsed) {
  Measurements measured = some_measurements(3);
  CostCurve& curve = measured.curve(ContiguousForm::plain, CallClass::send_node);
  for (int i = 0; i < 30; ++i) curve.log_seconds[static_cast<std::size_t>(i)] = unmeasured;
  const MachineProfile profile = MachineProfile::from(measured, somewhere);
  const GridKey key{CallClass::send_node, Shape::Class::vector, Engine::split};
  EXPECT_EQ(profile.grid(key).log_seconds, MachineProfile::built_in().grid(key).log_seconds);
}

TEST(Complete, NetworkIsDerivedWithSmallerGains) {
  const MachineProfile profile = MachineProfile::from(some_measurements(3), somewhere);
  Shape shape;
  shape.kind = Shape::Class::vector;
  shape.bytes = shape.unit_bytes = 65536;
  shape.block_bytes = 8;
  shape.jump = 16;
  const auto node = profile.seconds(shape, CallKind::send, Distance::node);
  const auto network = profile.seconds(shape, CallKind::send, Distance::network);
  EXPECT_GT(node[0] / node[2], 2.5);
  EXPECT_LT(network[0] / network[2], node[0] / node[2]);
}

/// A respelled contiguous message takes a third of the time between ranks that share a cache, from 16 KiB on.
Measurements with_near_curves() {
  Measurements measured = some_measurements(3);
  for (const CallClass call_class : {CallClass::send_cache, CallClass::exchange_cache})
    for (int i = 0; i < curve_points; ++i) {
      const double plain = 1e-6 + static_cast<double>(curve_bytes_at(i)) * 1e-10;
      measured.curve(ContiguousForm::plain, call_class).set(i, plain);
      measured.curve(ContiguousForm::respelled, call_class).set(i, curve_bytes_at(i) < 16384 ? 2 * plain : plain / 3);
    }
  return measured;
}

TEST(Predictions, TheLimitOfEagerMessagesIsAStep) {
  // 1 ns per byte up to 4 KiB, 4 ns from 16 KiB on; the limit, 8 KiB, is between these two points.
  Measurements measured;
  for (const CallClass call_class : {CallClass::send_node, CallClass::send_network}) {
    for (int i = 0; i < curve_points; ++i) measured.curve(ContiguousForm::plain, call_class).set(i, 1e-7);
    for (const Engine engine : {Engine::split, Engine::unsplit, Engine::kernel})
      for (int i = 0; i < bytes_points; ++i)
        for (int k = 0; k < block_points; ++k)
          measured[{call_class, Shape::Class::vector, engine}].set(
              i, k, static_cast<double>(bytes_at(i)) * (bytes_at(i) <= 4096 ? 1e-9 : 4e-9));
  }
  const MachineProfile profile = MachineProfile::from(measured, somewhere);
  const auto forward = [&](std::int64_t bytes, Distance distance) {
    Shape shape;
    shape.kind = Shape::Class::vector;
    shape.bytes = bytes;
    shape.blocks = shape.outer_count = bytes / 32;
    shape.block_bytes = shape.unit_bytes = 32;
    shape.jump = 64;
    return profile.seconds(shape, CallKind::send, distance)[static_cast<int>(Strategy::forward)];
  };
  for (const std::int64_t bytes : {4096, 5120, 7168, 8192})
    EXPECT_NEAR(forward(bytes, Distance::node), static_cast<double>(bytes) * 1e-9, 1e-10) << bytes;
  for (const std::int64_t bytes : {8224, 10240, 16352, 16384, 20480})
    EXPECT_NEAR(forward(bytes, Distance::node), static_cast<double>(bytes) * 4e-9, 1e-9) << bytes;
  EXPECT_EQ(forward(8192, Distance::cache), forward(8192, Distance::node));
  EXPECT_GT(forward(8192, Distance::network), 1.5 * 8192e-9) << "unknown there, so interpolated";
}

TEST(CallClasses, AreNamedByKindAndDistance) {
  for (int i = 2; i < call_class_count; ++i) {
    const auto call_class = static_cast<CallClass>(i);
    EXPECT_EQ(call_class_of(kind_of(call_class), distance_of(call_class)), call_class);
    const std::string kind = is_exchange(call_class)                 ? "exchange"
                             : kind_of(call_class) == CallKind::send ? "send"
                                                                     : "receive";
    EXPECT_EQ(name(call_class), kind + "/" + std::string(name(distance_of(call_class))));
    EXPECT_EQ(i >= grid_class_count, is_near(distance_of(call_class)));
  }
}

TEST(Complete, NearRanksThatWereNotMeasuredGainNothing) {
  const MachineProfile profile = MachineProfile::from(with_near_curves(), somewhere);
  for (const double bytes : {1e3, 1e5, 1e7}) {
    const double node = profile.contiguous_seconds(bytes, ContiguousForm::plain, CallClass::send_node);
    for (const ContiguousForm form : {ContiguousForm::plain, ContiguousForm::respelled})
      EXPECT_EQ(profile.contiguous_seconds(bytes, form, CallClass::send_domain), node);
  }
  // Both endpoints of a message have the curves of one experiment.
  EXPECT_EQ(profile.contiguous_seconds(1e5, ContiguousForm::respelled, CallClass::receive_cache),
            profile.contiguous_seconds(1e5, ContiguousForm::respelled, CallClass::send_cache));
  EXPECT_NEAR(profile.contiguous_seconds(65536, ContiguousForm::plain, CallClass::send_cache) /
                  profile.contiguous_seconds(65536, ContiguousForm::respelled, CallClass::send_cache),
              3, 1e-3);
}

TEST_F(ProfileFile, NearCurvesAreKeptAndTheLeastSizeIsFoundWithoutDecoding) {
  MachineProfile profile = MachineProfile::from(with_near_curves(), somewhere);
  ASSERT_TRUE(profile.save(path_));
  EXPECT_EQ(respell_contiguous_from(path_), 0);
  profile.respell_contiguous_from = 15000;
  ASSERT_TRUE(profile.save(path_));
  EXPECT_EQ(respell_contiguous_from(path_), 15000);
  const auto loaded = MachineProfile::load(path_);
  ASSERT_TRUE(loaded) << loaded.error().text;
  EXPECT_EQ(loaded->respell_contiguous_from, 15000);
  for (const double bytes : {1e3, 1e5, 1e7})
    for (const ContiguousForm form : {ContiguousForm::plain, ContiguousForm::respelled})
      EXPECT_NEAR(loaded->contiguous_seconds(bytes, form, CallClass::exchange_cache) /
                      profile.contiguous_seconds(bytes, form, CallClass::exchange_cache),
                  1, 1e-3);
  EXPECT_EQ(respell_contiguous_from(path_ + ".missing"), 0);
  EXPECT_EQ(respell_contiguous_from(""), 0);
}

}  // namespace
}  // namespace bestride::inline perfmodel
