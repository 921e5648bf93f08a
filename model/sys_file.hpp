// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads short files of /sys. The functions return an empty result if the file is missing or can't be read (some files
// of a device that is down can't).
#include <string>
#include <vector>

namespace bestride::inline model {

/// The first line without its newline; at most 4 KiB. May throw std::bad_alloc.
std::string sys_line(const std::string& path);
/// The names in a directory, sorted, without "." and "..". May throw std::bad_alloc.
std::vector<std::string> sys_names(const std::string& folder);
/// True if there is an entry of that name; a link counts even if its target is missing.
bool sys_has(const std::string& path) noexcept;
/// The last component of a link's target.
std::string sys_link(const std::string& path);

}  // namespace bestride::inline model
