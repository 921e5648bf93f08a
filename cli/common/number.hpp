// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks of numeric options: decimal, finite, within limits that make sense. CLI11's own accept nan, read 010 as octal,
// and print their limits with all digits.
#include <CLI/CLI.hpp>

namespace bestride::inline cli {

/// A whole number from `least` to `most`.
CLI::Validator whole_number(long long least, long long most);
/// A number from `least` to `most`, with or without a fraction.
CLI::Validator number(double least, double most);

/// Limits of options in seconds: a round, a period, a budget.
inline constexpr double least_seconds = 0.1;
inline constexpr long long most_seconds = 1'000'000;

}  // namespace bestride::inline cli
