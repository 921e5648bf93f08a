// SPDX-License-Identifier: Apache-2.0
#pragma once
// SysTree: a directory with the structure of /sys, for tests; removed by the destructor.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace bestride::test {

class SysTree {
 public:
  SysTree() {
    std::string name = std::filesystem::temp_directory_path() / "bestride-sys-";
    name.append(6, 'X');  // replaced by mkdtemp
    if (!mkdtemp(name.data())) std::abort();
    root_ = name;
  }
  ~SysTree() { std::filesystem::remove_all(root_); }
  SysTree(const SysTree&) = delete;
  SysTree& operator=(const SysTree&) = delete;

  const std::string& root() const noexcept { return root_; }
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = std::filesystem::path(root_) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  /// The target need not exist.
  void link(const std::string& path, const std::string& target) {
    const std::filesystem::path file = std::filesystem::path(root_) / path;
    std::filesystem::create_directories(file.parent_path());
    std::filesystem::create_symlink(target, file);
  }

 private:
  std::string root_;
};

}  // namespace bestride::test
