// SPDX-License-Identifier: Apache-2.0
#include "interpose/device/library_loads.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <memory>

// FIRST_LIBRARY, SECOND_LIBRARY: two libraries without dependencies that no other code has loaded.

namespace bestride::inline interpose {
namespace {

struct Close {
  void operator()(void* library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, Close>;

Library load(const char* path) { return Library(dlopen(path, RTLD_NOW | RTLD_LOCAL)); }
bool is_loaded(const char* path) { return Library(dlopen(path, RTLD_NOW | RTLD_NOLOAD)) != nullptr; }

TEST(Loaded, WithoutABaseObjectAnythingMayBeNew) { EXPECT_TRUE(library_loaded_since_init()); }

TEST(Loaded, DoesNotHoldOtherLibraries) {
  const Library of_the_application = load(FIRST_LIBRARY);
  ASSERT_TRUE(of_the_application);
  const LibraryLoadScope nothing;
  EXPECT_EQ(nothing.hold_last_object(), nullptr);
}

TEST(Loaded, ApplicationCanUnloadItsLibraries) {
  {
    const Library of_the_application = load(FIRST_LIBRARY);
    LibraryLoadScope().hold_last_object();
    ASSERT_TRUE(is_loaded(FIRST_LIBRARY));
  }
  EXPECT_FALSE(is_loaded(FIRST_LIBRARY));
}

TEST(Loaded, HoldsNewLibraryAndDetectsLaterOnes) {
  const LibraryLoadScope loads;
  Library of_the_call = load(FIRST_LIBRARY);
  const link_map* last = loads.hold_last_object();
  ASSERT_NE(last, nullptr);
  of_the_call.reset();
  ASSERT_TRUE(is_loaded(FIRST_LIBRARY));
  const link_map* const before = last_link_map.exchange(last);
  EXPECT_FALSE(library_loaded_since_init());
  for (int i = 0; i < 3; ++i) {
    Library plugin = load(SECOND_LIBRARY);
    ASSERT_TRUE(plugin);
    EXPECT_TRUE(library_loaded_since_init());
    plugin.reset();
    EXPECT_FALSE(library_loaded_since_init());
  }
  last_link_map.store(before);
}

}  // namespace
}  // namespace bestride::inline interpose
