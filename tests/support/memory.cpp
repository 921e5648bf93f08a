// SPDX-License-Identifier: Apache-2.0
#include "tests/support/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/support/random.hpp"

namespace bestride::test {
namespace {

constexpr std::size_t margin = 192;  // more than the widest vector store

std::string describe(std::int64_t at, std::byte expected, std::byte got) {
  return "byte " + std::to_string(at) + ": expected " + std::to_string(static_cast<int>(expected)) + ", got " +
         std::to_string(static_cast<int>(got));
}

}  // namespace

Bytes noise(std::size_t size, std::uint64_t seed) {
  Bytes bytes(size);
  Random random(seed);
  std::size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    const std::uint64_t word = random.bits();
    std::memcpy(bytes.data() + i, &word, 8);
  }
  const std::uint64_t word = random.bits();
  if (i < size) std::memcpy(bytes.data() + i, &word, size - i);
  return bytes;
}

Buffer::Buffer(std::int64_t low, std::int64_t high, std::uint64_t seed, std::size_t misaligned)
    : bytes_(static_cast<std::size_t>(high - low) + 2 * margin + 128) {
  // The origin has an offset of `misaligned` from a cache line. The contents depend only on the seed.
  const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data()) + margin - static_cast<std::uintptr_t>(low);
  const std::size_t shift = (64 - address % 64) % 64 + misaligned % 64;
  origin_ = margin - static_cast<std::size_t>(low) + shift;
  const Bytes content = noise(static_cast<std::size_t>(high - low) + 2 * margin, seed);
  std::copy(content.begin(), content.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(shift));
}

Buffer Buffer::holding(const TypeExpression& type, std::int64_t count, std::uint64_t seed, std::size_t misaligned) {
  const Facts facts = *facts_of(type);
  const std::int64_t reach = count > 0 ? (count - 1) * facts.extent : 0;
  return {facts.low + std::min<std::int64_t>(0, reach), facts.high + std::max<std::int64_t>(0, reach), seed,
          misaligned};
}

Bytes Buffer::gather(const std::vector<ByteRun>& runs) const {
  Bytes packed;
  for (const ByteRun& run : runs)
    packed.insert(packed.end(), origin() + run.offset, origin() + run.offset + run.length);
  return packed;
}

void Buffer::scatter(const std::vector<ByteRun>& runs, const Bytes& packed) {
  std::size_t at = 0;
  for (const ByteRun& run : runs) {
    const std::size_t length = std::min(static_cast<std::size_t>(run.length), packed.size() - at);
    if (length > 0) std::memcpy(origin() + run.offset, packed.data() + at, length);
    at += length;
  }
}

std::optional<std::string> Buffer::difference(const Buffer& expected) const {
  // Compares the bytes that both buffers have, relative to the origin, which may be outside of the buffers.
  const auto our_origin = static_cast<std::ptrdiff_t>(origin_),
             their_origin = static_cast<std::ptrdiff_t>(expected.origin_);
  const std::ptrdiff_t first = -std::min(our_origin, their_origin);
  const std::ptrdiff_t last = std::min(static_cast<std::ptrdiff_t>(bytes_.size()) - our_origin,
                                       static_cast<std::ptrdiff_t>(expected.bytes_.size()) - their_origin);
  if (last <= first) return std::nullopt;
  const auto *ours = bytes_.data() + our_origin + first, *theirs = expected.bytes_.data() + their_origin + first;
  if (std::memcmp(ours, theirs, static_cast<std::size_t>(last - first)) == 0) return std::nullopt;
  const auto [got, wanted] = std::mismatch(ours, ours + (last - first), theirs);
  return describe(first + (got - ours), *wanted, *got);
}

VastSpace::VastSpace(std::size_t size)
    : data_(mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)),
      size_(size) {
  if (data_ == MAP_FAILED) {
    std::perror("mmap");
    std::abort();
  }
}

VastSpace::~VastSpace() { munmap(data_, size_); }

std::int64_t resident_kib() {
  long long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%*s %lld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * 4;
}

std::optional<std::string> difference(const Bytes& expected, const Bytes& got) {
  if (expected.size() != got.size())
    return "expected " + std::to_string(expected.size()) + " bytes, got " + std::to_string(got.size());
  const auto [at, wanted] = std::mismatch(got.begin(), got.end(), expected.begin());
  if (at == got.end()) return std::nullopt;
  return describe(at - got.begin(), *wanted, *at);
}

}  // namespace bestride::test
