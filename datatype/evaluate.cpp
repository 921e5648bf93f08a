// SPDX-License-Identifier: Apache-2.0
// Computes the layout and the bounds of a type expression without MPI, for the constructors of MPI-4 chapter 5 (5.1.2
// to 5.1.4).
#include <algorithm>
#include <utility>

#include "datatype/expression.hpp"
#include "datatype/named.hpp"

namespace bestride::inline datatype {
namespace {

using Combiner = TypeExpression::Combiner;
using Distribution = TypeExpression::Distribution;

/// Thrown and caught in this file only: about fifty arithmetic steps can fail, and exceptions keep them readable.
struct Failure {
  std::string text;
};

[[noreturn]] void fail(const TypeExpression& type, const char* what) {
  std::string text = type.text();
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  throw Failure{std::string(what) + " in " + text};
}

/// 64-bit arithmetic that fails on overflow.
struct Exact {
  const TypeExpression& type;
  std::int64_t add(std::int64_t x, std::int64_t y) const {
    return __builtin_add_overflow(x, y, &x) ? (fail(type, "overflow"), 0) : x;
  }
  std::int64_t subtract(std::int64_t x, std::int64_t y) const {
    return __builtin_sub_overflow(x, y, &x) ? (fail(type, "overflow"), 0) : x;
  }
  std::int64_t multiply(std::int64_t x, std::int64_t y) const {
    return __builtin_mul_overflow(x, y, &x) ? (fail(type, "overflow"), 0) : x;
  }
  Placed take(Built built) const { return built ? std::move(*built) : (fail(type, "overflow"), Placed{}); }
  Placed move(Placed placed, std::int64_t by) const {
    return {placed.node ? add(placed.offset, by) : 0, std::move(placed.node)};
  }
};

struct Element {
  Placed bytes;
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  std::int64_t extent = 0;
  std::int64_t alignment = 1;
  std::int64_t unit = 0;             ///< innermost_with_gaps()
  const NamedType* plain = nullptr;  ///< set if this is one element of a predefined type, in any number of wrappers
  bool empty() const { return bytes.node == nullptr; }
};

/// Bounds of blocks of one element type; each block is `length` elements long and begins at byte `at`.
class Bounds {
 public:
  explicit Bounds(const TypeExpression& type) : exact_{type} {}

  void block(const Element& element, std::int64_t at, std::int64_t length) {
    // Only some combiners allow length 0 here; `reach` is then minus one extent, as in MPICH.
    const std::int64_t reach = exact_.multiply(exact_.subtract(length, 1), element.extent);
    const bool forward = element.extent >= 0;
    const std::int64_t low = exact_.add(at, exact_.add(element.lower, forward ? 0 : reach));
    const std::int64_t high = exact_.add(at, exact_.add(element.upper, forward ? reach : 0));
    lower_ = any_ ? std::min(lower_, low) : low;
    upper_ = any_ ? std::max(upper_, high) : high;
    any_ = true;
  }

  void pad(std::int64_t alignment) {
    const std::int64_t over = exact_.subtract(upper_, lower_) % alignment;
    if (over != 0) upper_ = exact_.add(upper_, alignment - over);
  }

  void store(Element& element) const {
    element.lower = lower_;
    element.upper = upper_;
    element.extent = exact_.subtract(upper_, lower_);
  }

 private:
  Exact exact_;
  bool any_ = false;
  std::int64_t lower_ = 0, upper_ = 0;
};

class Evaluator {
 public:
  Element element(const TypeExpression& type, int depth = 0) {
    if (depth >= TypeExpression::max_depth) throw Failure{"types nested too deeply"};
    if (type.combiner == Combiner::named) return named(type);
    std::vector<Element> children;
    children.reserve(type.children.size());
    for (const TypeExpression& child : type.children) children.push_back(element(child, depth + 1));
    Element made = construct(type, children);
    made.unit = innermost_with_gaps(made.unit, made.bytes);
    return made;
  }

