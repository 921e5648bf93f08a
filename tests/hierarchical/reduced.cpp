// SPDX-License-Identifier: Apache-2.0
#include "tests/hierarchical/reduced.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <string_view>

#include "tests/hierarchical/calls.hpp"
#include "tests/support/harness.hpp"
#include "tests/support/memory.hpp"
#include "tests/support/mpi_types.hpp"
#include "tests/support/random.hpp"

namespace bestride::test {
namespace {

enum class Kind { integer, floating, complex, logical, pair, bytes };
struct ElementType {
  const char* word;
  Kind kind;
};
/// long double is not tested: compilers may or may not copy its padding.
constexpr ElementType element_types[] = {
    {"int8", Kind::integer},
    {"uint8", Kind::integer},
    {"int16", Kind::integer},
    {"unsigned_short", Kind::integer},
    {"int", Kind::integer},
    {"uint32", Kind::integer},
    {"int64", Kind::integer},
    {"long", Kind::integer},
    {"unsigned_long", Kind::integer},
    {"float", Kind::floating},
    {"double", Kind::floating},
    {"complex", Kind::complex},
    {"double_complex", Kind::complex},
    {"bool", Kind::logical},
    {"byte", Kind::bytes},
    {"2int", Kind::pair},
    {"float_int", Kind::pair},
    {"double_int", Kind::pair},
    {"long_int", Kind::pair},
    {"short_int", Kind::pair},
};

/// The Fortran type of the same size, if there is one, otherwise the type itself.
MPI_Datatype sized(const char* word) {
  const struct {
    const char* word;
    MPI_Datatype type;
  } all[] = {
      {"int8", MPI_INTEGER1}, {"int16", MPI_INTEGER2}, {"int", MPI_INTEGER4},     {"int64", MPI_INTEGER8},
      {"float", MPI_REAL4},   {"double", MPI_REAL8},   {"complex", MPI_COMPLEX8}, {"double_complex", MPI_COMPLEX16}};
  for (const auto& each : all)
    if (std::strcmp(each.word, word) == 0 && each.type != MPI_DATATYPE_NULL) return each.type;
  return predefined(word);
}

/// Whether the bits depend on the order: no; yes, but every order is valid; yes, and only the order of ranks is valid.
enum class Order { any, one, kept };
struct Chosen {
  const char* name;
  MPI_Op op;
  Order order;
  bool users = false;  ///< user-defined: may be freed during a nonblocking call, so such a call goes to the MPI library
};

Chosen operation_for(Random& random, const ElementType& type, const UserOperations& user) {
  const Chosen bitwise[] = {
      {"band", MPI_BAND, Order::any}, {"bor", MPI_BOR, Order::any}, {"bxor", MPI_BXOR, Order::any}};
  const Chosen logical[] = {
      {"land", MPI_LAND, Order::any}, {"lor", MPI_LOR, Order::any}, {"lxor", MPI_LXOR, Order::any}};
  const Chosen compared[] = {{"max", MPI_MAX, Order::any}, {"min", MPI_MIN, Order::any}};
  const bool exact = type.kind == Kind::integer;
  const Chosen sums[] = {{"sum", MPI_SUM, exact ? Order::any : Order::one},
                         {"prod", MPI_PROD, exact ? Order::any : Order::one}};
  // The library may treat NaN as it likes, so the order counts for pairs of a real number and an index.
  const bool real_pair = std::string_view(type.word) == "float_int" || std::string_view(type.word) == "double_int";
  const Order located_order = real_pair ? Order::one : Order::any;
  const Chosen located[] = {{"maxloc", MPI_MAXLOC, located_order}, {"minloc", MPI_MINLOC, located_order}};
  switch (type.kind) {
    case Kind::pair: return random.pick(located);
    case Kind::logical: return random.pick(logical);
    case Kind::bytes: return random.pick(bitwise);
    case Kind::complex: return random.pick(sums);
    case Kind::floating:
      if (std::string_view(type.word) == "double" && random.chance(30))
        return {"the user's", user.commutative, Order::one, true};
      return random.chance(40) ? random.pick(compared) : random.pick(sums);
    case Kind::integer: break;
  }
  if (std::string_view(type.word) == "int" && random.chance(10))
    return {"the user's, not commutative", user.ordered, Order::kept};
  switch (random.between(0, 3)) {
    case 0: return random.pick(bitwise);
    case 1: return random.pick(logical);
    case 2: return random.pick(compared);
    default: return random.pick(sums);
  }
}

/// A nonzero number: the maximum of +0 and -0 depends on the order.
template <class Real>
Real real_number(Random& random) {
  const double magnitude =
      static_cast<double>(random.between(1, 1 << 20)) / static_cast<double>(1 << random.between(0, 21));
  return static_cast<Real>(random.chance(50) ? magnitude : -magnitude);
}

/// Writes `count` values of a rank, one per extent; gaps of `in` stay unchanged. Values and indices of pairs are small,
/// so that equal ones occur.
void write_values(Random random, const ElementType& type, std::int64_t extent, std::byte* in, std::int64_t count) {
  const std::string_view word(type.word);
  for (std::int64_t i = 0; i < count; ++i) {
    std::byte* at = in + i * extent;
    const auto put = [&](std::int64_t offset, auto value) { std::memcpy(at + offset, &value, sizeof value); };
    const auto index = static_cast<int>(random.between(0, 6));
    if (type.kind == Kind::floating || type.kind == Kind::complex) {
      if (word == "float" || word == "complex") {
        put(0, real_number<float>(random));
        if (word == "complex") put(4, real_number<float>(random));
      } else {
        put(0, real_number<double>(random));
        if (word == "double_complex") put(8, real_number<double>(random));
      }
    } else if (type.kind == Kind::logical) {
      put(0, random.chance(50));
    } else if (type.kind == Kind::pair) {
      const auto value = random.between(-3, 2) * 2 + 1;
      if (word == "2int") put(0, static_cast<int>(value)), put(4, index);
      if (word == "float_int") put(0, static_cast<float>(value)), put(4, index);
      if (word == "double_int") put(0, static_cast<double>(value)), put(8, index);
      if (word == "long_int") put(0, static_cast<long>(value)), put(8, index);
      if (word == "short_int") put(0, static_cast<short>(value)), put(4, index);
    } else {
      const std::uint64_t bits = random.chance(30) ? 0 : random.bits();
      std::memcpy(at, &bits, static_cast<std::size_t>(extent));
    }
  }
}

struct Case {
  What what;
  Form form;
  int group;
  int root;
  bool in_place;
  ElementType element;
  Chosen chosen;
  int count;
  std::vector<int> lengths;
};

Case draw(Random& random, const Groups& groups, const UserOperations& user, int least) {
  Case drawn;
  drawn.what = random.pick(reducing);
  drawn.form = {random.pick(every_wait), random.chance(40), false};
  drawn.group = static_cast<int>(random.between(0, groups.count() - 1));
  drawn.root = static_cast<int>(random.between(0, 1000));
  drawn.in_place = random.chance(30);
  drawn.element = random.pick(element_types);
  drawn.chosen = operation_for(random, drawn.element, user);
  constexpr int counts[] = {0, 1, 1, 2, 3, 7, 13, 101, 997, 4099, 30011, 100003};
  const bool shares = drawn.what == What::reduce_scatter || drawn.what == What::reduce_scatter_block;
  drawn.count =
      std::min(std::max(least, random.chance(70) ? random.pick(counts) : static_cast<int>(random.between(0, 60))),
               shares ? 30011 : 100003);
  for (int rank = 0; rank < world_size(); ++rank) {
    const int choice = static_cast<int>(random.between(0, 3));
    drawn.lengths.push_back(choice == 0   ? 0
                            : choice == 1 ? static_cast<int>(random.between(0, drawn.count))
                                          : drawn.count);
  }
  return drawn;
}

class Part {
 public:
  Part(const Case& drawn, const Group& group, std::uint64_t seed, Random own)
      : drawn_(drawn),
        group_(group),
        seed_(seed),
        root_(drawn.root % group.size),
        at_root_(drawn.what != What::reduce || group.rank == root_),
        expression_(named(drawn.element.word)),
        type_(seed % 3 ? predefined(drawn.element.word) : sized(drawn.element.word)),
        extent_(facts_of(expression_)->extent),
        map_(*type_map(expression_)) {
    for (int rank = 0; rank < group.size; ++rank) {
      counts_.push_back(drawn.what == What::reduce_scatter ? drawn.lengths[static_cast<std::size_t>(rank)]
                                                           : drawn.count);
      if (rank < group.rank) before_ += counts_.back();
      all_ += counts_.back();
    }
    if (!shares()) before_ = 0, all_ = drawn.count;
    result_ = counts_[static_cast<std::size_t>(group.rank)];
    const auto buffer = [&] {
      return Buffer(0, std::max<std::int64_t>(1, all_ * extent_), own.bits(),
                    16 * static_cast<std::size_t>(own.between(0, 3)));
    };
    out_ = std::make_unique<Buffer>(buffer());
    in_ = std::make_unique<Buffer>(buffer());
  }

