// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the tests of hwloc: its environment variables, unset before and after each test, and a library that is kept
// open.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace bestride::test {

class HwlocEnvironment : public testing::Test {
 protected:
  HwlocEnvironment() { clear(); }
  ~HwlocEnvironment() override { clear(); }

  void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }

 private:
  static void clear() {
    for (const char* name : {"FAKE_HWLOC", "HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT"}) unsetenv(name);
  }
};

class Library {
 public:
  explicit Library(const char* path) : handle_(dlopen(path, RTLD_LAZY | RTLD_LOCAL)) {}
  ~Library() {
    if (handle_) dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// Null if it can't be loaded.
  void* handle() const noexcept { return handle_; }

 private:
  void* handle_;
};

}  // namespace bestride::test
