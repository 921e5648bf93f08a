// SPDX-License-Identifier: Apache-2.0
#pragma once
// What can be done with one (buffer, count, type) of one call. A new strategy is one enumerator here and one line in the table
// of strategy.cpp.
#include <cstdint>
#include <string_view>

namespace bestride {

enum class Strategy : std::uint8_t {
  forward,  ///< leave the call to the MPI library, untouched
  respell,  ///< hand MPI the same type map and signature, spelled as count x resized(child)
  pack,     ///< move the bytes with our kernels, hand MPI a contiguous host buffer
};
inline constexpr int strategy_count = 3;
std::string_view name(Strategy strategy) noexcept;
/// "pack" -> Strategy::pack; unknown: false and *strategy unchanged.
bool parse(std::string_view text, Strategy* strategy) noexcept;

/// Which side of which kind of call the data is on: the curves differ.
enum class CallKind : std::uint8_t {
  pack,     ///< MPI_Pack: forward or pack
  unpack,   ///< MPI_Unpack
  send,     ///< the sending side of a blocking message: what counts is when it has arrived
  receive,  ///< the receiving side of one
  isend,    ///< the sending side of one of several messages under way both ways: what counts is the work of the rank
  irecv,    ///< the receiving side of one
};
inline constexpr int call_kind_count = 6;
std::string_view name(CallKind kind) noexcept;
bool parse(std::string_view text, CallKind* kind) noexcept;

/// True for the kinds in which a peer takes part.
constexpr bool is_message(CallKind kind) noexcept { return kind >= CallKind::send; }
constexpr bool is_sending(CallKind kind) noexcept { return kind == CallKind::send || kind == CallKind::isend; }
/// Calls with several messages under way: MPI_Isend and its kin, persistent ones, MPI_Sendrecv, neighbour collectives.
constexpr CallKind in_exchange(CallKind message) noexcept { return is_sending(message) ? CallKind::isend : CallKind::irecv; }

}  // namespace bestride
