// SPDX-License-Identifier: Apache-2.0
#include "datatype/fingerprint.hpp"

#include <array>

namespace bestride::inline datatype {
namespace {

constexpr std::uint64_t prime = (std::uint64_t{1} << 61) - 1;
// Two arbitrary points, far from small powers. Any points satisfy the bound in the header.
constexpr std::uint64_t point_a = 0x0f3a96c1d5b78e43u % prime;
constexpr std::uint64_t point_b = 0x19d6e0b27c4581f7u % prime;

constexpr std::uint64_t add(std::uint64_t x, std::uint64_t y) noexcept {
  const std::uint64_t sum = x + y;
  return sum >= prime ? sum - prime : sum;
}
constexpr std::uint64_t multiply(std::uint64_t x, std::uint64_t y) noexcept {
  const unsigned __int128 product = static_cast<unsigned __int128>(x) * y;
  return add(static_cast<std::uint64_t>(product & prime), static_cast<std::uint64_t>(product >> 61));
}
constexpr std::uint64_t residue(std::int64_t x) noexcept {
  const std::int64_t rest = x % static_cast<std::int64_t>(prime);
  return static_cast<std::uint64_t>(rest < 0 ? rest + static_cast<std::int64_t>(prime) : rest);
}

/// For q and n: q^n, sum q^j and sum j q^j over j < n. The sums of two ranges can be concatenated.
struct Sums {
  std::uint64_t n = 0;
  std::uint64_t power = 1;
  std::uint64_t geometric = 0;
  std::uint64_t weighted = 0;
};
constexpr Sums join(const Sums& x, const Sums& y) noexcept {
  return {add(x.n, y.n), multiply(x.power, y.power), add(x.geometric, multiply(x.power, y.geometric)),
          add(x.weighted, multiply(x.power, add(multiply(x.n, y.geometric), y.weighted)))};
}
constexpr Sums once(std::uint64_t q) noexcept { return {1, q, 1, 0}; }

using Doublings = std::array<Sums, 62>;
constexpr Doublings doublings(std::uint64_t q) noexcept {
  Doublings table{};
  table[0] = once(q);
  for (std::size_t i = 1; i < table.size(); ++i) table[i] = join(table[i - 1], table[i - 1]);
  return table;
}
constexpr Doublings table_a = doublings(point_a);
constexpr Doublings table_b = doublings(point_b);

/// Sums over the bytes of a run, from the table of powers of the point: one step for each set bit.
Sums byte_sums(const Doublings& table, std::int64_t length) noexcept {
  Sums sums;
  bool first = true;
  for (std::uint64_t rest = static_cast<std::uint64_t>(length); rest; rest &= rest - 1) {
    const Sums& piece = table[static_cast<std::size_t>(__builtin_ctzll(rest))];
    sums = first ? piece : join(sums, piece);
    first = false;
  }
  return sums;
}

/// Sums over the iterations of a loop, for an arbitrary q.
Sums turn_sums(std::uint64_t q, std::int64_t count) noexcept {
  Sums sums, square = once(q);
  for (std::uint64_t rest = static_cast<std::uint64_t>(count);; square = join(square, square)) {
    if (rest & 1) sums = join(sums, square);
    if (!(rest >>= 1)) return sums;
  }
}

std::uint64_t repeat_one(const Doublings& table, std::uint64_t body, std::int64_t size, std::int64_t count,
                         std::int64_t stride) noexcept {
  const Sums bytes = byte_sums(table, size);
  const Sums turns = turn_sums(bytes.power, count);
  return add(multiply(body, turns.geometric), multiply(multiply(residue(stride), bytes.geometric), turns.weighted));
}

}  // namespace

Fingerprint block_fingerprint(std::int64_t length) noexcept {
  return {byte_sums(table_a, length).weighted, byte_sums(table_b, length).weighted};
}

Fingerprint moved(const Fingerprint& content, std::int64_t size, std::int64_t shift) noexcept {
  if (shift == 0) return content;
  const std::uint64_t by = residue(shift);
  return {add(content.a, multiply(by, byte_sums(table_a, size).geometric)),
          add(content.b, multiply(by, byte_sums(table_b, size).geometric))};
}

Fingerprint repeated(const Fingerprint& body, std::int64_t size, std::int64_t count, std::int64_t stride) noexcept {
  return {repeat_one(table_a, body.a, size, count, stride), repeat_one(table_b, body.b, size, count, stride)};
}

Fingerprint list_fingerprint(std::span<const std::int64_t> offsets, std::span<const std::int64_t> lengths,
                             std::int64_t block_length) noexcept {
  // Horner's rule from the last block to the first: H = block + r^length * rest.
  Fingerprint total;
  // Lists have few lengths, in any order.
  struct Known {
    std::int64_t length = 0;
    Sums a, b;
  };
  Known recent[8];
  for (std::size_t i = offsets.size(); i-- > 0;) {
    const std::int64_t length = lengths.empty() ? block_length : lengths[i];
    Known& known = recent[static_cast<std::uint64_t>(length) / 4 % 8];
    if (known.length != length) known = {length, byte_sums(table_a, length), byte_sums(table_b, length)};
    const auto& [same, a, b] = known;
    const std::uint64_t offset = residue(offsets[i]);
    total.a = add(add(multiply(offset, a.geometric), a.weighted), multiply(a.power, total.a));
    total.b = add(add(multiply(offset, b.geometric), b.weighted), multiply(b.power, total.b));
  }
  return total;
}

void FingerprintSequence::append(const Fingerprint& part, std::int64_t size) noexcept {
  total_.a = add(total_.a, multiply(power_.a, part.a));
  total_.b = add(total_.b, multiply(power_.b, part.b));
  power_.a = multiply(power_.a, byte_sums(table_a, size).power);
  power_.b = multiply(power_.b, byte_sums(table_b, size).power);
}

}  // namespace bestride::inline datatype
