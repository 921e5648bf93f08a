// SPDX-License-Identifier: Apache-2.0
#pragma once
// ByteWriter, ByteReader: values as bytes, for messages between processes that may run on different hosts.
//
// Integers take as many bytes as they need (LEB128, signed ones in zigzag order), so a message does not depend on the
// byte order of a host. Both classes have the same interface, so one function describes a structure for both: it calls
// the archive with all members in order, and list() for vectors. A reader checks every length; after the first error it
// gives zeros and is no longer good(). Alternative considered: cereal, which needs the same description of each
// structure and allocates by a length before it checks that the bytes are there.
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace bestride::inline telemetry {

inline constexpr std::size_t longest_text = 64 * 1024;

class ByteWriter {
 public:
  template <class... Values>
  void operator()(const Values&... values) {
    (put(values), ...);
  }
  /// Each element with each(writer, element). `most`: what the reader accepts.
  template <class T, class Each>
  void list(const std::vector<T>& values, std::size_t most, Each each) {
    const std::size_t count = values.size() < most ? values.size() : most;
    number(count);
    for (std::size_t i = 0; i < count; ++i) each(*this, values[i]);
  }
  template <class T, class Each>
  void maybe(const std::optional<T>& value, Each each) {
    put(value.has_value());
    if (value) each(*this, *value);
  }

  /// A text that may be longer than longest_text.
  void long_text(const std::string& value) {
    number(value.size());
    bytes_.append(value);
  }

  const std::string& bytes() const noexcept { return bytes_; }
  std::string take() noexcept { return std::move(bytes_); }

 private:
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }
  template <class T>
  void put(const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      const std::size_t length = value.size() < longest_text ? value.size() : longest_text;
      number(length);
      bytes_.append(value, 0, length);
    } else if constexpr (std::is_enum_v<T>) {
      put(static_cast<std::underlying_type_t<T>>(value));
    } else if constexpr (std::is_floating_point_v<T>) {
      number(std::bit_cast<std::uint64_t>(static_cast<double>(value)));
    } else if constexpr (std::is_signed_v<T> && !std::is_same_v<T, char>) {
      const auto wide = static_cast<std::int64_t>(value);
      number(static_cast<std::uint64_t>(wide) << 1 ^ static_cast<std::uint64_t>(wide >> 63));
    } else {
      static_assert(std::is_unsigned_v<T> || std::is_same_v<T, char>);
      number(std::is_same_v<T, char> ? static_cast<unsigned char>(value) : static_cast<std::uint64_t>(value));
    }
  }

  std::string bytes_;
};

class ByteReader {
 public:
  /// `bytes` has to outlive the reader.
  explicit ByteReader(const std::string& bytes) noexcept : next_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  template <class... Values>
  void operator()(Values&... values) {
    (get(values), ...);
  }
  template <class T, class Each>
  void list(std::vector<T>& values, std::size_t most, Each each) {
    const std::uint64_t count = number();
    if (count > most) fail();
    for (std::uint64_t i = 0; i < count && good_; ++i) {
      values.emplace_back();
      each(*this, values.back());
    }
  }
  template <class T, class Each>
  void maybe(std::optional<T>& value, Each each) {
    bool there = false;
    get(there);
    if (there && good_) each(*this, value.emplace());
  }

  void long_text(std::string& value) {
    const std::uint64_t length = number();
    if (length > static_cast<std::uint64_t>(end_ - next_)) return fail();
    value.assign(next_, length);
    next_ += length;
  }

  /// True if no value was missing, too long or out of range so far.
  bool good() const noexcept { return good_; }
  /// Everything was read, and it was good.
  bool complete() const noexcept { return good_ && next_ == end_; }
  /// Makes good() false: a value can't be right.
  void fail() noexcept {
    good_ = false;
    next_ = end_;
  }

 private:
  std::uint64_t number() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (next_ == end_) break;
      const auto byte = static_cast<unsigned char>(*next_++);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    fail();
    return 0;
  }
  template <class T>
  void get(T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      const std::uint64_t length = number();
      if (length > longest_text || length > static_cast<std::uint64_t>(end_ - next_)) return fail();
      value.assign(next_, length);
      next_ += length;
    } else if constexpr (std::is_enum_v<T>) {
      std::underlying_type_t<T> plain{};
      get(plain);
      value = static_cast<T>(plain);
    } else if constexpr (std::is_floating_point_v<T>) {
      value = static_cast<T>(std::bit_cast<double>(number()));
    } else if constexpr (std::is_signed_v<T> && !std::is_same_v<T, char>) {
      const std::uint64_t code = number();
      const auto wide = static_cast<std::int64_t>(code >> 1 ^ (~(code & 1) + 1));
      value = static_cast<T>(wide);
      if (value != wide) fail();
    } else {
      const std::uint64_t wide = number();
      if constexpr (std::is_same_v<T, bool>) {
        value = wide == 1;
        if (wide > 1) fail();
      } else if constexpr (std::is_same_v<T, char>) {
        value = static_cast<char>(wide);
        if (wide > 255) fail();
      } else {
        value = static_cast<T>(wide);
        if (value != wide) fail();
      }
    }
  }

  const char* next_;
  const char* const end_;
  bool good_ = true;
};

}  // namespace bestride::inline telemetry
