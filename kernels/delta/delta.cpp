// SPDX-License-Identifier: Apache-2.0
// The stream of runs and groups. The operations inside a group are in the kernels.
#include "kernels/delta/delta.hpp"

#include <algorithm>
#include <bit>

#include "kernels/delta/kernel_table.hpp"

namespace bestride::inline kernels::delta {
namespace {

const DeltaKernels& kernels_of(Isa isa) noexcept {
#if defined(__x86_64__)
  if (isa > widest_isa()) isa = widest_isa();
  if (isa == Isa::avx512) return avx512_delta_kernels();
  if (isa == Isa::avx2) return avx2_delta_kernels();
#endif
  return scalar_delta_kernels();
}

enum Kind : std::uint32_t { unchanged = 0, sparse = 1, full = 2 };
using RunHeader = std::uint32_t;
constexpr int kind_shift = 30;
constexpr RunHeader max_groups = (RunHeader{1} << kind_shift) - 1;

constexpr std::int64_t map_bytes = 8;
constexpr std::int64_t max_group_bytes = map_bytes + 8 * group_chunks + group_bytes;

constexpr std::int64_t chunks_of(std::int64_t bytes) { return (bytes + chunk_bytes - 1) / chunk_bytes; }

template <class T>
T read(const Byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

std::size_t length(std::int64_t bytes) noexcept { return static_cast<std::size_t>(bytes); }

// ---- Encoding

class Writer {
 public:
  Writer(Byte* out, std::int64_t limit) : start_(out), at_(out), end_(out + std::max<std::int64_t>(limit, 0)) {}

  /// Appends a group of this kind to the current run, or starts a new run. Returns false if there is no room.
  bool join(Kind kind) noexcept {
    if (groups_ == 0 || kind != kind_ || groups_ == max_groups) {
      if (end_ - at_ < static_cast<std::int64_t>(sizeof(RunHeader))) return false;
      run_ = at_;
      at_ += sizeof(RunHeader);
      kind_ = kind;
      groups_ = 0;
    }
    const RunHeader header = kind_ << kind_shift | ++groups_;
    std::memcpy(run_, &header, sizeof header);
    return true;
  }

  /// Appends the bytes of a group. `map`: the chunks that have a mask in the stream.
  bool put(const DeltaKernels& kernels, const Byte* group, Kind kind, std::uint64_t map,
           const std::uint64_t* masks) noexcept {
    if (end_ - at_ >= max_group_bytes + slack) {
      at_ = write(kernels, group, kind, map, masks, at_);
      return true;
    }
    Byte buffer[max_group_bytes + slack];
    const std::int64_t size = write(kernels, group, kind, map, masks, buffer) - buffer;
    if (size > end_ - at_) return false;
    std::memcpy(at_, buffer, length(size));
    at_ += size;
    return true;
  }

  std::int64_t size() const noexcept { return at_ - start_; }

 private:
  static Byte* write(const DeltaKernels& kernels, const Byte* group, Kind kind, std::uint64_t map,
                     const std::uint64_t* masks, Byte* to) noexcept {
    if (kind == sparse) {
      std::memcpy(to, &map, sizeof map);
      to += sizeof map;
    }
    for (; map != 0; map &= map - 1, to += 8) std::memcpy(to, &masks[std::countr_zero(map)], 8);
    return kernels.compact(group, masks, to);
  }

  Byte* start_;
  Byte* at_;
  Byte* end_;
  Byte* run_ = nullptr;
  Kind kind_ = unchanged;
  RunHeader groups_ = 0;
};

std::uint64_t all_chunks(std::int64_t chunks) noexcept { return ~std::uint64_t{0} >> (group_chunks - chunks); }

bool encode_group(const DeltaKernels& kernels, const Byte* older, const Byte* newer, std::int64_t chunks,
                  Writer& writer) noexcept {
  std::uint64_t masks[group_chunks];
  const std::uint64_t map = kernels.compare(older, newer, masks);
  if (map == 0) return writer.join(unchanged);
  if (std::popcount(map) + 2 <= chunks) return writer.join(sparse) && writer.put(kernels, newer, sparse, map, masks);
  return writer.join(full) && writer.put(kernels, newer, full, all_chunks(chunks), masks);
}

// ---- Applying

class Reader {
 public:
  Reader(const Byte* from, std::int64_t size) : at_(from), end_(from + std::max<std::int64_t>(size, 0)) {}

  std::int64_t left() const noexcept { return end_ - at_; }
  template <class T>
  bool take(T* value) noexcept {
    if (left() < static_cast<std::int64_t>(sizeof(T))) return false;
    *value = read<T>(at_);
    at_ += sizeof(T);
    return true;
  }

  /// Reads the masks of the chunks in `map` (0 for the others) and counts their words.
  bool take_masks(std::uint64_t map, std::uint64_t* masks, std::int64_t* words) noexcept {
    if (left() < 8 * std::popcount(map)) return false;
    std::memset(masks, 0, 8 * group_chunks);
    *words = 0;
    for (; map != 0; map &= map - 1) {
      std::uint64_t& mask = masks[std::countr_zero(map)];
      take(&mask);
      *words += std::popcount(mask);
    }
    return left() >= 2 * *words;
  }

  void expand(const DeltaKernels& kernels, Byte* group, const std::uint64_t* masks, std::int64_t words) noexcept {
    if (left() >= 2 * words + slack) {
      kernels.expand(group, masks, at_);
    } else {
      Byte buffer[group_bytes + slack] = {};
      std::memcpy(buffer, at_, length(2 * words));
      kernels.expand(group, masks, buffer);
    }
    at_ += 2 * words;
  }

 private:
  const Byte* at_;
  const Byte* end_;
};

bool apply_group(const DeltaKernels& kernels, Reader& reader, Kind kind, Byte* content, std::int64_t bytes) noexcept {
  const std::int64_t chunks = chunks_of(bytes);
  std::uint64_t map = all_chunks(chunks);
  if (kind == sparse && (!reader.take(&map) || (map & ~all_chunks(chunks)) != 0)) return false;
  std::uint64_t masks[group_chunks];
  std::int64_t words = 0;
  if (!reader.take_masks(map, masks, &words)) return false;
  if (bytes == group_bytes) {
    reader.expand(kernels, content, masks, words);
    return true;
  }
  const std::int64_t last_words = (bytes - (chunks - 1) * chunk_bytes + 1) / 2;  // words of the last chunk, 1 to 64
  if ((masks[chunks - 1] & ~all_chunks(last_words)) != 0) return false;
  Byte padded[group_bytes] = {};
  std::memcpy(padded, content, length(bytes));
  reader.expand(kernels, padded, masks, words);
  std::memcpy(content, padded, length(bytes));
  return true;
}

}  // namespace

std::int64_t max_encoded_bytes(std::int64_t bytes) noexcept { return bytes <= 0 ? 0 : bytes + bytes / 16 + 17; }

std::int64_t encode(const void* older, const void* newer, std::int64_t bytes, void* out, std::int64_t limit,
                    Isa isa) noexcept {
  const DeltaKernels& kernels = kernels_of(isa);
  const Byte* const before = static_cast<const Byte*>(older);
  const Byte* const after = static_cast<const Byte*>(newer);
  Writer writer(static_cast<Byte*>(out), limit);
  std::int64_t at = 0;
  for (; bytes - at >= group_bytes; at += group_bytes)
    if (!encode_group(kernels, before + at, after + at, group_chunks, writer)) return dense;
  if (const std::int64_t rest = bytes - at; rest > 0) {
    Byte padded[2][group_bytes] = {};
    std::memcpy(padded[0], before + at, length(rest));
    std::memcpy(padded[1], after + at, length(rest));
    if (!encode_group(kernels, padded[0], padded[1], chunks_of(rest), writer)) return dense;
  }
  return writer.size();
}

bool apply(const void* encoded, std::int64_t size, void* content, std::int64_t bytes, Isa isa) noexcept {
  const DeltaKernels& kernels = kernels_of(isa);
  Byte* const bytes_of = static_cast<Byte*>(content);
  Reader reader(static_cast<const Byte*>(encoded), size);
  std::int64_t at = 0;
  while (at < bytes) {
    RunHeader header = 0;
    if (!reader.take(&header)) return false;
    const auto kind = static_cast<Kind>(header >> kind_shift);
    const std::int64_t groups = header & max_groups;
    if (kind > full || groups == 0 || groups > (bytes - at + group_bytes - 1) / group_bytes) return false;
    if (kind == unchanged) {
      at += groups * group_bytes;
      continue;
    }
    for (std::int64_t group = 0; group < groups; ++group, at += group_bytes)
      if (!apply_group(kernels, reader, kind, bytes_of + at, std::min(group_bytes, bytes - at))) return false;
  }
  return reader.left() == 0;
}

}  // namespace bestride::inline kernels::delta
