// SPDX-License-Identifier: Apache-2.0
// Communicators: every way to create one. The members are computed independently.
#include <algorithm>
#include <numeric>

#include "tests/fuzz/programs/common.h"
#include "tests/fuzz/programs/context.hpp"

namespace bestride::fuzz {
namespace {

constexpr std::size_t max_comms = 7;

std::vector<int> identity(int n) {
  std::vector<int> list(static_cast<std::size_t>(n));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

/// A new group of members of a parent's group, in the given order.
Group subset(const Group& parent, const std::vector<int>& members) {
  Group group;
  for (const int r : members) group.world.push_back(parent.world[static_cast<std::size_t>(r)]);
  return group;
}

void neighbors_of_cart(Group& group) {
  const int n = group.size(), dimensions = static_cast<int>(group.dims.size());
  group.sources.assign(static_cast<std::size_t>(n), {});
  for (int r = 0; r < n; ++r)
    for (int d = 0; d < dimensions; ++d) {
      int below = 1;
      for (int e = d + 1; e < dimensions; ++e) below *= group.dims[static_cast<std::size_t>(e)];
      const int size = group.dims[static_cast<std::size_t>(d)], at = r / below % size;
      for (const int step : {-1, 1}) {
        const int there = at + step;
        const bool outside = there < 0 || there >= size;
        const int other = outside && !group.periods[static_cast<std::size_t>(d)]
                              ? MPI_PROC_NULL
                              : r + ((there + size) % size - at) * below;
        group.sources[static_cast<std::size_t>(r)].push_back(other);
      }
    }
  group.targets = group.sources;
}

struct Maker {
  Context& context;
  const Step& step;
  CommSlot& parent;
  Random common;
  CommSlot made{};
  std::vector<int> members{};  // of this rank's group, as ranks of the parent

  bool member() const { return parent.mine >= 0; }
  const Group& mine() const { return parent.group(); }

  /// For each group of the parent: the lists of its new groups.
  template <class F>
  void divide(F lists_of) {
    for (int g = 0; g < static_cast<int>(parent.groups.size()); ++g) {
      const Group& group = parent.groups[static_cast<std::size_t>(g)];
      for (const std::vector<int>& list : lists_of(group)) {
        if (list.empty()) continue;
        const auto me = std::find(list.begin(), list.end(), parent.rank);
        if (g == parent.mine && me != list.end()) {
          made.mine = static_cast<int>(made.groups.size());
          made.rank = static_cast<int>(me - list.begin());
          members = list;
        }
        made.groups.push_back(subset(group, list));
      }
    }
  }
  void same() {
    made.groups = parent.groups;
    made.mine = parent.mine;
    made.rank = parent.rank;
  }
  New result() { return {&made.h, "comm"}; }

  void split(bool shared) {
    const std::uint64_t salt = common.bits();
    const bool reverse = common.chance(30), some_out = !shared && common.chance(20);
    const auto color = [&](int world) {
      const int value = static_cast<int>(fuzz_mix(salt + static_cast<std::uint64_t>(world)) % 6);
      return shared ? 0 : some_out && value == 5 ? MPI_UNDEFINED : value % 2;
    };
    divide([&](const Group& group) {
      std::vector<std::vector<int>> lists(2);
      for (int r = 0; r < group.size(); ++r)
        if (const int c = color(group.world[static_cast<std::size_t>(r)]); c != MPI_UNDEFINED)
          lists[static_cast<std::size_t>(c)].push_back(r);
      if (reverse)
        for (auto& list : lists) std::reverse(list.begin(), list.end());
      return lists;
    });
    if (!member()) return;
    const int key = reverse ? -parent.rank : 0;
    if (shared)
      CALL(context, Comm_split_type, parent.h, MPI_COMM_TYPE_SHARED, key, MPI_INFO_NULL, result());
    else
      CALL(context, Comm_split, parent.h, color(context.rank), key, result());
  }

  void create(bool by_group) {
    const std::uint64_t salt = common.bits();
    divide([&](const Group& group) {
      std::vector<int> list;
      for (int r = 0; r < group.size(); ++r)
        if (fuzz_mix(salt + static_cast<std::uint64_t>(r)) % 4 != 0) list.push_back(r);
      if (list.empty()) list.push_back(0);
      std::rotate(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(salt % list.size()), list.end());
      return std::vector<std::vector<int>>{list};
    });
    if (!member() || (by_group && made.mine < 0)) return;
    // All ranks of the parent's group pass the group, members or not.
    std::vector<int> list = members;
    if (list.empty()) {
      for (int r = 0; r < mine().size(); ++r)
        if (fuzz_mix(salt + static_cast<std::uint64_t>(r)) % 4 != 0) list.push_back(r);
      if (list.empty()) list.push_back(0);
      std::rotate(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(salt % list.size()), list.end());
    }
    MPI_Group all, some;
    CALL(context, Comm_group, parent.h, (New{&all, "group"}));
    CALL(context, Group_incl, all, static_cast<int>(list.size()), list, (New{&some, "group"}));
    if (by_group)
      CALL(context, Comm_create_group, parent.h, some, step.number % 100, result());
    else
      CALL(context, Comm_create, parent.h, some, result());
    CALL(context, Group_free, Gone{&some});
    CALL(context, Group_free, Gone{&all});
  }

  void cart() {
    const std::uint64_t salt = common.bits();
    const int dimensions = static_cast<int>(common.between(1, 3));
    const auto dims_of = [&](int n) {
      std::vector<int> dims(static_cast<std::size_t>(dimensions), 1);
      if (dimensions > 1 && n >= 4)
        dims = {2, n / 2}, dims.resize(static_cast<std::size_t>(dimensions), 1);
      else
        dims[static_cast<std::size_t>(dimensions - 1)] = n;
      return dims;
    };
    std::vector<int> periods;
    for (int d = 0; d < dimensions; ++d) periods.push_back(static_cast<int>(salt >> d & 1));
    divide([&](const Group& group) {
      const auto dims = dims_of(group.size());
      return std::vector<std::vector<int>>{identity(std::accumulate(dims.begin(), dims.end(), 1, std::multiplies<>()))};
    });
    std::size_t at = 0;
    for (const Group& group : parent.groups) {
      Group& mapped = made.groups[at++];
      mapped.topology = Topology::cart;
      mapped.dims = dims_of(group.size());
      mapped.periods = periods;
      neighbors_of_cart(mapped);
    }
    if (member()) CALL(context, Cart_create, parent.h, dimensions, dims_of(mine().size()), periods, 0, result());
  }

  void graph(bool distributed) {
    const std::uint64_t salt = common.bits();
    divide([&](const Group& group) { return std::vector<std::vector<int>>{identity(group.size())}; });
    for (Group& group : made.groups) {
      const int n = group.size();
      group.topology = distributed ? Topology::dist_graph : Topology::graph;
      group.sources.assign(static_cast<std::size_t>(n), {});
      group.targets.assign(static_cast<std::size_t>(n), {});
      for (int from = 0; from < n; ++from)
        for (int to = 0; to < n; ++to) {
          const int low = std::min(from, to), high = std::max(from, to);
          const bool edge = distributed
                                ? fuzz_mix(salt + static_cast<std::uint64_t>(from * 31 + to)) % 2 == 0
                                : low != high && fuzz_mix(salt + static_cast<std::uint64_t>(low * 31 + high)) % 3 != 0;
          if (!edge) continue;
          group.targets[static_cast<std::size_t>(from)].push_back(to);
          group.sources[static_cast<std::size_t>(to)].push_back(from);
        }
    }
    if (!member()) return;
    const Group& group = made.group();
    const auto me = static_cast<std::size_t>(made.rank);
    if (distributed) {
      // Without weights, MPICH accepts null pointers for no neighbors.
      const bool weighted = salt >> 40 & 1;
      List lists[2], weights[2];
      for (const bool out : {true, false}) {
        std::vector<std::int64_t> list((out ? group.targets : group.sources)[me].begin(),
                                       (out ? group.targets : group.sources)[me].end());
        std::vector<std::int64_t> ones(list.size() + 1, 1);
        if (weighted || context.own.chance(50)) list.push_back(0);
        lists[out].set(list, List::Element::integer);
        weights[out].set(ones, List::Element::integer);
        if (!weighted) weights[out].set_pointer(MPI_UNWEIGHTED);
      }
      CALL(context, Dist_graph_create_adjacent, parent.h, static_cast<int>(group.sources[me].size()), lists[0],
           weights[0], static_cast<int>(group.targets[me].size()), lists[1], weights[1], MPI_INFO_NULL, 0, result());
      return;
    }
    std::vector<int> index, edges;
    for (const auto& list : group.targets) {
      edges.insert(edges.end(), list.begin(), list.end());
      index.push_back(static_cast<int>(edges.size()));
    }
    edges.push_back(0);
    CALL(context, Graph_create, parent.h, group.size(), index, edges, 0, result());
  }

  void dup(std::int64_t choice) {
    same();
    if (!member()) return;
    Request request;
    request.id = ++context.operations;
    MPI_Info info = MPI_INFO_NULL;
    if (choice == 1 || choice == 3) {
      CALL(context, Info_create, (New{&info, "info"}));
      CALL(context, Info_set, info, (const char*)"fuzz_key", (const char*)"value");
    }
    if (choice == 0) CALL(context, Comm_dup, parent.h, result());
    if (choice == 1) CALL(context, Comm_dup_with_info, parent.h, info, result());
    if (choice == 2) CALL(context, Comm_idup, parent.h, result(), request);
    if (choice == 3) CALL(context, Comm_idup_with_info, parent.h, info, result(), request);
    if (choice >= 2) {
      if (common.chance(50)) CALL(context, Barrier, parent.h);
      const int value_before = made.h;
      Status status;
      status.id = request.id;
      CALL(context, Wait, request, status);
      if (made.h != value_before && context.recorder)
        context.line("/* the handle of an Idup changed when it completed */");
    }
    if (info != MPI_INFO_NULL) CALL(context, Info_free, Gone{&info});
  }
};

}  // namespace

CommSlot& Context::pick_comm(Random& common, int members) {
  std::vector<std::size_t> fit;
  for (std::size_t i = 0; i < comms.size(); ++i) {
    const auto enough = [&](const Group& group) { return group.size() >= members; };
    if (!comms[i].closed && std::all_of(comms[i].groups.begin(), comms[i].groups.end(), enough)) fit.push_back(i);
  }
  return fit.empty() ? comms[0] : comms[common.pick(fit)];
}

void make_comm(Context& context, const Step& step) {
  const auto open =
      std::count_if(context.comms.begin(), context.comms.end(), [](const CommSlot& slot) { return !slot.closed; });
  if (open >= static_cast<std::ptrdiff_t>(max_comms)) return;
  Random common(seed_of(step, 1));
  CommSlot& parent = context.pick_comm(common);
  const std::int64_t choice = common.between(0, 13);
  Maker maker{context, step, parent, Random(seed_of(step, 2))};
  if (choice <= 3)
    maker.dup(choice);
  else if (choice <= 5)
    maker.split(false);
  else if (choice == 6)
    maker.split(true);
  else if (choice == 7)
    maker.create(false);
  else if (choice == 8)
    maker.create(true);
  else if (choice <= 10)
    maker.cart();
  else if (choice == 11)
    maker.graph(false);
  else
    maker.graph(true);
  CommSlot made = std::move(maker.made);
  if (made.mine >= 0) {
    // In MPICH 4.0.2 not all new communicators inherit the parent's error handler.
    CALL(context, Comm_set_errhandler, made.h, MPI_ERRORS_RETURN);
    int size = 0, rank = 0, result = 0;
    CALL(context, Comm_size, made.h, Out<int>{&size});
    CALL(context, Comm_rank, made.h, Out<int>{&rank});
    CALL(context, Comm_compare, parent.h, made.h, Out<int>{&result});
    context.item("size", size), context.item("rank", rank), context.item("compare", result);
    if (size != made.group().size() || rank != made.rank) context.say("WRONG:members");
  }
  context.comms.push_back(std::move(made));
}

void free_comm(Context& context, const Step& step) {
  Random common(seed_of(step, 1));
  std::vector<std::size_t> fit;
  for (std::size_t i = 1; i < context.comms.size(); ++i) {
    // All ranks know the communicator of each persistent set, even if they are not members.
    if (!context.comms[i].closed && !context.comms[i].world &&
        std::none_of(context.persistent.begin(), context.persistent.end(),
                     [&](const PersistentSet& set) { return set.comm == i; }))
      fit.push_back(i);
  }
  if (fit.empty()) return;
  CommSlot& slot = context.comms[common.pick(fit)];
  slot.closed = true;
  const bool disconnect = common.chance(20) && !context.program->buffer;
  if (slot.mine < 0) return;
  if (disconnect) {
    auto all = std::move(context.pending);
    context.pending.clear();
    complete(context, std::move(all));
    CALL(context, Comm_disconnect, Gone{&slot.h});
  } else {
    CALL(context, Comm_free, Gone{&slot.h});
  }
}

}  // namespace bestride::fuzz
