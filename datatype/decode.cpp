// SPDX-License-Identifier: Apache-2.0
#include "datatype/decode.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <span>
#include <utility>
#include <vector>

#include "datatype/build.hpp"
#include "datatype/contents.hpp"
#include "datatype/node.hpp"

namespace bestride::inline datatype {
namespace {

constexpr int deepest = 1000;  // deeper nested structs are left to MPI, because decoding them could overflow the stack

/// One element of a type under construction.
struct Element {
  Placed bytes;
  std::int64_t lower_bound = 0;
  std::int64_t extent = 0;
  MPI_Datatype leaf = MPI_DATATYPE_NULL;
  bool mixed = false;     ///< more than one basic type below
  std::int64_t unit = 0;  ///< innermost_with_gaps() of the parts, then of this element
  ElementSizes elements;
};
using Decoded = std::optional<Element>;

template <class First, class Second>
struct PairOf {
  First first;
  Second second;
};

class Decoder {
 public:
  explicit Decoder(const DatatypeCalls& mpi) : mpi_(mpi) {}

  Decoded decode(MPI_Datatype type, int depth = 0) {
    if (depth > deepest) return std::nullopt;
    // Unwraps types with one child, outermost first. A loop, because recursion into a long chain could overflow the
    // stack.
    std::deque<Level> chain;
    Decoded below;
    while (!below) {
      Level& level = chain.emplace_back(type, mpi_);
      if (!extent_of(type, &level.element.lower_bound, &level.element.extent) || !level.contents.good())
        return std::nullopt;
      const std::vector<MPI_Datatype>& children = level.contents.types();
      if (is_leaf_combiner(level.contents.combiner())) {
        below = leaf(type, level.element);
      } else if (level.contents.combiner() == MPI_COMBINER_STRUCT) {
        below = with_bytes(level, structure(level.contents, level.element, depth));
      } else if (!children.empty()) {
        type = children[0];
        continue;
      }
      if (!below) return std::nullopt;
    }
    for (chain.pop_back(); !chain.empty(); chain.pop_back()) {
      Level& level = chain.back();
      absorb(level.element, *below);
      level.element.elements = below->elements;
      below = with_bytes(level, derived(level.contents, level.element, *below));
      if (!below) return std::nullopt;
    }
    return below;
  }

 private:
  struct Level {
    Level(MPI_Datatype type, const DatatypeCalls& mpi) : contents(type, mpi) {}
    Element element;
    const TypeContents contents;
  };

  static Decoded with_bytes(Level& level, const Built& bytes) {
    if (!bytes) return std::nullopt;
    level.element.bytes = *bytes;
    level.element.unit = innermost_with_gaps(level.element.unit, *bytes);
    return level.element;
  }

  bool extent_of(MPI_Datatype type, std::int64_t* lower_bound, std::int64_t* extent) {
#if MPI_VERSION >= 3
    if (mpi_.get_extent_x) {
      MPI_Count low = 0, size = 0;
      // The value MPI_UNDEFINED (-32766) has no special meaning here: it is a valid lower bound, and every bound fits
      // an MPI_Count.
      static_assert(sizeof(MPI_Count) >= sizeof(MPI_Aint));
      if (mpi_.get_extent_x(type, &low, &size) != MPI_SUCCESS) return false;
      *lower_bound = low;
      *extent = size;
      return true;
    }
#endif
    MPI_Aint low = 0, size = 0;
    if (mpi_.get_extent(type, &low, &size) != MPI_SUCCESS) return false;
    *lower_bound = low;
    *extent = size;
    return true;
  }

  /// A predefined type: contiguous, or a pair type, whose padding is not sent.
  Decoded leaf(MPI_Datatype type, Element element) {
    int size = 0;
    if (mpi_.size(type, &size) != MPI_SUCCESS || size < 0) return std::nullopt;
    element.leaf = type;
    element.elements = ElementSizes::basic(size);
    if (size == 0 || size == element.extent) {
      const Built block = make_block(0, size);
      if (!block) return std::nullopt;
      element.bytes = *block;
      return element;
    }
    const auto pair = [&]<class First, class Second>(PairOf<First, Second>) -> Built {
      using Pair = PairOf<First, Second>;
      if (size != static_cast<int>(sizeof(First) + sizeof(Second)) ||
          element.extent != static_cast<std::int64_t>(sizeof(Pair)))
        return std::nullopt;
      const Placed parts[] = {*make_block(0, sizeof(First)), *make_block(offsetof(Pair, second), sizeof(Second))};
      return make_sequence(parts);
    };
    Built bytes;
    if (type == MPI_DOUBLE_INT)
      bytes = pair(PairOf<double, int>{});
    else if (type == MPI_LONG_INT)
      bytes = pair(PairOf<long, int>{});
    else if (type == MPI_SHORT_INT)
      bytes = pair(PairOf<short, int>{});
    else if (type == MPI_LONG_DOUBLE_INT)
      bytes = pair(PairOf<long double, int>{});
    else if (type == MPI_FLOAT_INT)
      bytes = pair(PairOf<float, int>{});
    if (!bytes) return std::nullopt;
    element.bytes = *bytes;
    element.unit = innermost_with_gaps(0, element.bytes);
    element.mixed = true;
    return element;
  }

