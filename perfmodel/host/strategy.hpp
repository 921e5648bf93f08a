// SPDX-License-Identifier: Apache-2.0
#pragma once
// What can be done with one (buffer, count, type) of one call. CONTRIBUTING.md, "Add a strategy", lists every place
// that a new strategy needs.
#include <cstdint>
#include <string_view>

namespace bestride::inline perfmodel {

enum class Strategy : std::uint8_t {
  forward,  ///< leave the call unchanged to the MPI library
  respell,  ///< pass MPI an equivalent datatype with the same type map and signature: count x resized(child)
  pack,     ///< move the bytes with the library's kernels and pass MPI a contiguous host buffer
};
inline constexpr int strategy_count = 3;
std::string_view name(Strategy strategy) noexcept;
/// "pack" -> Strategy::pack. Unknown name: returns false and leaves *strategy unchanged.
bool parse(std::string_view text, Strategy* strategy) noexcept;

/// The kind of a call and the endpoint that has the data. Each has its own curves.
enum class CallKind : std::uint8_t {
  pack,     ///< MPI_Pack: forward or pack
  unpack,   ///< MPI_Unpack
  send,     ///< the sender of a blocking message; timed until the message has arrived
  receive,  ///< the receiver of a blocking message
  isend,    ///< the sender of one of several concurrent messages in both directions; cost: the work of the rank
  irecv,    ///< the receiver of one of several concurrent messages
};
inline constexpr int call_kind_count = 6;
std::string_view name(CallKind kind) noexcept;
bool parse(std::string_view text, CallKind* kind) noexcept;

/// True for kinds with a peer.
constexpr bool is_message(CallKind kind) noexcept { return kind >= CallKind::send; }
constexpr bool is_sending(CallKind kind) noexcept { return kind == CallKind::send || kind == CallKind::isend; }
/// The kind for calls with several concurrent messages: MPI_Isend and similar, persistent messages, MPI_Sendrecv,
/// neighbor collectives.
constexpr CallKind in_exchange(CallKind message) noexcept {
  return is_sending(message) ? CallKind::isend : CallKind::irecv;
}

}  // namespace bestride::inline perfmodel
