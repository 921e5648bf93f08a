// SPDX-License-Identifier: Apache-2.0
#pragma once
// JsonWriter: writes the punctuation, escapes and numbers of a JSON text into a string, from beginning to end.
// Alternative considered: a JSON library, which would add symbols and exceptions to the preload library.
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace bestride::inline telemetry {

/// The caller opens and closes in the right order; this is not checked. In an object every value follows a key().
class JsonWriter {
 public:
  JsonWriter& open_object() { return open('{'); }
  JsonWriter& close_object() { return close('}'); }
  JsonWriter& open_array() { return open('['); }
  JsonWriter& close_array() { return close(']'); }
  JsonWriter& key(std::string_view name);
  /// Escapes control characters; replaces bytes that are not UTF-8 by U+FFFD.
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  /// The shortest text that reads back as the same number; null if JSON can't represent it (infinity, NaN).
  JsonWriter& value(double number);
  JsonWriter& value(bool flag);
  template <std::integral Number>
  JsonWriter& value(Number number) {
    separate();
    out_ += std::to_string(number);
    return *this;
  }
  template <class Value>
  JsonWriter& member(std::string_view name, const Value& content) {
    return key(name).value(content);
  }
  /// The finished text, with a newline at its end.
  std::string text() const { return out_ + "\n"; }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();
  void put_string(std::string_view text);
  void new_line();

  std::string out_;
  int depth_ = 0;
  bool first_ = true;  ///< nothing written yet at this depth
  bool after_key_ = false;
};

}  // namespace bestride::inline telemetry
