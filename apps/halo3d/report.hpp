// SPDX-License-Identifier: Apache-2.0
#pragma once
// The results as text and as JSON.
#include <string>

#include "run_case.hpp"

namespace halo3d {

std::string one_line(const Options& options);  ///< the case in words
std::string as_text(const Options& options, const CaseResult& result);
std::string as_json(const Options& options, const CaseResult& result);

}  // namespace halo3d
