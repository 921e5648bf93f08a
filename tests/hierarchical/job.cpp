// SPDX-License-Identifier: Apache-2.0
#include "tests/hierarchical/job.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <string_view>

#include "tests/support/harness.hpp"

namespace bestride::test {
namespace {

std::string_view variable(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

const std::atomic<int>& call_counter(const char* name) {
  const auto* counter = static_cast<std::atomic<int>*>(dlsym(RTLD_DEFAULT, name));
  if (!counter) {
    std::fprintf(stderr, "hierarchical_call_counter is not preloaded\n");
    std::abort();
  }
  return *counter;
}

/// Creates communicator number `index`. The name is empty if there are no more.
Group made(int index) {
  const int rank = world_rank(), size = world_size();
  MPI_Comm comm = MPI_COMM_NULL;
  const auto split = [&](const char* name, bool in, int color, int key) {
    MPI_Comm_split(MPI_COMM_WORLD, in ? color : MPI_UNDEFINED, key, &comm);
    return group_of(name, comm, true);
  };
  const auto create = [&](const char* name, const std::vector<int>& ranks) {
    MPI_Group all, some;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
    MPI_Comm_create(MPI_COMM_WORLD, some, &comm);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    return group_of(name, comm, true);
  };
  switch (index) {
    case 0: return group_of("world", MPI_COMM_WORLD, true);
    case 1: MPI_Comm_dup(MPI_COMM_WORLD, &comm); return group_of("dup", comm, true);
    case 2: return split("even and odd", true, rank % 2, 0);
    case 3: return split("reversed", true, 0, -rank);
    case 4: return split("halves reversed", true, 2 * rank < size, -rank);
    case 5: return split("first two thirds", 3 * rank < 2 * size, 0, rank);
    case 6: return split("last two thirds", 3 * rank >= size, 0, (rank * 7) % 5);
    case 7: {
      std::vector<int> odd_first;
      for (const int start : {1, 0})
        for (int r = start; r < size; r += 2) odd_first.push_back(r);
      return create("odd first, created", odd_first);
    }
    case 8: {
      std::vector<int> ends{0};
      if (size > 1) ends.insert(ends.begin(), size - 1);
      return create("last and first, created", ends);
    }
    case 9: {
      MPI_Request request;
      MPI_Comm_idup(MPI_COMM_WORLD, &comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      return group_of("idup", comm, false);
    }
    case 10: {
      const int periodic = 1;
      MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &comm);
      return group_of("cart", comm, true);
    }
    default: return {};
  }
}

}  // namespace

int node_of(int rank) {
  const std::string_view nodes = variable("TEST_NODES");
  return static_cast<std::size_t>(rank) < nodes.size() ? nodes[static_cast<std::size_t>(rank)] : 0;
}

bool reassociates() { return variable("TEST_REASSOCIATE") == "1"; }

Expectation expectation() {
  const std::string_view text = variable("TEST_EXPECT");
  return text == "hierarchical" ? Expectation::hierarchical
         : text == "library"    ? Expectation::library
                                : Expectation::nothing;
}

void* library_function(const char* name) {
  static void* const library = [] {
    std::string path;
    const auto find = [](dl_phdr_info* object, std::size_t, void* found) {
      const std::string_view whole = object->dlpi_name;
      const std::string_view file = whole.substr(whole.rfind('/') + 1);
      if (file.starts_with("libmpich.so") || file.starts_with("libmpi.so")) *static_cast<std::string*>(found) = whole;
      return 0;
    };
    dl_iterate_phdr(find, &path);
    return path.empty() ? nullptr : dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  }();
  void* const function = library ? dlsym(library, name) : nullptr;
  if (!function) {
    std::fprintf(stderr, "%s is not found in the MPI library\n", name);
    std::abort();
  }
  return function;
}

int calls_seen_by_library() {
  static const auto& counter = call_counter("hierarchical_call_counter_calls");
  return counter;
}

long long mapped_bytes() {
  long long sum = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find("memfd:bestride") != std::string::npos) {
      unsigned long long from = 0, to = 0;
      std::sscanf(line.c_str(), "%llx-%llx", &from, &to);
      sum += static_cast<long long>(to - from);
    }
  return sum;
}

Group group_of(std::string name, MPI_Comm comm, bool known) {
  Group group;
  group.name = std::move(name);
  group.comm = comm;
  group.known = known;
  if (comm == MPI_COMM_NULL) return group;
  MPI_Comm_rank(comm, &group.rank);
  MPI_Comm_size(comm, &group.size);
  std::vector<int> ranks(static_cast<std::size_t>(group.size));
  std::iota(ranks.begin(), ranks.end(), 0);
  group.world_ranks.resize(ranks.size());
  MPI_Group own, all;
  MPI_Comm_group(comm, &own);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_translate_ranks(own, group.size, ranks.data(), all, group.world_ranks.data());
  MPI_Group_free(&own);
  MPI_Group_free(&all);
  for (const int rank : group.world_ranks) group.several_nodes |= node_of(rank) != node_of(group.world_ranks[0]);
  return group;
}

Groups::Groups() {
  for (int index = 0;; ++index) {
    Group group = made(index);
    if (group.name.empty()) return;
    groups_.push_back(std::move(group));
  }
}

Groups::~Groups() {
  for (Group& group : groups_)
    if (group.comm != MPI_COMM_NULL && group.comm != MPI_COMM_WORLD) MPI_Comm_free(&group.comm);
}

void Groups::make_again(int index) {
  Group& group = groups_[static_cast<std::size_t>(index)];
  if (group.comm == MPI_COMM_WORLD) return;
  if (group.comm != MPI_COMM_NULL) MPI_Comm_free(&group.comm);
  group = made(index);
}

bool Group::shares_memory(Shareable how) const {
  if (expectation() != Expectation::hierarchical || several_nodes || size < 2) return false;
  switch (how) {
    case Shareable::in_call: return blocking_calls >= 2;
    case Shareable::nonblocking: return known && shareable_starts >= 2;
    case Shareable::persistent: return true;
    case Shareable::no: break;
  }
  return false;
}

Watch::Watch(const Group& group, bool possible, Wait wait, Shareable how, bool has_data) {
  if (expectation() == Expectation::nothing) return;
  group.known |= wait != Wait::nonblocking;
  const bool hierarchical =
      (expectation() == Expectation::hierarchical && possible && group.several_nodes && group.known) ||
      (has_data && group.shares_memory(how));
  // Members take part in some blocking calls without data, too.
  const bool either = !has_data && how == Shareable::in_call && group.shares_memory(how);
  group.blocking_calls += wait == Wait::in_call;
  group.shareable_starts += how == Shareable::nonblocking && group.known;
  // With a low limit there may be no memory for another persistent collective.
  if (how == Shareable::persistent && std::getenv("BESTRIDE_WINDOW_LIMIT") && !group.several_nodes) return;
  if (either) return;
  expected_ = hierarchical ? Expectation::hierarchical : Expectation::library;
  before_ = calls_seen_by_library();
}

std::string Watch::verdict() const {
  if (expected_ == Expectation::nothing) return "";
  const int calls = calls_seen_by_library() - before_;
  if (expected_ == Expectation::hierarchical) return calls == 0 ? "" : "went to the MPI library";
  return calls == 1 ? "" : "did not go to the MPI library";
}

}  // namespace bestride::test
