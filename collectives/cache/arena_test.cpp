// SPDX-License-Identifier: Apache-2.0
#include "collectives/cache/arena.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

namespace bestride {
namespace {

constexpr std::int64_t page = 4096;

TEST(Arena, NoneAndTooSmallAreNoMemory) {
  Arena none;
  EXPECT_FALSE(none.reserve(0, 1));
  std::vector<std::byte> memory(100);
  Arena arena(memory.data(), 100);
  EXPECT_TRUE(arena.reserve(40, 60));
  EXPECT_FALSE(arena.reserve(41, 60));
  EXPECT_EQ(arena.at(40), memory.data() + 40);
}

TEST(Arena, TakesPagesOfAFileBeforeTheyAreWritten) {
  const int file = memfd_create("arena", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, 64 * page), 0);
  void* memory = mmap(nullptr, 64 * page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(memory, MAP_FAILED);
  Arena arena(static_cast<std::byte*>(memory), 64 * page, file);
  const auto pages = [file] {
    struct stat status;
    fstat(file, &status);
    return status.st_blocks * 512 / page;
  };
  EXPECT_EQ(pages(), 0);
  EXPECT_TRUE(arena.reserve(0, 10 * page));
  EXPECT_EQ(pages(), 10);
  EXPECT_TRUE(arena.reserve(2 * page, 3 * page));
  EXPECT_EQ(pages(), 10);
  munmap(memory, 64 * page);
  close(file);
}

TEST(Arena, PagesThatCantBeHadAreNoMemory) {
  const int file = memfd_create("arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_GE(file, 0);
  ASSERT_EQ(ftruncate(file, 4 * page), 0);
  ASSERT_EQ(fcntl(file, F_ADD_SEALS, F_SEAL_GROW), 0);  // what lies behind the end can't be had
  void* memory = mmap(nullptr, 64 * page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(memory, MAP_FAILED);
  Arena arena(static_cast<std::byte*>(memory), 64 * page, file);
  testing::internal::CaptureStderr();
  EXPECT_FALSE(arena.reserve(0, 10 * page));
  EXPECT_FALSE(arena.reserve(0, 20 * page));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("no memory to keep results"), std::string::npos);
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
  EXPECT_TRUE(arena.reserve(0, 4 * page));
  munmap(memory, 64 * page);
  close(file);
}

}  // namespace
}  // namespace bestride
