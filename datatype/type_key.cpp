// SPDX-License-Identifier: Apache-2.0
#include "datatype/type_key.hpp"

#include <algorithm>
#include <cstring>

#include "datatype/contents.hpp"

namespace bestride::inline datatype {

struct TypeKey::Envelope {
  int combiner = MPI_COMBINER_NAMED;
  std::int64_t integers = 0, addresses = 0, counts = 0, types = 0;
  bool is_leaf() const noexcept { return is_leaf_combiner(combiner); }
};

class TypeKey::Reader {
 public:
  Reader(TypeKey& key, const DatatypeCalls& mpi) noexcept : key_(key), mpi_(mpi) {}

  bool envelope(MPI_Datatype type, Envelope& found) const noexcept {
#if MPI_VERSION >= 4
    if (is_large_count()) {
      MPI_Count integers = 0, addresses = 0, counts = 0, types = 0;
      if (mpi_.get_envelope_c(type, &integers, &addresses, &counts, &types, &found.combiner) != MPI_SUCCESS)
        return false;
      found.integers = integers, found.addresses = addresses, found.counts = counts, found.types = types;
      return true;
    }
#endif
    int integers = 0, addresses = 0, types = 0;
    if (mpi_.get_envelope(type, &integers, &addresses, &types, &found.combiner) != MPI_SUCCESS) return false;
    found.integers = integers, found.addresses = addresses, found.types = types;
    return true;
  }

  bool add(MPI_Datatype type, const Envelope& envelope, int level) noexcept {
    if (envelope.is_leaf()) {
      std::int64_t handle = 0;
      std::memcpy(&handle, &type, sizeof type);
      return key_.add(envelope.combiner) && key_.add(handle);
    }
    const std::int64_t all = envelope.integers + envelope.addresses + envelope.counts + envelope.types;
    arguments_ += all;
    if (level == most_levels || all > static_cast<std::int64_t>(most_words - key_.size_) - 2) return false;
    // The key contains the length of each argument list, so different constructors have different keys.
    key_.add(envelope.combiner);
    key_.add(envelope.integers | envelope.addresses << 16 | envelope.counts << 32 | envelope.types << 48);
    int integers[most_words];
    MPI_Aint addresses[most_words];
    MPI_Datatype types[most_words];
#if MPI_VERSION >= 4
    MPI_Count counts[most_words];
    if (is_large_count()) {
      if (mpi_.get_contents_c(type, envelope.integers, envelope.addresses, envelope.counts, envelope.types, integers,
                              addresses, counts, types) != MPI_SUCCESS)
        return false;
      std::for_each_n(counts, envelope.counts, [this](MPI_Count each) { key_.add(each); });
    } else
#endif
        if (mpi_.get_contents(type, static_cast<int>(envelope.integers), static_cast<int>(envelope.addresses),
                              static_cast<int>(envelope.types), integers, addresses, types) != MPI_SUCCESS)
      return false;
    std::for_each_n(integers, envelope.integers, [this](int each) { key_.add(each); });
    std::for_each_n(addresses, envelope.addresses, [this](MPI_Aint each) { key_.add(each); });
    bool good = true;
    std::for_each_n(types, envelope.types, [&](MPI_Datatype& child) {
      Envelope of_child;
      if (!this->envelope(child, of_child)) return void(good = false);
      good = good && add(child, of_child, level + 1);
      if (!of_child.is_leaf()) mpi_.free(&child);
    });
    return good;
  }

  std::int64_t arguments() const noexcept { return arguments_; }

 private:
#if MPI_VERSION >= 4
  bool is_large_count() const noexcept { return mpi_.get_envelope_c && mpi_.get_contents_c; }
#endif
  TypeKey& key_;
  const DatatypeCalls& mpi_;
  std::int64_t arguments_ = 0;
};

std::optional<TypeKey> TypeKey::of(MPI_Datatype type, const DatatypeCalls& mpi, std::int64_t* arguments) noexcept {
  static_assert(sizeof type <= sizeof(std::int64_t));
  std::optional<TypeKey> key(std::in_place);
  Reader reader(*key, mpi);
  Envelope envelope;
  if (!reader.envelope(type, envelope) || !reader.add(type, envelope, 0)) {
    key.reset();
    if (arguments) *arguments = std::max<std::int64_t>(reader.arguments(), 1);
  }
  return key;
}

std::uint64_t TypeKey::hash() const noexcept {
  std::uint64_t hash = size_;
  for (const std::int64_t word : words()) {
    hash = (hash ^ static_cast<std::uint64_t>(word)) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace bestride::inline datatype
