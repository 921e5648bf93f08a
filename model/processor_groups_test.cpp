// SPDX-License-Identifier: Apache-2.0
#include "model/processor_groups.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "model/sys_tree.hpp"

namespace {

using namespace bestride;

/// Two sockets of two NUMA domains of two caches of two cores of two hardware threads each: 32 processors. Threads of a
/// core are 16 apart.
class GroupsOfProcessors : public testing::Test {
 protected:
  GroupsOfProcessors() {
    for (int cpu = 0; cpu < 32; ++cpu) {
      const std::string folder = "devices/system/cpu/cpu" + std::to_string(cpu);
      const int core = cpu % 16;
      const auto list = [core](int cores) {
        const int low = core / cores * cores, high = low + cores - 1;
        return std::to_string(low) + "-" + std::to_string(high) + "," + std::to_string(low + 16) + "-" +
               std::to_string(high + 16) + "\n";
      };
      sys.write(folder + "/topology/core_cpus_list", list(1));
      sys.write(folder + "/topology/package_cpus_list", list(8));
      sys.write(folder + "/cache/index0/type", "Data\n");
      sys.write(folder + "/cache/index0/level", "1\n");
      sys.write(folder + "/cache/index0/shared_cpu_list", list(1));
      sys.write(folder + "/cache/index1/type", "Unified\n");
      sys.write(folder + "/cache/index1/level", "3\n");
      sys.write(folder + "/cache/index1/shared_cpu_list", list(2));
      sys.write(folder + "/cache/index2/type", "Instruction\n");
      sys.write(folder + "/cache/index2/level", "4\n");
      sys.write(folder + "/cache/index2/shared_cpu_list", list(8));
      const std::string domain = "node" + std::to_string(core / 4);
      sys.link(folder + "/" + domain, "../../node/" + domain);
      sys.write("devices/system/node/" + domain + "/cpulist", list(4));
    }
  }
  ProcessorGroups at(std::vector<int> processors) const { return groups_of(processors, sys.root()); }
  Distance between(std::vector<int> one, std::vector<int> other) const {
    return distance_between(at(std::move(one)), at(std::move(other)));
  }

  test::SysTree sys;
};

TEST_F(GroupsOfProcessors, GroupsAreNamedByTheirLowestProcessor) {
  EXPECT_EQ(at({21}), (ProcessorGroups{4, 4, 0}));
  EXPECT_EQ(at({11, 26}), (ProcessorGroups{10, 8, 8}));
  EXPECT_EQ(at({0, 2}), (ProcessorGroups{-1, 0, 0}));
  EXPECT_EQ(at({0, 4}), (ProcessorGroups{-1, -1, 0}));
  EXPECT_EQ(at({0, 8}), (ProcessorGroups{-1, -1, -1}));
  EXPECT_FALSE(at({0, 8}).known());
  EXPECT_FALSE(at({}).known());
}

TEST_F(GroupsOfProcessors, TheNearestCommonGroupIsTheDistance) {
  EXPECT_EQ(between({0}, {1}), Distance::cache);
  EXPECT_EQ(between({0}, {16}), Distance::cache);
  EXPECT_EQ(between({0, 1, 16, 17}, {0, 1, 16, 17}), Distance::cache);
  EXPECT_EQ(between({0}, {2}), Distance::domain);
  EXPECT_EQ(between({0, 2}, {0}), Distance::domain);
  EXPECT_EQ(between({0}, {4}), Distance::socket);
  EXPECT_EQ(between({0}, {8}), Distance::node);
}

TEST_F(GroupsOfProcessors, RanksThatMayUseAllProcessorsAreFar) {
  std::vector<int> all;
  for (int cpu = 0; cpu < 32; ++cpu) all.push_back(cpu);
  EXPECT_EQ(between(all, all), Distance::node);
  EXPECT_EQ(between(all, {0}), Distance::node);
}

TEST_F(GroupsOfProcessors, APairOfProcessorsIsFoundForEachDistance) {
  const auto pair = [this](Distance distance, std::vector<int> allowed) {
    return processors_at(distance, allowed, sys.root()).value_or(std::pair(-1, -1));
  };
  EXPECT_EQ(pair(Distance::cache, {0, 1, 2, 4, 8, 16}), std::pair(0, 1));
  EXPECT_EQ(pair(Distance::cache, {0, 2, 16}), std::pair(0, 16));  // two threads of one core, if there is no other pair
  EXPECT_EQ(pair(Distance::cache, {0, 16, 1}), std::pair(0, 1)) << "another core rather than another thread";
  EXPECT_EQ(pair(Distance::domain, {0, 1, 2, 4, 8, 16}), std::pair(0, 2));
  EXPECT_EQ(pair(Distance::socket, {0, 1, 2, 4, 8, 16}), std::pair(0, 4));
  EXPECT_EQ(pair(Distance::domain, {0, 1, 4, 8}), std::pair(-1, -1));
  EXPECT_EQ(pair(Distance::cache, {}), std::pair(-1, -1));
}

TEST(ProcessorGroups, WithoutSysNothingIsKnown) {
  const int processors[] = {0, 1};
  EXPECT_FALSE(groups_of(processors, "/nonexistent").known());
  EXPECT_FALSE(processors_at(Distance::cache, processors, "/nonexistent"));
  EXPECT_EQ(distance_between({}, {}), Distance::node);
}

}  // namespace
