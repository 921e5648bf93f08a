// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/messages/types.hpp"

#include <dlfcn.h>

#include <array>
#include <random>
#include <stdexcept>
#include <vector>

#include "datatype/build.hpp"
#include "datatype/respell.hpp"

namespace bestride::inline perfmodel {
namespace {

constexpr int inner_turns = 8;

/// A handle that is freed at the end of its scope; MPI keeps the datatypes built from it valid.
class Handle {
 public:
  Handle() = default;
  Handle(const Handle&) = delete;
  ~Handle() {
    if (type_ != MPI_DATATYPE_NULL) MPI_Type_free(&type_);
  }
  MPI_Datatype* operator&() { return &type_; }
  operator MPI_Datatype() const { return type_; }
  MPI_Datatype release() {
    const MPI_Datatype type = type_;
    type_ = MPI_DATATYPE_NULL;
    return type;
  }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

/// One block of `bytes` bytes.
void make_leaf_block(std::int64_t bytes, Leaf leaf, Handle& block) {
  if (leaf == Leaf::mixed) {
    Handle pair;
    const int lengths[]{1, 1};
    const MPI_Aint at[]{0, 4};
    const MPI_Datatype types[]{MPI_INT, MPI_FLOAT};
    MPI_Type_create_struct(2, lengths, at, types, &pair);
    MPI_Type_contiguous(static_cast<int>(bytes / 8), pair, &block);
    return;
  }
  const int size = leaf == Leaf::four ? 4 : 8;
  MPI_Type_contiguous(static_cast<int>(bytes / size), leaf == Leaf::four ? MPI_FLOAT : MPI_DOUBLE, &block);
}

/// An array of structs of three blocks, at offsets of 0, 1 and 2.5 jumps; the extent is 3.5 jumps.
void make_record(std::int64_t block_bytes, std::int64_t jump, Leaf leaf, Handle& record, MPI_Aint* extent) {
  Handle block;
  make_leaf_block(block_bytes, leaf, block);
  const std::int64_t half = jump / 2 / 4 * 4;
  const std::array<MPI_Aint, 3> at{0, jump, 2 * jump + half};
  *extent = 3 * jump + half;
  if (leaf != Leaf::mixed) {
    MPI_Type_create_hindexed_block(3, 1, at.data(), block, &record);
    return;
  }
  // The members of a struct have different types, as in applications.
  const int words = static_cast<int>(block_bytes / 4);
  const std::array<int, 3> lengths{words, words, words};
  const std::array<MPI_Datatype, 3> types{MPI_INT, MPI_FLOAT, MPI_INT};
  MPI_Type_create_struct(3, lengths.data(), at.data(), types.data(), &record);
}

std::vector<MPI_Aint> list_displacements(const Point& point, std::int64_t count) {
  std::mt19937 random(12345);  // the same list for every datatype and rank
  const std::int64_t block = point.block(), unit = block < 8 ? 4 : 8;
  const std::int64_t mean_gap = jump_of(point.spread, block) - block;
  const auto choices = static_cast<std::uint32_t>(std::max<std::int64_t>(2, 2 * mean_gap / unit - 1));
  std::vector<MPI_Aint> at;
  at.reserve(static_cast<std::size_t>(count));
  std::int64_t next = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    at.push_back(next);
    next += block + unit * (1 + static_cast<std::int64_t>(random() % choices));
  }
  return at;
}

}  // namespace

CountedType make_type(const Point& point, Engine engine, Leaf leaf) {
  const std::int64_t bytes = point.bytes(), block_bytes = point.block(), jump = jump_of(point.spread, block_bytes);
  Handle element;  // the element that `unsplit` repeats
  MPI_Aint extent = jump;
  std::int64_t count = bytes / block_bytes;
  switch (point.kind) {
    case Shape::Class::nest: {
      Handle block;
      make_leaf_block(block_bytes, leaf, block);
      MPI_Type_create_hvector(inner_turns, 1, jump, block, &element);
      extent = inner_turns * jump + std::max<std::int64_t>(8, block_bytes);
      count /= inner_turns;
      break;
    }
    case Shape::Class::record:
      make_record(block_bytes, jump, leaf, element, &extent);
      count = (count + 1) / 3;  // rounded to nearest
      break;
    case Shape::Class::list: {
      Handle block;
      make_leaf_block(block_bytes, leaf, block);
      const std::vector<MPI_Aint> at = list_displacements(point, count);
      MPI_Type_create_hindexed_block(static_cast<int>(count), 1, at.data(), block, &element);
      MPI_Type_commit(&element);
      return CountedType(element.release(), 1);
    }
    default: make_leaf_block(block_bytes, leaf, element); break;
  }
  Handle result;
  if (engine == Engine::unsplit) {
    MPI_Type_create_resized(element, 0, extent, &result);
  } else if (point.kind == Shape::Class::record) {
    Handle resized;
    MPI_Type_create_resized(element, 0, extent, &resized);
    MPI_Type_contiguous(static_cast<int>(count), resized, &result);
  } else {
    MPI_Type_create_hvector(static_cast<int>(count), 1, extent, element, &result);
  }
  MPI_Type_commit(&result);
  return CountedType(result.release(), engine == Engine::unsplit ? static_cast<int>(count) : 1);
}

CountedType make_respelled_bytes(std::int64_t bytes) {
  const auto respelled = respell(*intern(*make_block(0, bytes)), MPI_BYTE, 1, linked_calls());
  if (!respelled) throw std::runtime_error("contiguous bytes could not be respelled");
  return CountedType(respelled->type, static_cast<int>(respelled->count));
}

DatatypeCalls linked_calls() {
  DatatypeCalls calls;
  calls.resolve([](const char* symbol) { return ::dlsym(RTLD_DEFAULT, symbol); });
  return calls;
}

}  // namespace bestride::inline perfmodel
