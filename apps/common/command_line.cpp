// SPDX-License-Identifier: Apache-2.0
#include "apps/common/command_line.hpp"

#include <charconv>
#include <cstdint>
#include <optional>

#include "apps/common/text.hpp"

namespace command_line {
namespace {

template <class Number>
bool read_all(const std::string& text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string parse(const std::vector<std::string>& arguments, const Valued& valued, const Flags& flags) {
  for (std::size_t at = 0; at < arguments.size(); ++at) {
    std::string key = arguments[at];
    if (const auto flag = flags.find(key); flag != flags.end()) {
      flag->second();
      continue;
    }
    std::optional<std::string> value;
    if (const auto equals = key.find('='); equals != std::string::npos)
      value = key.substr(equals + 1), key = key.substr(0, equals);
    const auto found = valued.find(key);
    if (found == valued.end()) return "there is no option '" + arguments[at] + "' (--help lists them)";
    if (!value && ++at < arguments.size()) value = arguments[at];
    if (!value) return key + " wants a value";
    if (const std::string wanted = found->second(*value); !wanted.empty())
      return key + " wants " + wanted + ", not '" + *value + "'";
  }
  return "";
}

Setter whole(int& target, int least, int most) {
  return [&target, least, most](const std::string& text) {
    int value = 0;
    if (read_all(text, value) && value >= least && value <= most) return target = value, std::string();
    return "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  };
}

Setter number(double& target, double least, double most) {
  return [&target, least, most](const std::string& text) {
    double value = 0;
    if (read_all(text, value) && value >= least && value <= most) return target = value, std::string();
    return apps::format("a number from %g to %g", least, most);
  };
}

Setter file_name(std::string& target) {
  return [&target](const std::string& text) {
    return target = text, std::string(text.empty() ? "a file name, or -" : "");
  };
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t start = 0, end = 0; end != std::string::npos; start = end + 1) {
    end = text.find(',', start);
    words.push_back(text.substr(start, end - start));
  }
  return words;
}

Setter sizes(std::vector<std::size_t>& target) {
  return [&target](const std::string& text) {
    target.clear();
    for (std::string word : split(text)) {
      const char unit = word.empty() ? '0' : word.back();
      const int shift = unit == 'k' ? 10 : unit == 'm' ? 20 : 0;
      if (shift) word.pop_back();
      std::size_t size = 0;
      if (!read_all(word, size) || size == 0 || size > (std::size_t{1} << 31 >> shift))
        return std::string("numbers of bytes up to 2048m, as 65536 or 64k or 4m, with commas between");
      target.push_back(size << shift);
    }
    return std::string();
  };
}

}  // namespace command_line
