// SPDX-License-Identifier: Apache-2.0
#include "interpose/lifetime/unwinder.hpp"

namespace bestride::inline interpose {
namespace {

struct Nothing {};
[[gnu::noinline]] void throw_nothing() { throw Nothing(); }

}  // namespace

void prepare_unwinder() noexcept {
  try {
    throw_nothing();
  } catch (const Nothing&) {
  }
}

}  // namespace bestride::inline interpose
