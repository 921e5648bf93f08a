// SPDX-License-Identifier: Apache-2.0
#pragma once
// Isa: the instruction sets kernels are compiled for, and which of them runs here.
#include <cstdint>
#include <string_view>

namespace bestride {

/// The widest one the CPU has is used unless BESTRIDE_KERNEL_ISA or an argument says otherwise. `scalar` is the reference: plain
/// C++, the oracle of the others.
enum class Isa : std::uint8_t { scalar, avx2, avx512 };

std::string_view name(Isa isa) noexcept;
/// "avx2" -> Isa::avx2; unknown: false.
bool parse(std::string_view text, Isa* isa) noexcept;
/// The widest instruction set this CPU (and operating system) runs.
Isa widest_isa() noexcept;
/// That, or the narrower one BESTRIDE_KERNEL_ISA names. Thread-safe; one load after the first call.
Isa chosen_isa() noexcept;

}  // namespace bestride
