// SPDX-License-Identifier: Apache-2.0
#include "collectives/core/window.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bestride::inline collectives {
namespace {

TEST(Window, IsSharedByKey) {
  Window window = Window::create(10000);
  ASSERT_NE(window.data(), nullptr);
  window.data()[9999] = std::byte{0};
  const WindowKey key = window.key();
  const pid_t child = fork();
  if (child == 0) {
    Window opened = Window::open(key);
    if (!opened.data()) _exit(1);
    opened.data()[9999] = std::byte{7};
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(window.data()[9999], std::byte{7});
}

TEST(Window, WrongKeyDoesNotOpenIt) {
  Window window = Window::create(10000);
  WindowKey key = window.key();
  ++key.magic;
  EXPECT_EQ(Window::open(key).data(), nullptr);
  key = window.key();
  window.close_descriptor();
  EXPECT_EQ(Window::open(key).data(), nullptr);
  EXPECT_EQ(Window::open({}).data(), nullptr);
}

TEST(Window, PagesOnDemandAreShared) {
  Window window = Window::create(std::size_t{1} << 30, Window::Pages::on_demand);
  ASSERT_NE(window.data(), nullptr);
  Window again = Window::open(window.key(), Window::Pages::on_demand);
  ASSERT_NE(again.data(), nullptr);
  EXPECT_GE(again.descriptor(), 0);
  again.data()[123456789] = std::byte{5};
  EXPECT_EQ(window.data()[123456789], std::byte{5});
}

TEST(Window, FailsBeyondTheMemoryOfTheMachine) { EXPECT_EQ(Window::create(std::size_t{1} << 50).data(), nullptr); }

}  // namespace
}  // namespace bestride::inline collectives
