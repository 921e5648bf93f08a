// SPDX-License-Identifier: Apache-2.0
#include "base/replace_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace bestride {
namespace {

class ReplaceFile : public testing::Test {
 protected:
  ReplaceFile() {
    char name[] = "/tmp/bestride-replace-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~ReplaceFile() override { std::filesystem::remove_all(folder_); }
  static std::string content(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::string folder_;
};

TEST_F(ReplaceFile, TheNewContentTakesThePlaceOfTheOld) {
  const std::string path = folder_ + "/profile";
  for (const char* text : {"old", "new"}) {
    EXPECT_TRUE(replace_file(path, text));
    EXPECT_EQ(content(path), text);
  }
  EXPECT_EQ(files(), 1u);
}

/// As of a process of another host with the same pid, which is about to write.
TEST_F(ReplaceFile, ATemporaryFileOfAnotherProcessIsLeftAlone) {
  const std::string path = folder_ + "/profile", other = path + "." + std::to_string(getpid()) + ".tmp";
  std::ofstream(other) << "half";
  EXPECT_EQ(why_not_writable(path), "");
  EXPECT_TRUE(replace_file(path, "new"));
  EXPECT_EQ(content(path), "new");
  EXPECT_EQ(content(other), "half");
  EXPECT_EQ(files(), 2u);
}

TEST_F(ReplaceFile, AFolderThatDoesNotExist) {
  const auto written = replace_file(folder_ + "/none/profile", "new");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().text, "can't write '" + folder_ + "/none/profile': No such file or directory");
}

}  // namespace
}  // namespace bestride
