// SPDX-License-Identifier: Apache-2.0
#include "tests/hierarchical/moved.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "tests/hierarchical/calls.hpp"
#include "tests/support/harness.hpp"
#include "tests/support/memory.hpp"
#include "tests/support/mpi_types.hpp"
#include "tests/support/random_type.hpp"
#include "tests/support/relocate_type.hpp"
#include "tests/support/respell_type.hpp"

namespace bestride::test {
namespace {

/// The random values of a case, which are the same on all ranks.
struct Case {
  What what;
  Form form;
  int group;
  int root;
  bool in_place;
  TypeExpression type;
  int count;  ///< elements of `type` in a block if blocks have equal lengths
  std::vector<int>
      lengths;  ///< v-forms: elements in each rank's block; an alltoallv or alltoallw assigns them to pairs of ranks
  std::vector<int> at;  ///< v-forms: displacements in a buffer of all blocks, in elements
  int reach;            ///< elements that a buffer of all blocks spans
};

/// The type with which one side of a rank describes its data.
struct Side {
  TypeExpression expression;
  TypeMap map;
  std::int64_t extent = 0;
  std::unique_ptr<CommittedType> made;  ///< null for a predefined type

  explicit Side(TypeExpression given)
      : expression(std::move(given)), map(*type_map(expression)), extent(facts_of(expression)->extent) {
    if (expression.combiner != Combiner::named) made = std::make_unique<CommittedType>(expression);
  }
  MPI_Datatype type() const { return made ? static_cast<MPI_Datatype>(*made) : predefined(expression.name); }
  std::vector<ByteRun> runs(std::int64_t first, std::int64_t count) const {
    std::vector<ByteRun> runs = runs_of(map, count, extent);
    for (ByteRun& run : runs) run.offset += first * extent;
    return runs;
  }
};

constexpr std::int64_t max_bytes = 1 << 20;

TypeExpression basic_type(Random& random) {
  constexpr const char* words[] = {"char", "short", "int", "long", "float", "double", "byte"};
  return named(random.pick(words));
}

TypeExpression any_type(Random& random) {
  if (random.chance(40)) return basic_type(random);
  if (random.chance(20)) return type_from("vector(60,1,2,double)");
  for (;;) {
    TypeLimits limits;
    limits.depth = 4;
    limits.bytes = random.chance(80) ? 512 : 8192;
    limits.span = 1 << 15;
    TypeExpression type = random_type(random, limits);
    const auto map = type_map(type, 4096);
    if (map && signature_of(*map).size() <= 60) return type;
  }
}

/// At least `least`, unless that exceeds max_bytes.
int any_count(Random& random, const TypeExpression& type, int least) {
  // In a relocated type (side_of()) an element may take some tens of bytes more.
  const Facts facts = *facts_of(type);
  const std::int64_t bytes =
      type.combiner == Combiner::named ? facts.size : std::max(std::abs(facts.extent), facts.high - facts.low) + 100;
  constexpr int counts[] = {0, 1, 1, 2, 3, 7, 13, 101, 997, 4099, 100003};
  const std::int64_t most = std::min<std::int64_t>(100003, max_bytes / bytes);
  return static_cast<int>(std::min<std::int64_t>(
      std::max<std::int64_t>(least, random.chance(70) ? random.pick(counts) : random.between(0, 50)), most));
}

Case draw(Random& random, const Groups& groups, int least) {
  Case drawn;
  drawn.what = random.pick(moving);
  drawn.form = {random.pick(every_wait), random.chance(40), false};
  drawn.group = static_cast<int>(random.between(0, groups.count() - 1));
  drawn.in_place = random.chance(25);
  drawn.type = any_type(random);
  drawn.count = any_count(random, drawn.type, least);
  drawn.root = static_cast<int>(random.between(0, 1000));
  // One value per rank of MPI_COMM_WORLD; a smaller communicator uses the first ones.
  const int ranks = world_size();
  const int gap = static_cast<int>(random.between(0, 2));
  std::vector<int> order;
  for (int rank = 0; rank < ranks; ++rank) order.insert(order.begin() + random.between(0, rank), rank);
  drawn.at.resize(order.size());
  drawn.reach = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const int choice = static_cast<int>(random.between(0, 3));
    drawn.lengths.push_back(choice == 0   ? 0
                            : choice == 1 ? static_cast<int>(random.between(0, drawn.count))
                                          : drawn.count);
  }
  for (const int rank : order) {
    drawn.at[static_cast<std::size_t>(rank)] = drawn.reach;
    drawn.reach += (varies_by_pair(drawn.what) ? drawn.count : drawn.lengths[static_cast<std::size_t>(rank)]) + gap;
  }
  drawn.reach = std::max(drawn.reach, drawn.count * ranks);
  return drawn;
}

/// This rank's equivalent of the type: the type or another spelling of it if no byte occurs twice, or a type with the
/// same signature at other offsets.
Side side_of(Random& own, const TypeExpression& type, std::int64_t reach) {
  const TypeMap map = *type_map(type);
  const bool plain = type.combiner == Combiner::named;
  const bool itself =
      plain ? reach > 5000 || own.chance(60) : !overlaps(runs_of(map, reach, facts_of(type)->extent)) && own.chance(40);
  if (itself) return Side(own.chance(50) ? type : respell_type(own, type));
  return Side(relocate_type(own, signature_of(map)));
}

std::uint64_t seed_of(std::uint64_t seed, int start, int from, int block) {
  return Random(seed * 1000003 + static_cast<std::uint64_t>(start * 10007 + from * 101 + block)).bits();
}

/// One rank's part in a case.
class Part {
 public:
  Part(const Case& drawn, const Group& group, std::uint64_t seed, Random own)
      : drawn_(drawn),
        group_(group),
        seed_(seed),
        root_(drawn.root % group.size),
        at_root_(!rooted(drawn.what) || group.rank == root_),
        sending_(side(own)),
        receiving_(side(own)),
        packed_(facts_of(drawn.type)->size),
        out_(Buffer::holding(sending_.expression, drawn.reach, own.bits(),
                             static_cast<std::size_t>(own.between(0, 15)))),
        in_(Buffer::holding(receiving_.expression, drawn.reach, own.bits(),
                            static_cast<std::size_t>(own.between(0, 15)))),
        empty_(in_),
        expected_(in_) {}

  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part() {
    for (MPI_Datatype& type : whole_blocks_) MPI_Type_free(&type);
  }