  std::string run() {
    const Arguments given = arguments(*in_);
    Buffer empty = *in_;
    MPI_Request request = MPI_REQUEST_NULL;
    write_values(Random(seed_of(group_.rank, 0)), drawn_.element, extent_, in_place() ? in_->origin() : out_->origin(),
                 all_);
    const bool without_data = all_ == 0 && drawn_.form.wait == Wait::in_call;
    const Watch watch(group_, possible(), drawn_.form.wait, without_data ? Shareable::in_call : shareable(), all_ > 0);
    const int error = call(drawn_.what, drawn_.form, given, &request);
    std::string wrong = watch.verdict();
    if (error != MPI_SUCCESS) return wrong + " error " + std::to_string(error_class(error));
    for (int start = 0; start < starts(); ++start) {
      if (start > 0) {
        in_->bytes() = empty.bytes();
        write_values(Random(seed_of(group_.rank, start)), drawn_.element, extent_,
                     in_place() ? in_->origin() : out_->origin(), all_);
      }
      const Buffer sent = *out_;
      const Buffer before = start == 0 ? before_of(empty) : *in_;
      if (drawn_.form.wait == Wait::persistent) MPI_Start(&request);
      if (drawn_.form.wait != Wait::in_call && MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        wrong += " an error of MPI_Wait";
      Buffer expected = before;
      const std::string reference = hierarchical() ? by_hand(expected, start) : by_library(expected, before);
      if (!reference.empty()) wrong += " " + reference;
      if (const auto difference = in_->difference(expected))
        wrong += " start " + std::to_string(start) + ", received " + *difference;
      if (const auto difference = out_->difference(sent)) wrong += " sent " + *difference;
    }
    if (drawn_.form.wait == Wait::persistent) MPI_Request_free(&request);
    return wrong;
  }

  /// MPICH 4.0.2 crashes in some long blocking in-place reductions.
  bool library_may_be_wrong() const {
    const bool forwarded = expectation() != Expectation::hierarchical || !possible() ||
                           (!group_.several_nodes && !group_.shares_memory(shareable()));
    return forwarded && drawn_.what == What::reduce && drawn_.in_place && drawn_.form.wait == Wait::in_call;
  }

 private:
  bool shares() const { return drawn_.what == What::reduce_scatter || drawn_.what == What::reduce_scatter_block; }
  bool in_place() const { return drawn_.in_place && at_root_; }
  int starts() const { return drawn_.form.wait == Wait::persistent ? 3 : 1; }
  std::uint64_t seed_of(int rank, int start) const {
    return Random(seed_ * 1000003 + static_cast<std::uint64_t>(start * 10007 + rank)).bits();
  }

  bool possible() const {
    // The extremes of real numbers are repeated by the library if the result shows that the order counts, which only
    // all members of a blocking allreduce can see.
    const bool of_reals = drawn_.element.kind == Kind::floating;
    const bool in_any_order = drawn_.chosen.order == Order::any &&
                              (!of_reals || (drawn_.what == What::allreduce && drawn_.form.wait == Wait::in_call));
    const bool order = in_any_order || (drawn_.chosen.order != Order::kept && reassociates());
    return all_ > 0 && order && (!drawn_.chosen.users || drawn_.form.wait == Wait::in_call);
  }
  /// True for calls that may go through the memory of one node.
  Shareable shareable() const {
    if (!possible()) return Shareable::no;
    if (drawn_.form.wait == Wait::in_call) return Shareable::in_call;
    // The library compares unsigned numbers in its own way.
    const bool compares = drawn_.chosen.op == MPI_MAX || drawn_.chosen.op == MPI_MIN;
    const bool without_library = (drawn_.element.kind == Kind::integer || drawn_.element.kind == Kind::bytes) &&
                                 !(compares && drawn_.element.word[0] == 'u');
    if (!without_library || drawn_.chosen.order != Order::any) return Shareable::no;
    return drawn_.form.wait == Wait::persistent ? Shareable::persistent : Shareable::nonblocking;
  }
  /// Whether the expected result is that of the fixed tree. If the order does not matter, MPI gives the same result.
  bool hierarchical() const {
    if (group_.shares_memory(shareable())) return true;
    return drawn_.chosen.order == Order::any ||
           (expectation() == Expectation::hierarchical && possible() && group_.several_nodes && group_.known);
  }

  /// The receive buffer before the first start. In place, it contains the operand.
  Buffer before_of(const Buffer& empty) const {
    Buffer before = empty;
    if (in_place()) write_values(Random(seed_of(group_.rank, 0)), drawn_.element, extent_, before.origin(), all_);
    return before;
  }

  Arguments arguments(Buffer& in) {
    Arguments a;
    a.out = in_place() ? MPI_IN_PLACE : out_->origin();
    a.in = in.origin();
    a.in_count = drawn_.count;
    a.in_type = type_;
    a.op = drawn_.chosen.op;
    a.root = root_;
    a.comm = group_.comm;
    a.give_counts(counts_);
    return a;
  }

  /// Copies the data of `result` into `expected`, whose gaps stay unchanged. The buffer after the result of an in-place
  /// reduce_scatter is undefined, so it is taken from the receive buffer.
  void put(Buffer& expected, const std::byte* result) const {
    for (const ByteRun& run : runs_of(map_, result_, extent_))
      std::memcpy(expected.origin() + run.offset, result + run.offset, static_cast<std::size_t>(run.length));
    if (shares() && in_place())
      std::memcpy(expected.origin() + result_ * extent_, in_->origin() + result_ * extent_,
                  static_cast<std::size_t>((all_ - result_) * extent_));
  }

  /// The tree over ranks [first, last), cut at the greatest power of two below their number.
  Bytes tree(int first, int last, int start) const {
    Bytes own(static_cast<std::size_t>(std::max<std::int64_t>(1, all_ * extent_)));
    if (last - first == 1) {
      write_values(Random(seed_of(first, start)), drawn_.element, extent_, own.data(), all_);
      return own;
    }
    const int middle = first + static_cast<int>(std::bit_floor(static_cast<unsigned>(last - first - 1)));
    const Bytes low = tree(first, middle, start);
    own = tree(middle, last, start);
    PMPI_Reduce_local(low.data(), own.data(), static_cast<int>(all_), type_, drawn_.chosen.op);
    return own;
  }
  std::string by_hand(Buffer& expected, int start) const {
    if (!at_root_ || all_ == 0) return "";
    put(expected, tree(0, group_.size, start).data() + before_ * extent_);
    return "";
  }
  std::string by_library(Buffer& expected, const Buffer& before) {
    Buffer theirs = before;
    const Arguments given = arguments(theirs);
    Form form = drawn_.form;
    form.library = true;
    if (complete(drawn_.what, form, given) != MPI_SUCCESS) return "an error of the MPI library";
    if (at_root_) put(expected, theirs.origin());
    return "";
  }

  const Case& drawn_;
  const Group& group_;
  const std::uint64_t seed_;
  const int root_;
  const bool at_root_;
  const TypeExpression expression_;
  const MPI_Datatype type_;
  const std::int64_t extent_;
  const TypeMap map_;
  std::vector<int> counts_;
  std::int64_t before_ = 0, all_ = 0,
               result_ = 0;  ///< elements: before this rank's result, of the operands, of the result
  std::unique_ptr<Buffer> out_, in_;
};

void add_and_multiply(void* in, void* inout, int* count, MPI_Datatype*) {
  const auto* a = static_cast<const double*>(in);
  auto* b = static_cast<double*>(inout);
  for (int i = 0; i < *count; ++i) {
    const volatile double product = a[i] * b[i] * 0x1p-40;
    b[i] = a[i] + b[i] + product;
  }
}

/// Composition of affine functions x -> (2k+1) x + m, each stored in an int: associative, but not commutative.
void compose(void* in, void* inout, int* count, MPI_Datatype*) {
  const auto* a = static_cast<const int*>(in);
  auto* b = static_cast<int*>(inout);
  for (int i = 0; i < *count; ++i) {
    const auto f = static_cast<unsigned>(a[i]), g = static_cast<unsigned>(b[i]);
    const unsigned factor = (((f >> 16) | 1) * ((g >> 16) | 1)) & 0xffff,
                   offset = (((g >> 16) | 1) * (f & 0xffff) + (g & 0xffff)) & 0xffff;
    b[i] = static_cast<int>(factor << 16 | offset);
  }
}

}  // namespace

UserOperations::UserOperations() {
  MPI_Op_create(add_and_multiply, 1, &commutative);
  MPI_Op_create(compose, 0, &ordered);
}

UserOperations::~UserOperations() {
  MPI_Op_free(&commutative);
  MPI_Op_free(&ordered);
}

std::string reduce_at_random(std::uint64_t seed, const Groups& groups, const UserOperations& user, int least,
                             std::string* told, const std::function<void()>& tell) {
  Random random(seed);
  const Case drawn = draw(random, groups, user, least);
  const Group& group = groups[drawn.group];
  *told = std::string(name(drawn.what)) + " " + name(drawn.form) + " on " + group.name + ", root " +
          std::to_string(drawn.root) + (drawn.in_place ? ", in place, " : ", ") + std::to_string(drawn.count) + " of " +
          drawn.element.word + ", " + drawn.chosen.name;
  tell();
  if (group.comm == MPI_COMM_NULL) return "";
  Part part(drawn, group, seed, Random(seed + 7919 * static_cast<std::uint64_t>(world_rank() + 1)));
  return part.library_may_be_wrong() ? "" : part.run();
}

}  // namespace bestride::test
