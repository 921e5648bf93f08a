// SPDX-License-Identifier: Apache-2.0
#pragma once
// With BESTRIDE_PARANOID, each fragment of a message is packed by the MPI library's functions, too. Where the bytes
// differ, the library's are used, and one line says so. If there is no memory for a copy, it is not compared.
#include "interpose/engine/transport_types.hpp"

namespace bestride::inline interpose {

/// What the user is told, once for each `what`.
void say_difference(const char* what) noexcept;

/// `packed`: `bytes` bytes of the packed message from `offset` on, as Bestride has packed them. `state`: of the
/// library's functions, for the same message.
void compare_packed(const Operations& library, void* state, std::size_t offset, void* packed,
                    std::size_t bytes) noexcept;
/// `packed`: what Bestride has unpacked into the user's buffer.
void compare_unpacked(const Operations& library, void* state, std::size_t offset, const void* packed,
                      std::size_t bytes) noexcept;

}  // namespace bestride::inline interpose
