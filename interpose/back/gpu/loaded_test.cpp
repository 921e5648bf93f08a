// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/gpu/loaded.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <memory>

// FIRST_LIBRARY, SECOND_LIBRARY: two that nothing has loaded, without needs of their own.

namespace bestride {
namespace {

struct Close {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, Close>;

Library load(const char* path) { return Library(dlopen(path, RTLD_NOW | RTLD_LOCAL)); }
bool is_loaded(const char* path) { return Library(dlopen(path, RTLD_NOW | RTLD_NOLOAD)) != nullptr; }

TEST(Loaded, UntilThereIsAnObjectToLookBehindSomethingMayHaveBeen) { EXPECT_TRUE(loaded_since()); }

TEST(Loaded, WhatTheCallDidNotLoadIsNotHeld) {
  const Library of_the_application = load(FIRST_LIBRARY);
  ASSERT_TRUE(of_the_application);
  const LoadsOfOneCall nothing;
  EXPECT_EQ(nothing.hold_last(), nullptr);
}

TEST(Loaded, WhatTheApplicationLoadedIsUnloadedAsBefore) {
  {
    const Library of_the_application = load(FIRST_LIBRARY);
    LoadsOfOneCall().hold_last();
    ASSERT_TRUE(is_loaded(FIRST_LIBRARY));
  }
  EXPECT_FALSE(is_loaded(FIRST_LIBRARY));
}

TEST(Loaded, WhatTheCallLoadedIsHeldAndWhatComesAfterItIsSeen) {
  const LoadsOfOneCall loads;
  Library of_the_call = load(FIRST_LIBRARY);
  const link_map* last = loads.hold_last();
  ASSERT_NE(last, nullptr);
  of_the_call.reset();
  ASSERT_TRUE(is_loaded(FIRST_LIBRARY));
  const link_map* const before = last_object.exchange(last);
  EXPECT_FALSE(loaded_since());
  for (int i = 0; i < 3; ++i) {
    Library plugin = load(SECOND_LIBRARY);
    ASSERT_TRUE(plugin);
    EXPECT_TRUE(loaded_since());
    plugin.reset();
    EXPECT_FALSE(loaded_since());
  }
  last_object.store(before);
}

}  // namespace
}  // namespace bestride
