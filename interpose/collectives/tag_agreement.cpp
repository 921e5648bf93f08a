// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/tag_agreement.hpp"

#include "base/message.hpp"

namespace bestride::inline interpose {
namespace {

std::mutex agreeing;
int next_pair = 1;  ///< guarded by `agreeing`

}  // namespace

TagAgreement::TagAgreement() noexcept : lock_(agreeing, std::try_to_lock) {}

int TagAgreement::least() const noexcept { return next_pair; }

bool TagAgreement::take(int pair, int largest_tag) noexcept {
  next_pair = pair + 1;
  if (pair <= (largest_tag - 1) / 2) return true;
  warn_once("tags",
            "too many communicators for hierarchical collectives; those of newer ones are left to the MPI library");
  return false;
}

}  // namespace bestride::inline interpose