  std::string run() {
    Arguments arguments = this->arguments();
    MPI_Request request = MPI_REQUEST_NULL;
    fill(0);
    std::string wrong;
    const int starts = drawn_.form.wait == Wait::persistent ? 3 : 1;
    const Wait wait = drawn_.form.wait;
    const Watch watch(group_, possible(), wait, shareable(), has_data_for_choice());
    const int error = call(drawn_.what, drawn_.form, arguments, &request);
    wrong = watch.verdict();
    if (error != MPI_SUCCESS) return "error " + std::to_string(error_class(error));
    for (int start = 0; start < starts; ++start) {
      if (start > 0) fill(start);
      if (drawn_.form.wait == Wait::persistent) MPI_Start(&request);
      if (drawn_.form.wait != Wait::in_call && MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS)
        wrong = "an error of MPI_Wait";
      if (const auto difference = in_.difference(expected_))
        wrong += (wrong.empty() ? "" : "; ") + ("start " + std::to_string(start) + ", received " + *difference);
      if (const auto difference = out_.difference(sent_)) wrong += "; sent " + *difference;
    }
    if (drawn_.form.wait == Wait::persistent) MPI_Request_free(&request);
    return wrong;
  }

  /// MPICH 4.0.2 gives wrong results from the second start of some persistent collectives on, corrupts elements if a
  /// message of several basic types is split, crashes for some types, and ignores the displacement in an allgatherv of
  /// a single rank. Such calls are not checked.
  bool library_may_be_wrong() const {
    const bool displacement_is_lost = drawn_.what == What::allgatherv && group_.size == 1;
    return !hierarchical() &&
           (drawn_.form.wait == Wait::persistent || drawn_.type.combiner != Combiner::named || displacement_is_lost);
  }