  /// Merges the basic type of a child into its parent.
  static void absorb(Element& parent, const Element& below) {
    if (!below.bytes.node) return;  // a child without bytes is not part of the signature
    if (below.mixed || (parent.leaf != MPI_DATATYPE_NULL && parent.leaf != below.leaf)) parent.mixed = true;
    parent.leaf = below.leaf;
    parent.unit = std::max(parent.unit, below.unit);
  }

  /// A type with one child.
  Built derived(const TypeContents& contents, Element& element, const Element& below) {
    switch (contents.combiner()) {
      case MPI_COMBINER_DUP:
      case MPI_COMBINER_RESIZED: return below.bytes;
      case MPI_COMBINER_CONTIGUOUS:
      case MPI_COMBINER_VECTOR:
      case MPI_COMBINER_HVECTOR: return strided(contents, element, below);
      case MPI_COMBINER_INDEXED:
      case MPI_COMBINER_HINDEXED:
      case MPI_COMBINER_INDEXED_BLOCK:
      case MPI_COMBINER_HINDEXED_BLOCK: return indexed(contents, below);
      case MPI_COMBINER_SUBARRAY: return subarray(contents, element, below);
      case MPI_COMBINER_DARRAY: return darray(contents, element, below);
      default: return std::nullopt;
    }
  }

  /// Reads the scalars and arrays of a contents record. Plain constructors store counts in the integers and byte
  /// displacements in the addresses; large-count constructors store all of them in the counts, in order.
  class Reader {
   public:
    explicit Reader(const TypeContents& contents) : contents_(contents) {}
    std::int64_t count() { return contents_.large() ? large() : integer(); }
    std::int64_t address() {
      if (contents_.large()) return large();
      return address_ < contents_.addresses().size() ? contents_.addresses()[address_++] : fail();
    }
    std::int64_t integer() {
      return integer_ < contents_.integers().size() ? contents_.integers()[integer_++] : fail();
    }
    std::vector<std::int64_t> counts(std::int64_t n) {
      return contents_.large() ? many(n, contents_.counts(), &large_) : integers(n);
    }
    std::vector<std::int64_t> addresses(std::int64_t n) {
      return contents_.large() ? many(n, contents_.counts(), &large_) : many(n, contents_.addresses(), &address_);
    }
    std::vector<std::int64_t> integers(std::int64_t n) { return many(n, contents_.integers(), &integer_); }
    bool good() const { return good_; }

   private:
    template <class Given>
    std::vector<std::int64_t> many(std::int64_t n, const std::vector<Given>& given, std::size_t* next) {
      const std::size_t count = n > 0 ? static_cast<std::size_t>(n) : 0;
      if (count > given.size() - *next) {
        fail();
        return {};
      }
      const auto first = given.begin() + static_cast<std::ptrdiff_t>(std::exchange(*next, *next + count));
      return {first, first + static_cast<std::ptrdiff_t>(count)};
    }
    std::int64_t large() {
      return large_ < contents_.counts().size() ? static_cast<std::int64_t>(contents_.counts()[large_++]) : fail();
    }
    std::int64_t fail() {
      good_ = false;
      return 0;
    }
    const TypeContents& contents_;
    std::size_t integer_ = 0, address_ = 0, large_ = 0;
    bool good_ = true;
  };

  Built strided(const TypeContents& contents, Element& element, const Element& below) {
    Reader read(contents);
    const std::int64_t count = read.count();
    if (contents.combiner() == MPI_COMBINER_CONTIGUOUS)
      return read.good() ? make_repeat(below.bytes, count, below.extent) : std::nullopt;
    const std::int64_t block_length = read.count();
    std::int64_t stride = 0;
    if (contents.combiner() == MPI_COMBINER_HVECTOR)
      stride = read.address();
    else if (!product(read.count(), below.extent, &stride))
      return std::nullopt;
    const Built block = make_repeat(below.bytes, block_length, below.extent);
    if (block) element.unit = innermost_with_gaps(element.unit, *block);
    return read.good() && block ? make_repeat(*block, count, stride) : std::nullopt;
  }

