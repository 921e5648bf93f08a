// SPDX-License-Identifier: Apache-2.0
#include "collectives/cache/arena.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

namespace bestride::inline collectives {
namespace {

constexpr std::int64_t page = 4096, chunk = Arena::chunk;

TEST(Arena, TooSmallArenaHoldsNothing) {
  Arena none;
  EXPECT_FALSE(none.reserve(0, 1));
  std::vector<std::byte> memory(100);
  Arena arena(memory.data(), 100);
  EXPECT_TRUE(arena.reserve(40, 60));
  EXPECT_FALSE(arena.reserve(41, 60));
  EXPECT_EQ(arena.at(40), memory.data() + 40);
}

/// A memfd of some size, mapped at a length that may be greater.
struct File {
  File(std::int64_t bytes, std::int64_t mapped)
      : length(static_cast<std::size_t>(mapped)), number(memfd_create("arena", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    if (ftruncate(number, bytes) != 0) std::abort();
    void* place = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, number, 0);
    if (place == MAP_FAILED) std::abort();
    memory = static_cast<std::byte*>(place);
  }
  ~File() {
    munmap(memory, length);
    close(number);
  }
  std::int64_t pages() const {
    struct stat status;
    fstat(number, &status);
    return status.st_blocks * 512 / page;
  }
  std::size_t length;
  int number;
  std::byte* memory;
};

TEST(Arena, ReservesPagesBeforeWriting) {
  const std::int64_t bytes = 10 * chunk + page;
  const File file(bytes, bytes);
  Arena arena(file.memory, bytes, file.number);
  EXPECT_EQ(file.pages(), 0);
  EXPECT_TRUE(arena.reserve(3 * chunk, chunk));
  EXPECT_EQ(file.pages(), chunk / page);
  EXPECT_TRUE(arena.reserve(3 * chunk + 5, 10));
  EXPECT_EQ(file.pages(), chunk / page);
  EXPECT_TRUE(arena.reserve(3 * chunk - 1, 2));
  EXPECT_EQ(file.pages(), 2 * chunk / page);
  EXPECT_TRUE(arena.reserve(bytes - 1, 1));
  EXPECT_EQ(file.pages(), 2 * chunk / page + 1);
}

TEST(Arena, FailsIfPagesCantBeReserved) {
  const File file(chunk, 3 * chunk);
  ASSERT_EQ(fcntl(file.number, F_ADD_SEALS, F_SEAL_GROW), 0);  // pages behind the end can't be allocated
  Arena arena(file.memory, 3 * chunk, file.number);
  testing::internal::CaptureStderr();
  EXPECT_FALSE(arena.reserve(0, chunk + 1));
  EXPECT_FALSE(arena.reserve(2 * chunk, 1));
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("no memory to keep results"), std::string::npos);
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
  EXPECT_TRUE(arena.reserve(0, chunk));
}

}  // namespace
}  // namespace bestride::inline collectives