 private:
  bool varies() const { return drawn_.what == What::allgatherv || left_to_library(drawn_.what); }
  /// Elements that one rank sends to another.
  int length(int from, int to) const {
    if (!varies()) return drawn_.count;
    // In place, both directions have the same length.
    const int pair = drawn_.in_place ? from + to : from + 2 * to;
    return drawn_.lengths[static_cast<std::size_t>(varies_by_pair(drawn_.what)     ? pair % group_.size
                                                   : drawn_.what == What::scatterv ? to
                                                                                   : from)];
  }
  /// The offset of a rank's block in a buffer of all blocks, in elements.
  std::int64_t at(int rank) const {
    return varies() ? drawn_.at[static_cast<std::size_t>(rank)] : std::int64_t{rank} * drawn_.count;
  }
  bool hierarchical() const {
    if (has_data_for_choice() && group_.shares_memory(shareable())) return true;
    return expectation() == Expectation::hierarchical && possible() && group_.several_nodes &&
           (group_.known || drawn_.form.wait != Wait::nonblocking);
  }
  /// A call that goes to the MPI library uses the original type on both sides.
  Side side(Random& own) const { return hierarchical() ? side_of(own, drawn_.type, drawn_.reach) : Side(drawn_.type); }
  bool one_out() const { return !scatters(drawn_.what) && !from_all_to_all(drawn_.what); }
  bool in_place() const { return drawn_.in_place && drawn_.what != What::broadcast && at_root_; }

  bool possible() const {
    if (left_to_library(drawn_.what) || (from_all_to_all(drawn_.what) && drawn_.in_place)) return false;
    std::int64_t all = 0;
    for (int rank = 0; rank < group_.size; ++rank) all += length(rank, 0) * facts_of(drawn_.type)->size;
    return all > 0;
  }
  /// True for calls that may go through the memory of one node.
  Shareable shareable() const {
    if (from_all_to_all(drawn_.what) && drawn_.in_place) return Shareable::no;
    if (!left_to_library(drawn_.what) && !possible() && drawn_.form.wait != Wait::in_call) return Shareable::no;
    switch (drawn_.form.wait) {
      case Wait::in_call: return Shareable::in_call;
      case Wait::persistent: return Shareable::persistent;
      case Wait::nonblocking: break;
    }
    // Members that know only their own sizes can't ask each other.
    return left_to_library(drawn_.what) && !varies_by_pair(drawn_.what) ? Shareable::no : Shareable::nonblocking;
  }
  /// False if the members know before the call that there is no data.
  bool has_data_for_choice() const {
    return has_data() || (varies_by_pair(drawn_.what) && drawn_.form.wait != Wait::persistent);
  }
  bool has_data() const {
    std::int64_t all = 0;
    for (int from = 0; from < group_.size; ++from)
      for (int to = 0; to < group_.size; ++to) all += length(from, to) * facts_of(drawn_.type)->size;
    return all > 0;
  }

  Bytes block(int start, int from, int to, int count) const {
    return noise(static_cast<std::size_t>(count * packed_), seed_of(seed_, start, from, to));
  }

  /// Writes the data that this rank sends, and the data that it must receive.
  void fill(int start) {
    in_.bytes() = empty_.bytes();
    const int me = group_.rank, n = group_.size;
    const bool scattered = scatters(drawn_.what);
    if (drawn_.what == What::broadcast) {
      if (at_root_) in_.scatter(receiving_.runs(0, drawn_.count), block(start, root_, 0, drawn_.count));
    } else if (one_out()) {
      const int count = length(me, root_);
      if (in_place())
        in_.scatter(place(me), block(start, me, 0, count));
      else
        out_.scatter(sending_.runs(0, count), block(start, me, 0, count));
    } else if (!scattered || at_root_) {
      for (int to = 0; to < n; ++to) {
        if (!scattered && in_place())
          in_.scatter(place(to), block(start, me, to, length(me, to)));
        else
          out_.scatter(sending_.runs(at(to), length(me, to)), block(start, me, to, length(me, to)));
      }
    }
    sent_ = out_;
    expected_.bytes() = in_.bytes();
    if (drawn_.what == What::broadcast) {
      expected_.scatter(receiving_.runs(0, drawn_.count), block(start, root_, 0, drawn_.count));
    } else if (scattered) {
      if (!in_place())
        expected_.scatter(receiving_.runs(0, length(root_, me)), block(start, root_, me, length(root_, me)));
    } else if (at_root_) {
      for (int from = 0; from < n; ++from)
        expected_.scatter(place(from), block(start, from, from_all_to_all(drawn_.what) ? me : 0, length(from, me)));
    }
  }

