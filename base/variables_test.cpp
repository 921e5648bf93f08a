// SPDX-License-Identifier: Apache-2.0
#include "base/variables.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace bestride {
namespace {

TEST(ParseSize, AcceptsSuffixesAndRejectsOtherText) {
  bool ok = false;
  EXPECT_EQ(parse_size("64K", &ok), 65536);
  EXPECT_TRUE(ok);
  EXPECT_EQ(parse_size("3g", &ok), std::int64_t{3} << 30);
  for (const char* bad : {"", "-1", "K", "1KB", "9999999999999999999", "9223372036854775807K", "1 "}) {
    parse_size(bad, &ok);
    EXPECT_FALSE(ok) << bad;
  }
}

TEST(ParseFlag, AcceptsUpperAndLowerCase) {
  bool ok = false;
  for (const char* yes : {"1", "on", "Yes", "TRUE"}) EXPECT_TRUE(parse_flag(yes, &ok) && ok) << yes;
  for (const char* no : {"0", "OFF", "no", "False"}) EXPECT_TRUE(!parse_flag(no, &ok) && ok) << no;
  for (const char* bad : {"", "2", "y", "on "}) EXPECT_FALSE(parse_flag(bad, &ok) || ok) << bad;
}

/// What is read before the files are has no effect there, and is not shown as if it had.
TEST(Settings, VariablesThatFilesCanNotSet) {
  const std::string path = testing::TempDir() + "bestride_settings_only_" + std::to_string(::getpid());
  std::FILE* file = std::fopen(path.c_str(), "w");
  std::fputs("BESTRIDE_LOG=info\nBESTRIDE_YIELD=often\n", file);
  std::fclose(file);
  setenv("BESTRIDE_CONFIG", path.c_str(), 1);
  const Settings settings = Settings::read();
  unsetenv("BESTRIDE_CONFIG");
  ::unlink(path.c_str());
  EXPECT_EQ(settings.text("BESTRIDE_LOG"), "warn");
  EXPECT_EQ(settings.text("BESTRIDE_YIELD"), "auto");
  ASSERT_EQ(settings.problems().size(), 2u);
  EXPECT_EQ(settings.problems()[0], "BESTRIDE_LOG in " + path + " has no effect; set it in the environment");
  EXPECT_EQ(settings.problems()[1], "BESTRIDE_YIELD='often' is not one of auto|on|off; 'auto' is used");
}

TEST(Settings, EnvironmentOverridesFileAndInvalidValueKeepsDefault) {
  const std::string path = testing::TempDir() + "bestride_settings_test";
  std::FILE* file = std::fopen(path.c_str(), "w");
  std::fputs("# comment\nBESTRIDE_PACK_LIMIT = 1M # why\nBESTRIDE_STRATEGY=pack\nnonsense\n", file);
  std::fclose(file);
  setenv("BESTRIDE_CONFIG", path.c_str(), 1);
  setenv("BESTRIDE_STRATEGY", "respell", 1);
  setenv("BESTRIDE_CACHE_BYTES", "plenty", 1);
  const Settings settings = Settings::read();
  EXPECT_EQ(settings.size("BESTRIDE_PACK_LIMIT"), 1 << 20);
  EXPECT_EQ(settings.value("BESTRIDE_PACK_LIMIT").source, VariableSource::config_file);
  EXPECT_EQ(settings.text("BESTRIDE_STRATEGY"), "respell");
  EXPECT_EQ(settings.size("BESTRIDE_CACHE_BYTES"), 1 << 30);
  EXPECT_EQ(std::count(settings.problems().begin(), settings.problems().end(),
                       "BESTRIDE_CACHE_BYTES='plenty' is not a size such as 64K; '1G' is used"),
            1);
  unsetenv("BESTRIDE_CONFIG");
  unsetenv("BESTRIDE_STRATEGY");
  unsetenv("BESTRIDE_CACHE_BYTES");
}

/// Each choice that BESTRIDE_FORCE names has a value of its own; a bad one keeps its default and is said.
TEST(Settings, ForcedChoices) {
  setenv("BESTRIDE_FORCE", "kernel=word, isa=avx2,streaming_from=64K,fail=type+plan", 1);
  const Settings settings = Settings::read();
  EXPECT_EQ(settings.text("BESTRIDE_FORCE=kernel"), "word");
  EXPECT_EQ(settings.text("BESTRIDE_FORCE=isa"), "avx2");
  EXPECT_EQ(settings.text("BESTRIDE_FORCE=streaming_from"), "64K");
  EXPECT_EQ(settings.text("BESTRIDE_FORCE=fail"), "type+plan");
  EXPECT_EQ(settings.text("BESTRIDE_FORCE=gpu_graphs"), "auto");
  EXPECT_TRUE(settings.problems().empty());

  setenv("BESTRIDE_FORCE", "kernel=wrod,speed=9,isa,isa=avx512", 1);
  const Settings bad = Settings::read();
  EXPECT_EQ(bad.text("BESTRIDE_FORCE=kernel"), "automatic");
  EXPECT_EQ(bad.text("BESTRIDE_FORCE=isa"), "avx512");
  ASSERT_EQ(bad.problems().size(), 3u);
  EXPECT_EQ(bad.problems()[0].rfind("BESTRIDE_FORCE=kernel='wrod' is not one of automatic|", 0), 0u);
  for (const std::size_t i : {1, 2})
    EXPECT_EQ(bad.problems()[i], std::string("BESTRIDE_FORCE: '") + (i == 1 ? "speed=9" : "isa") +
                                     "' is not name=value with a known name ('bestride info --env' lists them); it is "
                                     "ignored");
  unsetenv("BESTRIDE_FORCE");
}

/// Anything but a file is reported, and not read.
TEST(Settings, ConfigurationThatIsNoFile) {
  const std::string fifo = testing::TempDir() + "bestride_settings_fifo_" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {fifo, std::string("/dev/zero"), testing::TempDir(), std::string("/nowhere")}) {
    setenv("BESTRIDE_CONFIG", path.c_str(), 1);
    const Settings settings = Settings::read();
    ASSERT_EQ(settings.problems().size(), 1u) << path;
    EXPECT_EQ(settings.problems()[0].find("can't read the configuration file '" + path + "': "), 0u);
    EXPECT_NE(settings.problems()[0].find("; it is ignored (set BESTRIDE_CONFIG to a file of NAME=value lines)"),
              std::string::npos);
  }
  unsetenv("BESTRIDE_CONFIG");
  ::unlink(fifo.c_str());
}

TEST(UnknownVariables, SuggestsNearestName) {
  setenv("BESTRIDE_REPROT", "1", 1);
  setenv("BESTRIDE_SOMETHING_ELSE_ALTOGETHER", "1", 1);
  bool near = false, far = false;
  for (const UnknownVariable& unknown : unknown_variables()) {
    near |= unknown.name == "BESTRIDE_REPROT" && unknown.nearest == "BESTRIDE_REPORT";
    far |= unknown.name == "BESTRIDE_SOMETHING_ELSE_ALTOGETHER" && unknown.nearest.empty();
  }
  EXPECT_TRUE(near);
  EXPECT_TRUE(far);
  unsetenv("BESTRIDE_REPROT");
  unsetenv("BESTRIDE_SOMETHING_ELSE_ALTOGETHER");
}

TEST(Table, DefaultsAreValid) {
  for (const Variable& variable : variables()) {
    EXPECT_EQ(std::string(variable.name).rfind("BESTRIDE_", 0), 0u);
    if (variable.type == VariableType::choice) {
      EXPECT_NE((std::string("|") + variable.choices + "|").find(std::string("|") + variable.default_value + "|"),
                std::string::npos);
    }
  }
}

}  // namespace
}  // namespace bestride
