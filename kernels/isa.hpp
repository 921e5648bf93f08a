// SPDX-License-Identifier: Apache-2.0
#pragma once
// Isa: the instruction sets that kernels are compiled for, and which of them the CPU supports.
#include <cstdint>
#include <string_view>

namespace bestride::inline kernels {

/// The widest set of the CPU is used unless BESTRIDE_FORCE=isa= or an argument selects another one. `scalar` is plain
/// C++, the reference for the others.
enum class Isa : std::uint8_t { scalar, avx2, avx512 };

std::string_view name(Isa isa) noexcept;
/// "avx2" -> Isa::avx2; returns false if the text is unknown.
bool parse(std::string_view text, Isa* isa) noexcept;
/// The widest instruction set that this CPU and the operating system support.
Isa widest_isa() noexcept;
/// widest_isa(), or the narrower one that BESTRIDE_FORCE=isa= names. Thread-safe; one load after the first call.
Isa chosen_isa() noexcept;

}  // namespace bestride::inline kernels
