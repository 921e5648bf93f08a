// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pmi: the key-value space that Hydra, the launcher of the MPICH family, keeps for the processes of a job (PMI-1 wire
// protocol: lines of text over the socket PMI_FD). What a process puts before its MPI_Init can be read by all others
// after theirs: the MPI library's own exchange in MPI_Init makes it visible. So processes learn of each other without a
// collective call, which would hang if one process did not make it.
//
// Used only if the process at the other end of the socket is Hydra's proxy. The MPI library later opens the same
// session again, which Hydra allows.
#include <string>

namespace bestride::inline interpose {

class Pmi {
 public:
  /// Opens the key-value space of the launcher. Called before MPI_Init. False if this launcher has none or does not
  /// answer.
  bool open() noexcept;
  explicit operator bool() const noexcept { return descriptor_ >= 0; }
  /// The name of the space, which no other job of the launcher's host has. "" unless open() succeeded.
  const std::string& space() const noexcept { return space_; }
  /// Publishes a value. Called before MPI_Init. Keys and values are words without '=' or blanks. put() and get() may
  /// throw std::bad_alloc.
  bool put(const std::string& key, const std::string& value);
  /// Gets a value. Called after MPI_Init, while no other thread calls MPI. False if the key does not exist.
  bool get(const std::string& key, std::string* value);

 private:
  /// Sends one command, given without its newline; returns the answer.
  std::string ask(const std::string& command);
  int descriptor_ = -1;
  std::string space_;
};

}  // namespace bestride::inline interpose
