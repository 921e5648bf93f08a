// SPDX-License-Identifier: Apache-2.0
#pragma once
// TagAgreement: the members of a communicator agree on a pair of tags for the messages of one queue. Each proposes the
// least pair that is free on its rank, and they take the largest of these.
#include <mutex>

namespace bestride::inline interpose {

/// One at a time in a process; otherwise two communicators could get the same tags.
class TagAgreement {
 public:
  TagAgreement() noexcept;
  /// False: another thread agrees on tags. This member has to tell the others, and all try again at a later call.
  bool possible() const noexcept { return lock_.owns_lock(); }
  /// The least pair that is free here. Only if possible().
  int least() const noexcept;
  /// Takes the pair that the members have agreed on. False on all members: there is no such tag, which is reported
  /// once.
  bool take(int pair, int largest_tag) noexcept;

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace bestride::inline interpose