 private:
  static Element construct(const TypeExpression& type, const std::vector<Element>& children) {
    if (type.combiner == Combiner::structure) return structure(type, children);
    need(type, children.size() == 1, "not one child type");
    switch (type.combiner) {
      case Combiner::contiguous: return contiguous(type, children[0]);
      case Combiner::vector:
      case Combiner::hvector: return vector(type, children[0]);
      case Combiner::indexed:
      case Combiner::hindexed: return indexed(type, children[0]);
      case Combiner::indexed_block:
      case Combiner::hindexed_block: return indexed_block(type, children[0]);
      case Combiner::subarray: return subarray(type, children[0]);
      case Combiner::darray: return darray(type, children[0]);
      case Combiner::resized: return resized(type, children[0]);
      default: return children[0];  // dup
    }
  }

  static void need(const TypeExpression& type, bool holds, const char* what) {
    if (!holds) fail(type, what);
  }

  static Element named(const TypeExpression& type) {
    const NamedType* known = find_named_type(type.name);
    need(type, known != nullptr, "unknown name");
    const Exact exact{type};
    Element result;
    if (known->second_at == 0) {
      result.bytes = exact.take(make_block(0, known->size));
    } else {
      const Placed members[] = {exact.take(make_block(0, known->first)),
                                exact.take(make_block(known->second_at, known->size - known->first))};
      result.bytes = exact.take(make_sequence(members));
    }
    result.upper = result.extent = known->extent;
    result.alignment = known->alignment;
    result.unit = innermost_with_gaps(0, result.bytes);
    result.plain = known;
    return result;
  }

  static Element contiguous(const TypeExpression& type, const Element& child) {
    need(type, type.integers.size() == 1 && type.integers[0] >= 0, "a negative count");
    return type.integers[0] == 0 ? Element{} : run(type, child, type.integers[0], 1, 0);
  }

  static Element vector(const TypeExpression& type, const Element& child) {
    need(type, type.integers.size() == 3 && type.integers[0] >= 0 && type.integers[1] >= 0,
         "a negative count or block length");
    std::int64_t stride = type.integers[2];
    if (type.combiner == Combiner::vector) stride = Exact{type}.multiply(stride, child.extent);
    return run(type, child, type.integers[1], type.integers[0], stride);
  }

  /// `count` blocks of `length` elements; consecutive blocks are `stride` bytes apart.
  static Element run(const TypeExpression& type, const Element& child, std::int64_t length, std::int64_t count,
                     std::int64_t stride) {
    Element result;
    if (count == 0 || child.empty()) return result;
    if (count == 1 && length == 1) return child;
    const Exact exact{type};
    result.alignment = child.alignment;
    const Placed block = exact.take(make_repeat(child.bytes, length, child.extent));
    result.unit = innermost_with_gaps(child.unit, block);
    result.bytes = exact.take(make_repeat(block, count, stride));
    Bounds bounds(type);
    bounds.block(child, 0, length);
    bounds.block(child, exact.multiply(count - 1, stride), length);
    bounds.store(result);
    return result;
  }

  static Element indexed(const TypeExpression& type, const Element& child) {
    need(type, type.a.size() == type.b.size(), "lists of different lengths");
    return blocks(type, child, type.a, type.b, type.combiner == Combiner::indexed ? child.extent : 1, false);
  }

  static Element indexed_block(const TypeExpression& type, const Element& child) {
    need(type, type.integers.size() == 1, "not one block length");
    const std::vector<std::int64_t> lengths(type.a.size(), type.integers[0]);
    return blocks(type, child, lengths, type.a, type.combiner == Combiner::indexed_block ? child.extent : 1, true);
  }

  static Element blocks(const TypeExpression& type, const Element& child, const std::vector<std::int64_t>& lengths,
                        const std::vector<std::int64_t>& at, std::int64_t unit, bool uniform) {
    Element result;
    const Exact exact{type};
    Bounds bounds(type);
    std::vector<Placed> parts;
    parts.reserve(lengths.size());
    bool any = false;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      need(type, lengths[i] >= 0, "a negative block length");
      if (child.empty() || (lengths[i] == 0 && !uniform)) continue;
      const std::int64_t offset = exact.multiply(at[i], unit);
      bounds.block(child, offset, lengths[i]);
      any = true;
      if (lengths[i] > 0)
        parts.push_back(exact.move(exact.take(make_repeat(child.bytes, lengths[i], child.extent)), offset));
    }
    if (!any) return result;
    if (lengths.size() == 1 && lengths[0] == 1 && at[0] == 0) return child;
    result.unit = child.unit;
    result.alignment = child.alignment;
    result.bytes = exact.take(make_sequence(parts));
    bounds.store(result);
    return result;
  }

