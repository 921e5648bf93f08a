// SPDX-License-Identifier: Apache-2.0
#include "base/input_file.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

namespace bestride {
namespace {

class InputFiles : public testing::Test {
 protected:
  InputFiles() { std::filesystem::create_directory(folder_); }
  ~InputFiles() override { std::filesystem::remove_all(folder_); }
  std::string path(const char* name) const { return folder_ + "/" + name; }
  std::string write(const char* name, const std::string& text) const {
    std::FILE* file = std::fopen(path(name).c_str(), "w");
    std::fwrite(text.data(), 1, text.size(), file);
    std::fclose(file);
    return path(name);
  }
  static std::string refusal(const std::string& path, std::size_t most = 4096) {
    const Result<FileText> text = read_file_text(path, most);
    return text ? "" : text.error().text;
  }
  const std::string folder_ = testing::TempDir() + "bestride_input_files_" + std::to_string(::getpid());
};

TEST_F(InputFiles, AreReadCompletely) {
  for (const std::string& text : {std::string(), std::string("a\0b\n", 4), std::string(4096, 'x')}) {
    const Result<FileText> got = read_file_text(write("text", text), 4096);
    ASSERT_TRUE(got);
    EXPECT_EQ(std::string(got->begin(), got->end()), text);
  }
}

/// None of these waits, and none reads without end.
TEST_F(InputFiles, OnlyRegularFilesOfBoundedLength) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(refusal(path("fifo")), "is a FIFO, not a file");
  EXPECT_EQ(refusal("/dev/zero"), "is a device, not a file");
  EXPECT_EQ(refusal(folder_), "is a directory, not a file");
  EXPECT_EQ(refusal(path("missing")), std::strerror(ENOENT));
  EXPECT_EQ(refusal(write("long", std::string(4097, 'x'))), "has more than 4 KiB");
  EXPECT_EQ(::truncate(path("long").c_str(), off_t{1} << 40), 0);
  EXPECT_EQ(refusal(path("long"), 8 << 20), "has more than 8 MiB");
}

TEST_F(InputFiles, WhatIsNoFile) {
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_STREQ(not_a_file(path("fifo")), "a FIFO");
  EXPECT_STREQ(not_a_file(folder_), "a directory");
  EXPECT_STREQ(not_a_file("/dev/zero"), "a device");
  EXPECT_STREQ(not_a_file(write("text", "x")), "");
  EXPECT_STREQ(not_a_file(path("missing")), "");
  EXPECT_STREQ(not_a_file(""), "");
}

}  // namespace
}  // namespace bestride
