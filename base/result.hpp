// SPDX-License-Identifier: Apache-2.0
#pragma once
// Result<T>: a value, or one line that states what went wrong and what to do. In the preload library no exception
// crosses from one directory into another; a function that can fail returns a Result. std::expected would be the
// natural choice, but GCC 12 has it only in C++23.
#include <optional>
#include <string>
#include <utility>

namespace bestride {

/// The reason of a failure, for the user: cause first, then remedy ("profile 'x' is from another machine; run 'bestride
/// calibrate'").
struct Error {
  std::string text;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Error error) : error_(std::move(error)) {}

  explicit operator bool() const noexcept { return value_.has_value(); }
  T& operator*() noexcept { return *value_; }
  const T& operator*() const noexcept { return *value_; }
  T* operator->() noexcept { return &*value_; }
  const T* operator->() const noexcept { return &*value_; }
  /// Valid only if there is no value.
  const Error& error() const noexcept { return error_; }

 private:
  std::optional<T> value_;
  Error error_;
};

}  // namespace bestride