  /// MPICH treats integers of equal size as one type, whatever their names.
  static bool same_plain(const NamedType* x, const NamedType* y) {
    return x != nullptr && y != nullptr && (x == y || (x->integer && y->integer && x->size == y->size));
  }

  static Element structure(const TypeExpression& type, const std::vector<Element>& children) {
    need(type, type.a.size() == children.size() && type.b.size() == children.size(), "lists of different lengths");
    Element result;
    const Exact exact{type};
    Bounds bounds(type);
    std::vector<Placed> parts;
    bool any = false;
    // If all members have one type, the struct is an hindexed type, without padding at the end.
    bool one_type = true;
    for (std::size_t i = 0; i < children.size(); ++i) {
      const Element& child = children[i];
      need(type, type.a[i] >= 0, "a negative block length");
      one_type = one_type && (i == 0 || same_plain(child.plain, children[0].plain));
      if (type.a[i] == 0) continue;
      bounds.block(child, type.b[i], type.a[i]);
      any = true;
      result.alignment = std::max(result.alignment, child.alignment);
      if (child.empty()) continue;
      result.unit = std::max(result.unit, child.unit);
      parts.push_back(exact.move(exact.take(make_repeat(child.bytes, type.a[i], child.extent)), type.b[i]));
    }
    if (!any || parts.empty()) return Element{};
    if (children.size() == 1 && type.a[0] == 1 && type.b[0] == 0) return children[0];
    result.bytes = exact.take(make_sequence(parts));
    if (!one_type) bounds.pad(result.alignment);
    bounds.store(result);
    return result;
  }

  static Element subarray(const TypeExpression& type, const Element& child) {
    const std::size_t dimensions = type.a.size();
    need(type, dimensions > 0 && type.b.size() == dimensions && type.c.size() == dimensions,
         "lists of different lengths");
    const Exact exact{type};
    Placed bytes = child.bytes;
    std::int64_t stride = child.extent, unit = child.unit;
    for (std::size_t step = 0; step < dimensions; ++step) {
      const std::size_t d = type.fortran_order ? step : dimensions - 1 - step;
      need(type,
           type.a[d] >= 1 && type.b[d] >= 0 && type.c[d] >= 0 && type.b[d] <= type.a[d] &&
               type.c[d] <= type.a[d] - type.b[d],
           "a part outside the array");
      bytes = exact.move(exact.take(make_repeat(bytes, type.b[d], stride)), exact.multiply(type.c[d], stride));
      unit = innermost_with_gaps(unit, bytes);
      stride = exact.multiply(stride, type.a[d]);
    }
    return whole_array(child, std::move(bytes), stride, unit);
  }

  static Element darray(const TypeExpression& type, const Element& child) {
    const std::size_t dimensions = type.a.size();
    need(type,
         dimensions > 0 && type.distributions.size() == dimensions && type.b.size() == dimensions &&
             type.c.size() == dimensions && type.integers.size() == 2,
         "lists of different lengths");
    const Exact exact{type};
    // The process grid is in C order for either order of the array (MPI-4, 5.1.4).
    std::vector<std::int64_t> place(dimensions);
    std::int64_t rank = type.integers[1], processes = 1;
    for (std::size_t d = dimensions; d-- > 0;) {
      need(type, type.c[d] >= 1 && type.a[d] >= 1, "a size below one");
      place[d] = rank % type.c[d];
      rank /= type.c[d];
      processes = exact.multiply(processes, type.c[d]);
    }
    need(type, processes == type.integers[0], "a process grid of another size");
    need(type, type.integers[1] >= 0 && type.integers[1] < processes, "a rank outside the process grid");
    Placed bytes = child.bytes;
    std::int64_t stride = child.extent, unit = child.unit;
    bool cut = false;
    for (std::size_t step = 0; step < dimensions; ++step) {
      const std::size_t d = type.fortran_order ? step : dimensions - 1 - step;
      bytes = distribute(type, d, place[d], bytes, stride);
      unit = innermost_with_gaps(unit, bytes);
      stride = exact.multiply(stride, type.a[d]);
      // MPICH builds a struct if a cyclic block is cut off.
      cut |= type.distributions[d] == Distribution::cyclic && type.b[d] != TypeExpression::default_argument &&
             type.b[d] > type.a[d];
    }
    return whole_array(child, std::move(bytes), stride, unit, cut);
  }

