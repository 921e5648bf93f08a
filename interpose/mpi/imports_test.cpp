// SPDX-License-Identifier: Apache-2.0
#include "interpose/mpi/imports.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace bestride::inline interpose {
namespace {

constexpr pid_t replaced = -7;
void* original = nullptr;
pid_t replacement() { return replaced; }
pid_t calls_original() { return reinterpret_cast<pid_t (*)()>(original)() + 1; }

/// A module whose function returns getppid().
class Imports : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    original = nullptr;
    object_ = dlopen(GetParam(), RTLD_LAZY | RTLD_LOCAL);
    ASSERT_NE(object_, nullptr) << dlerror();
    call_ = reinterpret_cast<pid_t (*)()>(dlsym(object_, "parent_by_import"));
    ASSERT_NE(call_, nullptr);
  }
  void TearDown() override {
    if (object_) dlclose(object_);
  }
  void* object_ = nullptr;
  pid_t (*call_)() = nullptr;
};

TEST_P(Imports, ReplacesTheFunctionInThatObjectOnly) {
  const void* const inside = reinterpret_cast<const void*>(call_);
  void* const before = replace_import(inside, "getppid", reinterpret_cast<void*>(&replacement), &original);
  ASSERT_NE(before, nullptr);
  EXPECT_EQ(before, original);
  EXPECT_EQ(call_(), replaced);
  EXPECT_EQ(call_(), replaced);
  EXPECT_NE(getppid(), replaced);
  // What the loader made read-only is so again: a second replacement must make it writable itself.
  void* second = nullptr;
  EXPECT_EQ(replace_import(inside, "getppid", original, &second), reinterpret_cast<void*>(&replacement));
  EXPECT_EQ(call_(), getppid());
}

TEST_P(Imports, TheReplacementMayCallTheOriginal) {
  ASSERT_NE(replace_import(reinterpret_cast<const void*>(call_), "getppid", reinterpret_cast<void*>(&calls_original),
                           &original),
            nullptr);
  EXPECT_EQ(call_(), getppid() + 1);
}

TEST_P(Imports, AlsoAfterACall) {
  EXPECT_EQ(call_(), getppid());
  ASSERT_NE(
      replace_import(reinterpret_cast<const void*>(call_), "getppid", reinterpret_cast<void*>(&replacement), &original),
      nullptr);
  EXPECT_EQ(call_(), replaced);
}

TEST_P(Imports, ChangesNothingIfTheFunctionIsNotImported) {
  EXPECT_EQ(
      replace_import(reinterpret_cast<const void*>(call_), "getpid", reinterpret_cast<void*>(&replacement), &original),
      nullptr);
  EXPECT_EQ(original, nullptr);
  EXPECT_EQ(call_(), getppid());
  int local = 0;
  EXPECT_EQ(replace_import(&local, "getppid", reinterpret_cast<void*>(&replacement), &original), nullptr);
}

TEST_P(Imports, ReplacesTheFunctionInAllObjectsButItsOwn) {
  void* const other = dlopen(GetParam() == std::string(LAZY_MODULE) ? NOW_MODULE : LAZY_MODULE, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(other, nullptr) << dlerror();
  const auto call_other = reinterpret_cast<pid_t (*)()>(dlsym(other, "parent_by_import"));
  ASSERT_NE(call_other, nullptr);
  replace_imports("getppid", reinterpret_cast<void*>(&replacement));
  EXPECT_EQ(call_(), replaced);
  EXPECT_EQ(call_other(), replaced);
  EXPECT_NE(getppid(), replaced);
  replace_imports("getppid", reinterpret_cast<void*>(&getppid));
  EXPECT_EQ(call_(), getppid());
  EXPECT_EQ(call_other(), getppid());
  dlclose(other);
}

INSTANTIATE_TEST_SUITE_P(Bindings, Imports, testing::Values(LAZY_MODULE, NOW_MODULE, ADDRESS_MODULE));

}  // namespace
}  // namespace bestride::inline interpose
