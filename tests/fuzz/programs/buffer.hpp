// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a buffer holds before and after: every rank can compute the bytes of every other rank's buffers.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/programs/call.hpp"
#include "tests/support/type_map.hpp"

namespace bestride::fuzz {

using Bytes = std::vector<char>;
using Runs = std::vector<test::ByteRun>;  ///< relative to the address that MPI is given

/// A buffer as data: guard bytes, then [low, high) relative to the address given to MPI, then guard bytes.
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
/// Writes as many bytes as there are.
void scatter(Bytes& image, std::int64_t origin, const Runs& runs, const Bytes& bytes);
Runs shifted(Runs runs, std::int64_t bytes);

/// The memory itself.
class Buffer {
 public:
  Buffer(Caller& caller, const Image& image);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  char* at(std::int64_t offset = 0) { return data_ + image_.origin() + offset; }
  char* data() { return data_; }
  const Image& image() const { return image_; }
  /// Contents of another seed, from the start.
  void refill(Caller& caller, std::uint64_t seed);

  /// What must be in it at the end; nothing is expected until this is called.
  Bytes& expected();
  bool has_expected() const { return !expected_.empty(); }
  void expect_nothing_known() { expected_.clear(); }
  /// Notes the digest, and whether the bytes are the expected ones.
  void report(Caller& caller, const std::string& label);

 private:
  void fill(Caller& caller);
  Image image_;
  char* data_ = nullptr;
  Bytes expected_;
};
using BufferPtr = std::shared_ptr<Buffer>;

}  // namespace bestride::fuzz