  /// The part of dimension d that belongs to process `place`; each index holds `inner`, and indices are `stride` bytes
  /// apart.
  static Placed distribute(const TypeExpression& type, std::size_t d, std::int64_t place, const Placed& inner,
                           std::int64_t stride) {
    const Exact exact{type};
    const std::int64_t size = type.a[d], processes = type.c[d];
    std::int64_t block = type.b[d];
    if (type.distributions[d] == Distribution::none) {
      need(type, processes == 1, "an undistributed dimension over several processes");
      block = size;
    } else if (type.distributions[d] == Distribution::block) {
      if (block == TypeExpression::default_argument) block = (size - 1) / processes + 1;
      need(type, block >= 1 && exact.multiply(block, processes) >= size, "blocks that do not cover the array");
    } else {
      if (block == TypeExpression::default_argument) block = 1;
      need(type, block >= 1, "a block below one");
    }
    const std::int64_t first = exact.multiply(place, block), period = exact.multiply(block, processes);
    if (first >= size) return {};
    const std::int64_t full = (size - first) / period + ((size - first) % period >= block ? 1 : 0);
    const std::int64_t rest_at = exact.add(first, exact.multiply(full, period));
    const std::int64_t rest = rest_at < size ? std::min(block, size - rest_at) : 0;
    const auto elements = [&](std::int64_t count) { return exact.take(make_repeat(inner, count, stride)); };
    const Placed parts[] = {exact.move(exact.take(make_repeat(elements(block), full, exact.multiply(period, stride))),
                                       exact.multiply(first, stride)),
                            rest > 0 ? exact.move(elements(rest), exact.multiply(rest_at, stride)) : Placed{}};
    return exact.take(make_sequence(parts));
  }

  /// Part of an array: it has the extent of the whole array and lower bound 0. `cut`: do not replace an array of one
  /// element by that element.
  static Element whole_array(const Element& child, Placed bytes, std::int64_t extent, std::int64_t unit,
                             bool cut = false) {
    // An array of one element, taken whole, is treated as that element, also when a struct checks whether its members
    // have one basic type.
    if (!cut && extent > 0 && extent == child.extent && child.lower == 0 && child.upper == extent && bytes.node &&
        child.bytes.node && bytes.node->size == child.bytes.node->size && bytes.offset == child.bytes.offset)
      return child;
    Element result;
    result.bytes = std::move(bytes);
    if (!result.empty()) result.alignment = child.alignment;
    result.unit = unit;
    result.upper = result.extent = extent;
    return result;
  }

  static Element resized(const TypeExpression& type, const Element& child) {
    need(type, type.integers.size() == 2, "not two numbers");
    if (type.integers[0] == child.lower && type.integers[1] == child.extent) return child;
    Element result;
    result.bytes = child.bytes;
    result.unit = child.unit;
    result.alignment = child.alignment;
    result.lower = type.integers[0];
    result.extent = type.integers[1];
    result.upper = Exact{type}.add(result.lower, result.extent);
    return result;
  }
};

}  // namespace

Result<EvaluatedType> evaluate(const TypeExpression& type) {
  try {
    Element element = Evaluator{}.element(type);
    const std::int64_t size = element.empty() ? 0 : element.bytes.node->size;
    return EvaluatedType{std::move(element.bytes), element.lower, element.extent,
                         element.unit != 0 ? std::min(element.unit, size) : size};
  } catch (const Failure& failure) {
    return Error{failure.text};
  }
}

}  // namespace bestride::inline datatype
