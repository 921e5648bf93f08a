// SPDX-License-Identifier: Apache-2.0
#include "cli/common/elf_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>

extern "C" __attribute__((visibility("default"), used)) int MPI_Only_in_the_elf_test() { return 0; }

namespace bestride::inline cli {
namespace {

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string written(const std::string& bytes) {
  const std::string path = testing::TempDir() + "bestride_elf_file_test";
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

TEST(ElfFile, ReadsThisProgram) {
  const auto file = ElfFile::read("/proc/self/exe");
  ASSERT_TRUE(file) << file.error().text;
  EXPECT_NE(file->interpreter.find("ld"), std::string::npos);
  EXPECT_TRUE(std::any_of(file->needed.begin(), file->needed.end(),
                          [](const auto& name) { return name.starts_with("libc.so"); }));
  EXPECT_TRUE(file->defines.contains("MPI_Only_in_the_elf_test"));
  EXPECT_FALSE(file->imports.contains("MPI_Only_in_the_elf_test"));
}

TEST(ElfFile, RejectsOtherFiles) {
  EXPECT_NE(ElfFile::read("/nonexistent").error().text.find("No such file"), std::string::npos);
  EXPECT_NE(ElfFile::read("/tmp").error().text.find("directory"), std::string::npos);
  for (const char* text : {"", "\177ELF", "#!/bin/sh\n"})
    EXPECT_NE(ElfFile::read(written(text)).error().text.find("not an ELF"), std::string::npos);
  std::string other = contents("/proc/self/exe").substr(0, 4096);
  other[4] = 1;  // 32-bit
  EXPECT_NE(ElfFile::read(written(other)).error().text.find("32-bit"), std::string::npos);
}

/// Meaningful under AddressSanitizer: a broken file may give wrong results, but must not cause reads outside of it.
TEST(ElfFile, SurvivesDamagedFiles) {
  std::string good = contents("/proc/self/exe");
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    std::string bad = good.substr(0, round % 2 ? good.size() : random() % good.size());
    for (int edit = 0; edit < 16 && bad.size() > 16; ++edit)
      bad[16 + random() % std::min<std::size_t>(bad.size() - 16, 2048)] = static_cast<char>(random());
    const auto file = ElfFile::read(written(bad));
    EXPECT_TRUE(file || !file.error().text.empty());
  }
}

}  // namespace
}  // namespace bestride::inline cli
