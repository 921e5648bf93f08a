// SPDX-License-Identifier: Apache-2.0
// Names that did not fit in a record.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "telemetry/record/process_state.hpp"
#include "telemetry/record/reader.hpp"
#include "telemetry/record/sample_record.hpp"

namespace bestride::inline telemetry {
namespace {

TEST(CutNames, EndWithAWholeCharacter) {
  SampleRecord sample;
  begin_record(*sample, getpid(), own_start_time(), 0, 1);
  char name[] = "/tmp/bestride-names-XXXXXX";
  const std::string path = std::string(mkdtemp(name)) + "/1.record";
  auto& field = sample->communicators[0].name;
  constexpr std::size_t room = sizeof field - 1;
  for (const std::string character : {"a", "\u00e9", "\u20ac", "\U0001f600"})
    for (std::size_t before = 0; before < 4; ++before) {
      std::string given(room - before, 'n');
      while (given.size() < room + 4) given += character;
      std::memcpy(field, given.data(), room);
      field[room] = '\0';
      write_file(path, sample.bytes());
      const auto rank = read_record(path);
      ASSERT_TRUE(rank);
      const std::size_t whole = before / character.size() * character.size();
      EXPECT_EQ(rank->communicators.at(0).name, given.substr(0, room - before + whole));
    }
  std::filesystem::remove_all(std::filesystem::path(path).parent_path());
}

}  // namespace
}  // namespace bestride::inline telemetry
