// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers as text for a table: three digits and a unit. Independent of the application's locale, which may use a
// decimal comma.
#include <cstdint>
#include <string>

namespace bestride::inline telemetry {

std::string bytes_text(std::uint64_t bytes);  ///< "812 B", "3.21 GiB"
std::string count_text(std::uint64_t count);  ///< "812", "12.5 k", "3.21 M"
std::string seconds_text(double seconds);  ///< "3.21 s", "45.0 ms", "812 ns"; negative keeps its sign; not finite: "-"
std::string percent_text(double share);    ///< 0.125: "12 %"
/// `text` with control characters replaced by '?'; longer text is cut to `width` columns, including "..." at its end.
std::string fitted(const std::string& text, std::size_t width);

}  // namespace bestride::inline telemetry
