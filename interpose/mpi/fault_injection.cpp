// SPDX-License-Identifier: Apache-2.0
#include "interpose/mpi/fault_injection.hpp"

namespace bestride::inline interpose {

void set_injected_failures(std::string_view names) noexcept {
  constexpr std::string_view known[] = {
      "thread",       "type",    "decode",     "plan",     "packer",    "respell",      "lease",
      "registration", "message", "completion", "statuses", "arrays",    "communicator", "made",
      "queue",        "table",   "arena",      "offers",   "window",    "presence",     "topology",
      "link",         "order",   "attribute",  "report",   "operation", "symbol",       "start"};
  static_assert(sizeof known / sizeof known[0] == static_cast<std::size_t>(FailPoint::count));
  const auto goes_on = [](std::size_t i) { return i < static_cast<std::size_t>(FailPoint::operation); };
  std::uint32_t bits = 0;
  while (!names.empty()) {
    const std::size_t plus = names.find('+');
    const std::string_view name = names.substr(0, plus);
    names.remove_prefix(plus == std::string_view::npos ? names.size() : plus + 1);
    for (std::size_t i = 0; i < static_cast<std::size_t>(FailPoint::count); ++i)
      if (name == known[i] || (name == "all" && goes_on(i))) bits |= 1u << i;
  }
  injected_failures.store(bits, std::memory_order_relaxed);
}

}  // namespace bestride::inline interpose
