// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/programs/buffer.hpp"

#include <algorithm>
#include <cstring>

#include "tests/fuzz/programs/common.h"

namespace bestride::fuzz {

Bytes Image::bytes() const {
  Bytes all(static_cast<std::size_t>(length()));
  fuzz_fill(all.data(), length(), seed, kind);
  return all;
}

Bytes gather(const Bytes& image, std::int64_t origin, const Runs& runs) {
  Bytes result;
  for (const auto& run : runs)
    result.insert(result.end(), image.begin() + origin + run.offset, image.begin() + origin + run.offset + run.length);
  return result;
}

void scatter(Bytes& image, std::int64_t origin, const Runs& runs, const Bytes& bytes) {
  std::size_t from = 0;
  for (const auto& run : runs) {
    const std::size_t n = std::min(static_cast<std::size_t>(run.length), bytes.size() - from);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(from), n, image.begin() + origin + run.offset);
    from += n;
  }
}

Runs shifted(Runs runs, std::int64_t bytes) {
  for (auto& run : runs) run.offset += bytes;
  return runs;
}

Buffer::Buffer(Caller& caller, const Image& image) : image_(image) {
  const auto room = static_cast<std::size_t>((image.length() + 64) / 64 * 64);
  data_ = static_cast<char*>(std::aligned_alloc(64, room));
  if (caller.recorder) caller.recorder->region(data_, room, "b");
  fill(caller);
}

Buffer::~Buffer() { std::free(data_); }

void Buffer::fill(Caller& caller) {
  fuzz_fill(data_, image_.length(), image_.seed, image_.kind);
  if (caller.recorder)
    caller.line("fuzz_fill(" + caller.recorder->address(data_) + ", " + std::to_string(image_.length()) + ", " +
                std::to_string(image_.seed) + "u, " + std::to_string(image_.kind) + ");");
}

void Buffer::refill(Caller& caller, std::uint64_t seed) {
  image_.seed = seed;
  expected_.clear();
  fill(caller);
}

Bytes& Buffer::expected() {
  if (expected_.empty()) expected_ = image_.bytes();
  return expected_;
}

void Buffer::report(Caller& caller, const std::string& label) {
  const std::uint64_t digest = fuzz_digest(data_, image_.length());
  char text[100];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
  caller.say(label + "=" + text);
  if (!expected_.empty() && std::memcmp(expected_.data(), data_, expected_.size()) != 0) {
    std::int64_t at = 0;
    while (expected_[static_cast<std::size_t>(at)] == data_[at]) ++at;
    caller.say("WRONG:" + label + "@" + std::to_string(at - image_.origin()));
  }
  if (caller.recorder)
    caller.line("buffer(\"" + label + "\", " + caller.recorder->address(data_) + ", " +
                std::to_string(image_.length()) + ", 0x" + text + "ull);");
}

}  // namespace bestride::fuzz
