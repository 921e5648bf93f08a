// SPDX-License-Identifier: Apache-2.0
#include "base/own_stack.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstring>
#include <stdexcept>

namespace bestride {
namespace {

/// Touches 512 KiB of stack.
[[gnu::noinline]] int take_stack(int seed) {
  volatile char bytes[512 * 1024];
  for (std::size_t i = 0; i < sizeof bytes; i += 1024) bytes[i] = static_cast<char>(seed);
  return bytes[sizeof bytes - 1024];
}

TEST(OwnStack, HasRoomInASmallThread) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 32 * 1024), 0);
  ASSERT_EQ(pthread_attr_setguardsize(&attributes, 1 << 20), 0);
  int result = 0;
  pthread_t thread;
  const auto body = [](void* to) -> void* {
    on_own_stack([&] { *static_cast<int*>(to) = take_stack(7); });
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, body, &result), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(result, 7);
}

/// A sanitizer must follow the thread from stack to stack.
TEST(OwnStack, AgainAndAgain) {
  int sum = 0;
  for (int i = 0; i < 500; ++i)
    on_own_stack([&] {
      sum += take_stack(1);
      if (i % 10 == 0) on_own_stack([&] { sum += take_stack(2); });
    });
  EXPECT_EQ(sum, 500 + 2 * 50);
}

TEST(OwnStack, LetsExceptionsBeCaughtInside) {
  bool caught = false;
  on_own_stack([&] {
    try {
      throw std::runtime_error("inside");
    } catch (const std::exception&) {
      caught = true;
    }
  });
  EXPECT_TRUE(caught);
}

}  // namespace
}  // namespace bestride