  std::vector<ByteRun> place(int from) const { return receiving_.runs(at(from), length(from, group_.rank)); }

  Arguments arguments() {
    Arguments a;
    a.out = out_.origin();
    a.out_count = length(group_.rank, root_);
    a.out_type = sending_.type();
    a.in = in_.origin();
    a.in_count = drawn_.what == What::scatterv ? length(root_, group_.rank) : drawn_.count;
    a.in_type = receiving_.type();
    a.root = root_;
    a.comm = group_.comm;
    std::vector<int> counts, out_counts, places;
    for (int rank = 0; varies() && rank < group_.size; ++rank) {
      counts.push_back(drawn_.what == What::scatterv ? length(root_, rank) : length(rank, group_.rank));
      out_counts.push_back(length(group_.rank, rank));
      places.push_back(static_cast<int>(at(rank)));
    }
    if (drawn_.what == What::alltoallw) {
      a.give_counts(counts, in_bytes(places, receiving_));
      a.give_out_counts(out_counts, in_bytes(places, sending_));
      a.in_types = types_of(receiving_, &a.counts, &a.large_counts);
      a.out_types = types_of(sending_, &a.out_counts, &a.large_out_counts);
    } else {
      a.give_counts(std::move(counts), places);
      a.give_out_counts(std::move(out_counts), places);
    }
    if (in_place() && scatters(drawn_.what))
      a.in = MPI_IN_PLACE;
    else if (in_place())
      a.out = MPI_IN_PLACE;
    return a;
  }

  static std::vector<int> in_bytes(std::vector<int> places, const Side& side) {
    for (int& place : places) place *= static_cast<int>(side.extent);
    return places;
  }
  /// A type for each rank: the side's type or, for every second rank with data, a type that holds the whole block. In
  /// place, only the side's type: MPICH 4.0.2 delivers wrong bytes in place if a type is not predefined.
  std::vector<MPI_Datatype> types_of(const Side& side, std::vector<int>* counts, std::vector<MPI_Count>* large_counts) {
    std::vector<MPI_Datatype> types;
    for (std::size_t rank = 0; rank < counts->size(); ++rank) {
      types.push_back(side.type());
      int& count = (*counts)[rank];
      if (rank % 2 == 0 || count == 0 || in_place()) continue;
      MPI_Type_contiguous(count, side.type(), &types.back());
      MPI_Type_commit(&types.back());
      whole_blocks_.push_back(types.back());
      count = 1;
      (*large_counts)[rank] = 1;
    }
    return types;
  }

  const Case& drawn_;
  const Group& group_;
  const std::uint64_t seed_;
  const int root_;
  const bool at_root_;
  Side sending_, receiving_;
  const std::int64_t packed_;
  Buffer out_, in_, empty_, expected_, sent_ = out_;
  std::vector<MPI_Datatype> whole_blocks_;
};

}  // namespace

std::string move_at_random(std::uint64_t seed, const Groups& groups, int least, std::string* told,
                           const std::function<void()>& tell) {
  Random random(seed);
  const Case drawn = draw(random, groups, least);
  const Group& group = groups[drawn.group];
  *told = std::string(name(drawn.what)) + " " + name(drawn.form) + " on " + group.name + ", root " +
          std::to_string(drawn.root) + (drawn.in_place ? ", in place, " : ", ") + std::to_string(drawn.count) + " of " +
          drawn.type.text();
  tell();
  if (group.comm == MPI_COMM_NULL) return "";
  Part part(drawn, group, seed, Random(seed + 7919 * static_cast<std::uint64_t>(world_rank() + 1)));
  return part.library_may_be_wrong() ? "" : part.run();
}

}  // namespace bestride::test
