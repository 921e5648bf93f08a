// SPDX-License-Identifier: Apache-2.0
#pragma once
// Buffers and their contents. Every rank can compute the bytes of every other rank's buffers.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/programs/call.hpp"
#include "tests/support/type_map.hpp"

namespace bestride::fuzz {

using Bytes = std::vector<char>;
using Runs = std::vector<test::ByteRun>;  ///< relative to the address that MPI gets

/// The description of a buffer: guard bytes, then [low, high) relative to the address that MPI gets, then guard bytes.
struct Image {
  std::uint64_t seed = 0;
  int kind = 0;  ///< of fuzz_fill
  std::int64_t low = 0, high = 0;

  static constexpr std::int64_t guard = 48;
  std::int64_t origin() const { return (guard - low + 63) / 64 * 64; }
  std::int64_t length() const { return origin() + (high > 0 ? high : 0) + guard; }
  Bytes bytes() const;
};

/// The bytes of the runs, in order.
Bytes gather(const Bytes& image, std::int64_t origin, const Runs& runs);
/// Writes `bytes` to the runs and stops where they end.
void scatter(Bytes& image, std::int64_t origin, const Runs& runs, const Bytes& bytes);
Runs shifted(Runs runs, std::int64_t bytes);

/// The memory of an Image.
class Buffer {
 public:
  Buffer(Caller& caller, const Image& image);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  char* at(std::int64_t offset = 0) { return data_ + image_.origin() + offset; }
  char* data() { return data_; }
  const Image& image() const { return image_; }
  /// Fills the buffer with the contents of another seed.
  void refill(Caller& caller, std::uint64_t seed);

  /// The contents that the buffer must have at the end. They are not checked unless this is called.
  Bytes& expected();
  bool has_expected() const { return !expected_.empty(); }
  void expect_nothing_known() { expected_.clear(); }
  /// Writes the digest to the trace, and an error if the bytes are not the expected ones.
  void report(Caller& caller, const std::string& label);

 private:
  void fill(Caller& caller);
  Image image_;
  char* data_ = nullptr;
  Bytes expected_;
};
using BufferPtr = std::shared_ptr<Buffer>;

}  // namespace bestride::fuzz
