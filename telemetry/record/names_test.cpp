// SPDX-License-Identifier: Apache-2.0
// Names in a record that did not fit, or that could do harm to a terminal or a reader.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "telemetry/record/printable.hpp"
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

TEST(NamesOfOthers, ShowEveryCharacter) {
  EXPECT_EQ(printable("halo\x1b[31m\n\x7f"), "halo?[31m??");
  EXPECT_EQ(printable("a\nb\t", '\n'), "a\nb?");
  // Control characters of 8 bits, as UTF-8 and as bytes of their own.
  EXPECT_EQ(printable("\u009b31m \x9b[31m \x80"), "?31m ?[31m ?");
  for (const char* const hidden : {"\u202e", "\u202a", "\u2066", "\u2069", "\u200b", "\u200f", "\u061c", "\u00ad",
                                   "\ufeff", "\u2028", "\u2060", "\u180e", "\U000e0041", "\u3164"})
    EXPECT_EQ(printable(std::string("ab") + hidden + "c"), "ab?c");
  const std::string visible = "caf\u00e9 \u20ac \u65e5\u672c \u05e9\u05dc \U0001f600 ~";
  EXPECT_EQ(printable(visible), visible);
  EXPECT_EQ(printable("caf\xe9 \xf0\x9f"), "caf\xe9 \xf0?") << "other encodings, cut characters";
}

TEST(NamesOfOthers, OfCommunicatorsAndPrograms) {
  SampleRecord sample;
  begin_record(*sample, getpid(), own_start_time(), 0, 1);
  char name[] = "/tmp/bestride-names-XXXXXX";
  const std::string path = std::string(mkdtemp(name)) + "/1.record";
  const std::string hidden = "rows\u202ecba";
  std::memcpy(sample->communicators[0].name, hidden.c_str(), hidden.size() + 1);
  std::memcpy(sample->header.executable, hidden.c_str(), hidden.size() + 1);
  std::memcpy(sample->header.host, hidden.c_str(), hidden.size() + 1);
  write_file(path, sample.bytes());
  const auto rank = read_record(path);
  ASSERT_TRUE(rank);
  EXPECT_EQ(rank->communicators.at(0).name, "rows?cba");
  EXPECT_EQ(rank->executable, "rows?cba");
  EXPECT_EQ(rank->host, "rows?cba");
  std::filesystem::remove_all(std::filesystem::path(path).parent_path());
}

}  // namespace
}  // namespace bestride::inline telemetry
