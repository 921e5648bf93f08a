// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/checks.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

#include "datatype/respell.hpp"
#include "datatype/type_key.hpp"
#include "tests/support/respell_type.hpp"

namespace bestride::test {
namespace {

PackerOptions random_options(Random& random) {
  PackerOptions options;
  options.isa = static_cast<Isa>(random.between(0, static_cast<int>(widest_isa())));
  if (random.chance(50))
    options.family = static_cast<KernelFamily>(random.between(0, static_cast<int>(KernelFamily::streaming)));
  static constexpr std::int64_t from[] = {-1, 0, 1, 1024};
  options.streaming_from = random.pick(from);
  return options;
}

std::string with(const PackerOptions& options, const Packer& packer, std::string what) {
  return std::move(what) + " with " + std::string(name(options.family)) + "/" + std::string(name(options.isa)) + ": " +
         packer.text().substr(0, 200);
}

/// MPI libraries copy a long double by value, ten of sixteen bytes on x86. The other bytes are undefined.
void forget_padding(const Subject& subject, Bytes& packed) {
  const auto map = type_map(subject.expression);
  std::size_t at = 0;
  for (std::int64_t i = 0; i < subject.count; ++i)
    for (const Leaf& leaf : *map) {
      const std::size_t size = static_cast<std::size_t>(leaf.type->size);
      if (leaf.type->name.starts_with("long_double"))
        for (std::size_t half = 0; half + sizeof(long double) <= size; half += sizeof(long double))
          std::fill_n(packed.begin() + static_cast<std::ptrdiff_t>(at + half + 10), sizeof(long double) - 10,
                      std::byte{0});
      at += size;
    }
}

std::vector<std::int64_t> random_cuts(std::int64_t size, Random& random) {
  std::vector<std::int64_t> cuts = {0, size};
  for (std::int64_t n = random.between(0, 4); n > 0; --n) cuts.push_back(random.between(0, size));
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

long short_packs = 0, seen_again = 0;

/// Of a decoded type. No layout is kept, because the checks count them.
struct KeyMeaning {
  std::size_t layout;  ///< hash of its text
  std::int64_t lower_bound, extent, unit_bytes;
  MPI_Datatype leaf;
  bool operator==(const KeyMeaning&) const = default;
};

}  // namespace

long library_packed_short() { return short_packs; }
long keys_seen_again() { return seen_again; }

Complaint check_key(const Subject& subject) {
  const std::optional<TypeKey> key = TypeKey::of(subject.handle, counted_calls()),
                               again = TypeKey::of(subject.handle, counted_calls());
  if (key.has_value() != again.has_value() ||
      (key && !(std::ranges::equal(key->words(), again->words()) && key->hash() == again->hash())))
    return "two keys of one type differ";
  if (!key) return std::nullopt;
  const DecodedType& decoded = subject.decoded;
  const KeyMeaning meaning{std::hash<std::string>()(decoded.layout->text()), decoded.lower_bound, decoded.extent,
                           decoded.unit_bytes, decoded.leaf};
  static std::map<std::vector<std::int64_t>, KeyMeaning> known;
  const auto [at, is_new] = known.try_emplace({key->words().begin(), key->words().end()}, meaning);
  if (!is_new) ++seen_again;
  if (at->second != meaning) return "another type with the same key was decoded differently";
  return std::nullopt;
}

bool has_backward_part(const TypeExpression& type) {
  if (facts_of(type)->extent < 0) return true;
  return std::any_of(type.children.begin(), type.children.end(), has_backward_part);
}

bool has_empty_part(const TypeExpression& type) {
  if (facts_of(type)->size == 0) return true;
  return std::any_of(type.children.begin(), type.children.end(), has_empty_part);
}

Complaint check_decoded(const Subject& subject) {
  MPI_Count lower = 0, extent = 0;
  PMPI_Type_get_extent_x(subject.handle, &lower, &extent);
  const auto evaluated = evaluate(subject.expression);
  if (evaluated->lower_bound != lower || evaluated->extent != extent)
    return "evaluate: bounds " + std::to_string(evaluated->lower_bound) + ", " + std::to_string(evaluated->extent) +
           "; MPI says " + std::to_string(lower) + ", " + std::to_string(extent);
  if (subject.decoded.unit_bytes != evaluated->unit_bytes)
    return "evaluate: another innermost constructor than decode's";
  if (subject.decoded.lower_bound != lower || subject.decoded.extent != extent) return "decode: bounds are not MPI's";
  const LayoutPtr layout = intern(evaluated->bytes);
  if (layout != subject.decoded.layout)
    return "decode and evaluate differ: " + subject.decoded.layout->text() + " | " + layout->text();
  if (layout->size() != subject.facts.size) return "size of the layout";
  return std::nullopt;
}

Complaint check_second_spelling(const Subject& subject, Random& random) {
  const TypeExpression other = respell_type(random, subject.expression);
  MPI_Datatype handle = build_type(other, random.chance(30) ? Constructors::large : Constructors::plain);
  const auto decoded = decode(handle, counted_calls());
  MPI_Type_free(&handle);
  if (!decoded) return "not decoded: " + other.text();
  if (decoded->layout == subject.decoded.layout) return std::nullopt;
  return "two spellings, two layouts: " + subject.decoded.layout->text() + " | " + decoded->layout->text() + " of " +
         other.text();
}

Complaint check_pack(const Subject& subject, Random& random) {
  const Buffer user = Buffer::holding(subject.expression, subject.count, random.bits(), random.bits() % 64);
  Bytes expected = user.gather(subject.runs);
  const LayoutPtr layout = counted(subject.decoded, subject.count);
  if (!layout) return "counted: overflow";
  if (layout->size() != static_cast<std::int64_t>(expected.size())) return "counted: size";
  const PackerOptions options = random_options(random);
  const Packer packer(layout, options);
  const std::size_t shift = random.bits() % 16;
  Bytes packed = noise(expected.size() + 64, random.bits());
  const Bytes before = packed;
  packer.pack(packed.data() + shift, user.origin());
  Bytes whole = before;
  std::copy(expected.begin(), expected.end(), whole.begin() + static_cast<std::ptrdiff_t>(shift));
  if (const auto wrong = difference(whole, packed)) return with(options, packer, "pack: " + *wrong);
  if (!subject.library_can || expected.empty()) return std::nullopt;
  Bytes theirs(expected.size());
  MPI_Count position = 0;
  PMPI_Pack_c(user.origin(), subject.count, subject.handle, theirs.data(), static_cast<MPI_Count>(theirs.size()),
              &position, MPI_COMM_SELF);
  if (position != static_cast<MPI_Count>(expected.size())) return ++short_packs, std::nullopt;
  forget_padding(subject, theirs);
  forget_padding(subject, expected);
  if (const auto wrong = difference(theirs, expected)) return "PMPI_Pack and the type map differ: " + *wrong;
  return std::nullopt;
}

Complaint check_unpack(const Subject& subject, Random& random) {
  const std::uint64_t fill = random.bits();
  const std::size_t misaligned = random.bits() % 64;
  Buffer expected = Buffer::holding(subject.expression, subject.count, fill, misaligned), got = expected;
  const LayoutPtr layout = counted(subject.decoded, subject.count);
  const PackerOptions options = random_options(random);
  const Packer packer(layout, options);
  const Bytes packed = noise(static_cast<std::size_t>(layout->size()), random.bits());
  expected.scatter(subject.runs, packed);
  packer.unpack(got.origin(), packed.data());
  if (const auto wrong = got.difference(expected)) return with(options, packer, "unpack: " + *wrong);
  return std::nullopt;
}

Complaint check_ranges(const Subject& subject, Random& random) {
  const LayoutPtr layout = counted(subject.decoded, subject.count);
  const PackerOptions options = random_options(random);
  const Packer packer(layout, options);
  const std::vector<std::int64_t> cuts = random_cuts(layout->size(), random);
  const std::uint64_t fill = random.bits();
  Buffer user = Buffer::holding(subject.expression, subject.count, fill);
  const Bytes expected = user.gather(subject.runs);
  Bytes packed = noise(expected.size(), random.bits());
  for (std::size_t i = 1; i < cuts.size(); ++i)
    packer.pack_range(packed.data() + cuts[i - 1], user.origin(), cuts[i - 1], cuts[i]);
  if (const auto wrong = difference(expected, packed)) return with(options, packer, "pack_range: " + *wrong);
  // A short message: the bytes after it stay unchanged.
  const std::int64_t last = cuts[cuts.size() / 2];
  const Bytes arrived = noise(static_cast<std::size_t>(last), random.bits());
  Buffer other = user;
  other.scatter(subject.runs, arrived);
  for (std::size_t i = 1; i <= cuts.size() / 2; ++i)
    packer.unpack_range(user.origin(), arrived.data() + cuts[i - 1], cuts[i - 1], cuts[i]);
  if (const auto wrong = user.difference(other)) return with(options, packer, "unpack_range: " + *wrong);
  return std::nullopt;
}

Complaint check_respelled(const Subject& subject, Random& random) {
  const LayoutPtr layout = counted(subject.decoded, subject.count);
  if (layout->size() == 0 || subject.decoded.leaf == MPI_DATATYPE_NULL) return std::nullopt;
  int leaf_size = 0;
  PMPI_Type_size(subject.decoded.leaf, &leaf_size);
  if (!can_respell(*layout, subject.decoded.leaf, leaf_size)) return std::nullopt;
  auto respelled = respell(*layout, subject.decoded.leaf, leaf_size, counted_calls());
  if (!respelled) return "can_respell, but respell does not";
  const Buffer user = Buffer::holding(subject.expression, subject.count, random.bits());
  Bytes expected = user.gather(subject.runs), packed(expected.size());
  MPI_Count position = 0, size = 0;
  PMPI_Type_size_x(respelled->type, &size);
  Complaint complaint;
  if (size * respelled->count != layout->size())
    complaint = "respelled: another size";
  else
    PMPI_Pack_c(user.origin() + layout->offset(), respelled->count, respelled->type, packed.data(),
                static_cast<MPI_Count>(packed.size()), &position, MPI_COMM_SELF);
  PMPI_Type_free(&respelled->type);
  if (complaint) return complaint;
  forget_padding(subject, packed);
  forget_padding(subject, expected);
  if (const auto wrong = difference(expected, packed)) return "respelled: " + *wrong;
  return std::nullopt;
}

}  // namespace bestride::test
