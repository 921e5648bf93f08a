// SPDX-License-Identifier: Apache-2.0
#pragma once
// The results as text and as JSON.
#include <string>

#include "run_case.hpp"

namespace halo3d {

std::string one_line(const Options& options);  ///< the case in words
std::string as_text(const Options& options, const CaseResult& result);
std::string as_json(const Options& options, const CaseResult& result);
/// Writes to a file, or to standard output for "-". Returns false if the file cannot be written.
bool write_text(const std::string& path, const std::string& text);

}  // namespace halo3d