  Built indexed(const TypeContents& contents, const Element& below) {
    const int combiner = contents.combiner();
    const bool one_length = combiner == MPI_COMBINER_INDEXED_BLOCK || combiner == MPI_COMBINER_HINDEXED_BLOCK;
    const bool in_bytes = combiner == MPI_COMBINER_HINDEXED || combiner == MPI_COMBINER_HINDEXED_BLOCK;
    Reader read(contents);
    const std::int64_t count = read.count();
    std::vector<std::int64_t> lengths =
        one_length ? std::vector<std::int64_t>(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)), read.count())
                   : read.counts(count);
    std::vector<std::int64_t> displacements = in_bytes ? read.addresses(count) : read.counts(count);
    if (!read.good()) return std::nullopt;
    if (!in_bytes)
      for (std::int64_t& displacement : displacements)
        if (!product(displacement, below.extent, &displacement)) return std::nullopt;
    return blocks_of(below, lengths, displacements);
  }

  /// lengths[i] elements of `below`, one after the other, starting at displacements[i] bytes.
  Built blocks_of(const Element& below, std::vector<std::int64_t>& lengths, std::vector<std::int64_t>& displacements) {
    if (!below.bytes.node) return Placed{};
    if (below.bytes.node->kind == Node::Kind::block && below.bytes.node->size == below.extent) {
      for (std::size_t i = 0; i < lengths.size(); ++i)
        if (!product(lengths[i], below.extent, &lengths[i]) ||
            !sum(displacements[i], below.bytes.offset, &displacements[i]))
          return std::nullopt;
      return make_blocks(displacements, lengths);
    }
    std::vector<Placed> parts;
    parts.reserve(lengths.size());
    Built block;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (i == 0 || lengths[i] != lengths[i - 1]) block = make_repeat(below.bytes, lengths[i], below.extent);
      std::int64_t offset = 0;
      if (!block || !sum(block->offset, displacements[i], &offset)) return std::nullopt;
      parts.push_back({offset, block->node});
    }
    return make_sequence(parts);
  }

  Built structure(const TypeContents& contents, Element& element, int depth) {
    Reader read(contents);
    const std::int64_t count = read.count();
    const std::vector<std::int64_t> lengths = read.counts(count);
    const std::vector<std::int64_t> displacements = read.addresses(count);
    if (!read.good()) return std::nullopt;
    std::vector<Placed> parts;
    Decoded below;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (lengths[i] <= 0) continue;
      const bool same_as_before =
          below && i > 0 && lengths[i - 1] > 0 && contents.types()[i] == contents.types()[i - 1];
      if (!same_as_before) {
        if (i >= contents.types().size() || !(below = decode(contents.types()[i], depth + 1))) return std::nullopt;
        absorb(element, *below);
      }
      const Built block = make_repeat(below->bytes, lengths[i], below->extent);
      if (block && block->node) element.elements.append(below->elements, block->node->size);
      std::int64_t offset = 0;
      if (!block || !sum(block->offset, displacements[i], &offset)) return std::nullopt;
      parts.push_back({offset, block->node});
    }
    return make_sequence(parts);
  }

  Built subarray(const TypeContents& contents, Element& element, const Element& below) {
    Reader read(contents);
    const std::int64_t dimensions = read.integer();
    const std::vector<std::int64_t> sizes = read.counts(dimensions);
    const std::vector<std::int64_t> subsizes = read.counts(dimensions);
    const std::vector<std::int64_t> starts = read.counts(dimensions);
    const std::int64_t order = read.integer();
    if (!read.good()) return std::nullopt;
    Built bytes = below.bytes;
    std::int64_t stride = below.extent, origin = 0;
    for (std::int64_t i = 0; i < dimensions; ++i) {
      const auto d = static_cast<std::size_t>(order == MPI_ORDER_FORTRAN ? i : dimensions - 1 - i);
      std::int64_t start = 0;
      bytes = make_repeat(*bytes, subsizes[d], stride);
      if (!bytes || !product(starts[d], stride, &start) || !sum(origin, start, &origin) ||
          !product(stride, sizes[d], &stride))
        return std::nullopt;
      element.unit = innermost_with_gaps(element.unit, *bytes);
    }
    return shifted(*bytes, origin);
  }

  /// MPI-4, 5.1.4: every dimension of the global array is distributed over one dimension of the process grid (row-major
  /// for either order of the array). The indices of this rank are in ascending order.
  Built darray(const TypeContents& contents, Element& element, const Element& below) {
    Reader read(contents);
    const std::int64_t ranks = read.integer(), rank = read.integer(), dimensions = read.integer();
    const std::vector<std::int64_t> sizes = read.counts(dimensions);
    const std::vector<std::int64_t> distributions = read.integers(dimensions);
    const std::vector<std::int64_t> arguments = read.integers(dimensions);
    const std::vector<std::int64_t> grid = read.integers(dimensions);
    const std::int64_t order = read.integer();
    if (!read.good()) return std::nullopt;
    std::vector<std::int64_t> coordinate(static_cast<std::size_t>(dimensions));
    std::int64_t left = ranks, rest = rank;
    for (std::size_t d = 0; d < coordinate.size(); ++d) {
      if (grid[d] <= 0) return std::nullopt;
      left /= grid[d];
      if (left <= 0) return std::nullopt;
      coordinate[d] = rest / left;
      rest %= left;
    }
    Built bytes = below.bytes;
    std::int64_t stride = below.extent;
    for (std::int64_t i = 0; i < dimensions; ++i) {
      const auto d = static_cast<std::size_t>(order == MPI_ORDER_FORTRAN ? i : dimensions - 1 - i);
      const std::int64_t size = sizes[d], processes = grid[d];
      std::int64_t block = arguments[d];
      if (distributions[d] == MPI_DISTRIBUTE_NONE)
        block = size;
      else if (block == MPI_DISTRIBUTE_DFLT_DARG)
        block = distributions[d] == MPI_DISTRIBUTE_BLOCK ? (size + processes - 1) / processes : 1;
      if (block <= 0) return std::nullopt;
      bytes =
          dealt(*bytes, size, block, processes, distributions[d] == MPI_DISTRIBUTE_NONE ? 0 : coordinate[d], stride);
      if (!bytes || !product(stride, size, &stride)) return std::nullopt;
      element.unit = innermost_with_gaps(element.unit, *bytes);
    }
    return bytes;
  }

  /// The indices c * block + k * block * processes + j (j < block) below `size`; each holds `body`; consecutive indices
  /// are `stride` bytes apart.
  static Built dealt(const Placed& body, std::int64_t size, std::int64_t block, std::int64_t processes,
                     std::int64_t coordinate, std::int64_t stride) {
    const std::int64_t turn = block * processes, first = block * coordinate;
    const std::int64_t full = first + block <= size ? (size - first - block) / turn + 1 : 0;
    const std::int64_t next = first + full * turn;
    std::int64_t turn_bytes = 0, first_bytes = 0, next_bytes = 0;
    if (!product(turn, stride, &turn_bytes) || !product(first, stride, &first_bytes) ||
        !product(next, stride, &next_bytes))
      return std::nullopt;
    const Built whole = make_repeat(body, block, stride);
    if (!whole) return std::nullopt;
    const Built many = make_repeat(*whole, full, turn_bytes);
    const Built tail = next < size ? make_repeat(body, size - next, stride) : Built(Placed{});
    if (!many || !tail) return std::nullopt;
    const Built parts[] = {shifted(*many, first_bytes), shifted(*tail, next_bytes)};
    if (!parts[0] || !parts[1]) return std::nullopt;
    const Placed placed[] = {*parts[0], *parts[1]};
    return make_sequence(placed);
  }

  static Built shifted(Placed bytes, std::int64_t by) {
    if (!bytes.node) return bytes;
    std::int64_t edge = 0;
    if (!sum(bytes.offset, by, &bytes.offset) || !sum(bytes.offset, bytes.node->low, &edge) ||
        !sum(bytes.offset, bytes.node->high, &edge))
      return std::nullopt;
    return bytes;
  }

  const DatatypeCalls& mpi_;
};

}  // namespace

std::optional<DecodedType> decode(MPI_Datatype type, const DatatypeCalls& mpi) {
  const Decoded element = Decoder(mpi).decode(type);
  if (!element) return std::nullopt;
  DecodedType decoded;
  decoded.layout = intern(element->bytes);
  decoded.lower_bound = element->lower_bound;
  decoded.extent = element->extent;
  const std::int64_t size = decoded.layout->size();
  decoded.unit_bytes = element->unit != 0 ? std::min(element->unit, size) : size;
  decoded.elements = element->elements;
  decoded.leaf = element->mixed || !element->bytes.node ? MPI_DATATYPE_NULL : element->leaf;
  return decoded;
}

LayoutPtr counted(const DecodedType& type, std::int64_t count) {
  const Placed one{type.layout->offset(), type.layout->root_pointer()};
  const Built all = make_repeat(one, count, type.extent);
  return all ? intern(*all) : nullptr;
}

}  // namespace bestride::inline datatype
