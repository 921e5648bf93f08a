// SPDX-License-Identifier: Apache-2.0
// The format of the blob that transfers a ledger from a rank to rank 0:
//   "bestride-ledger 3 <lines>\n"
//   for each line four strings as "<length>:<bytes>" and five 16-digit hexadecimal numbers
//   (calls, bytes, and the bit patterns of the three times)
//   the numbers of CacheSums, in the same form
//   "end <checksum of all before>\n"
//
// It is text because ranks of one job may differ in byte order; times are bit patterns because decimal fractions depend
// on the locale.
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/fnv1a.hpp"
#include "telemetry/report/ledger.hpp"

namespace bestride::inline telemetry {
namespace {

constexpr std::string_view magic = "bestride-ledger 3 ";
constexpr std::size_t seal_size = 4 + 16 + 1;  // "end ", digits, newline

void put_hex(std::string& out, std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  out += text;
}

/// The last line of a blob that begins with `body`.
std::string seal(std::string_view body) {
  std::string line = "end ";
  put_hex(line, fnv1a(body));
  return line + "\n";
}

/// Reads a blob from the beginning. Every take_ function fails instead of reading past the end.
class BlobReader {
 public:
  explicit BlobReader(std::string_view rest) : rest_(rest) {}

  bool take(std::string_view expected) {
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }
  std::optional<std::uint64_t> take_decimal(char end) {
    std::uint64_t number = 0;
    const auto [stop, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc() || stop == rest_.data() + rest_.size() || *stop != end) return std::nullopt;
    rest_.remove_prefix(static_cast<std::size_t>(stop - rest_.data()) + 1);
    return number;
  }
  std::optional<std::uint64_t> take_hex() {
    if (rest_.size() < 16) return std::nullopt;
    std::uint64_t number = 0;
    const auto [stop, error] = std::from_chars(rest_.data(), rest_.data() + 16, number, 16);
    if (error != std::errc() || stop != rest_.data() + 16) return std::nullopt;
    rest_.remove_prefix(16);
    return number;
  }
  std::optional<std::string> take_string() {
    const auto length = take_decimal(':');
    if (!length || *length > rest_.size()) return std::nullopt;
    std::string text(rest_.substr(0, *length));
    rest_.remove_prefix(*length);
    return text;
  }
  std::optional<double> take_seconds() {
    const auto bits = take_hex();
    if (!bits) return std::nullopt;
    const double seconds = std::bit_cast<double>(*bits);
    if (!std::isfinite(seconds)) return std::nullopt;
    return seconds;
  }
  bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

std::optional<LedgerLine> take_line(BlobReader& reader) {
  LedgerLine line;
  for (std::string* part : {&line.call, &line.layout, &line.strategy, &line.reason}) {
    auto text = reader.take_string();
    if (!text) return std::nullopt;
    *part = std::move(*text);
  }
  const auto calls = reader.take_hex(), bytes = reader.take_hex();
  if (!calls || !bytes) return std::nullopt;
  const auto seconds = reader.take_seconds(), saved = reader.take_seconds(), engine = reader.take_seconds();
  if (!seconds || !saved || !engine) return std::nullopt;
  line.calls = *calls, line.bytes = *bytes, line.seconds = *seconds, line.saved_seconds = *saved;
  line.engine_seconds = *engine;
  return line;
}

struct Blob {
  std::vector<LedgerLine> lines;
  CacheSums cache;
};

std::optional<Blob> parse(std::string_view blob) {
  if (blob.size() < seal_size) return std::nullopt;
  const std::string_view body = blob.substr(0, blob.size() - seal_size);
  if (blob.substr(body.size()) != seal(body)) return std::nullopt;

  BlobReader reader(body);
  if (!reader.take(magic)) return std::nullopt;
  const auto count = reader.take_decimal('\n');
  if (!count) return std::nullopt;
  Blob parsed;  // `count` is not used to reserve memory, because it is not trusted
  for (std::uint64_t i = 0; i < *count; ++i) {
    auto line = take_line(reader);
    if (!line) return std::nullopt;
    parsed.lines.push_back(std::move(*line));
  }
  for (std::uint64_t CacheSums::*const sum : cache_sums) {
    const auto number = reader.take_hex();
    if (!number) return std::nullopt;
    parsed.cache.*sum = *number;
  }
  if (!reader.empty()) return std::nullopt;
  return parsed;
}

}  // namespace

std::string Ledger::serialize() const {
  const std::vector<LedgerLine> all = lines();
  std::string blob(magic);
  blob += std::to_string(all.size()) + "\n";
  for (const LedgerLine& line : all) {
    for (const std::string* part : {&line.call, &line.layout, &line.strategy, &line.reason})
      blob += std::to_string(part->size()) + ":" + *part;
    put_hex(blob, line.calls);
    put_hex(blob, line.bytes);
    put_hex(blob, std::bit_cast<std::uint64_t>(line.seconds));
    put_hex(blob, std::bit_cast<std::uint64_t>(line.saved_seconds));
    put_hex(blob, std::bit_cast<std::uint64_t>(line.engine_seconds));
  }
  const CacheSums sums = cache();
  for (std::uint64_t CacheSums::*const sum : cache_sums) put_hex(blob, sums.*sum);
  return blob + seal(blob);
}

bool Ledger::merge(std::string_view blob) noexcept try {
  const auto all = parse(blob);
  if (!all) return false;
  for (const LedgerLine& line : all->lines) post(line);
  post(all->cache);
  return true;
} catch (...) {
  return false;
}

}  // namespace bestride::inline telemetry
