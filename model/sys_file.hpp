// SPDX-License-Identifier: Apache-2.0
#pragma once
// Short files of /sys. Both return "" or nothing if there is none, or it can't be read (some files of a device that is down can't).
#include <string>
#include <vector>

namespace bestride {

/// The first line, without its end; at most 4 KiB. May throw std::bad_alloc.
std::string sys_line(const std::string& path);
/// The names in a folder, sorted, without "." and "..". May throw std::bad_alloc.
std::vector<std::string> sys_names(const std::string& folder);
/// Whether there is anything of that name; a link counts wherever it leads.
bool sys_has(const std::string& path) noexcept;
/// The last component of what a link leads to.
std::string sys_link(const std::string& path);

}  // namespace bestride
