// SPDX-License-Identifier: Apache-2.0
#include "model/processors.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "model/sys_tree.hpp"

namespace bestride::inline model {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Two NUMA domains of two cores with two threads each: core c has threads c and c + 4.
class Host : public testing::Test {
 protected:
  Host() {
    tree_.write("devices/system/cpu/online", "0-7\n");
    tree_.write("devices/system/node/online", "0-1\n");
    tree_.write("devices/system/node/node0/cpulist", "0-1,4-5\n");
    tree_.write("devices/system/node/node1/cpulist", "2-3,6-7\n");
    for (int cpu = 0; cpu < 8; ++cpu)
      tree_.write("devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/" +
                      (cpu < 6 ? "core_cpus_list" : "thread_siblings_list"),
                  std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4) + "\n");
  }
  Binding bound(std::vector<int> allowed) { return binding_of(allowed, tree_.root()); }
  test::SysTree tree_;
};

TEST_F(Host, BoundToAThreadOrACore) {
  for (const std::vector<int>& allowed : {std::vector<int>{5}, {1, 5}}) {
    EXPECT_EQ(bound(allowed).core, 1);
    EXPECT_EQ(bound(allowed).domain, 0);
  }
  EXPECT_EQ(bound({7}).core, 3);
  EXPECT_EQ(bound({7}).domain, 1);
}

TEST_F(Host, BoundToADomainOrNothing) {
  EXPECT_EQ(bound({2, 3, 6, 7}).core, -1);
  EXPECT_EQ(bound({2, 3}).domain, 1);
  EXPECT_EQ(bound({1, 2}).domain, -1);
  EXPECT_EQ(bound({0, 1, 2, 3, 4, 5, 6, 7}).domain, -1);
}

TEST_F(Host, OtherProcessorsAreUnknown) {
  for (const std::vector<int>& allowed : {std::vector<int>{}, {8}, {8, 9}}) {
    EXPECT_EQ(bound(allowed).core, std::nullopt);
    EXPECT_EQ(bound(allowed).domain, std::nullopt);
  }
}

TEST_F(Host, IsCounted) {
  const Processors here = processors_here(tree_.root());
  EXPECT_EQ(here.threads, 8);
  EXPECT_EQ(here.cores, 4);
  EXPECT_EQ(here.domains, 2);
}

TEST(Processors, OfAHostWithoutInformation) {
  const test::SysTree empty;
  const int allowed[] = {0};
  EXPECT_EQ(binding_of(allowed, empty.root()).core, std::nullopt);
  EXPECT_EQ(binding_of(allowed, empty.root()).domain, std::nullopt);
  EXPECT_EQ(processors_here(empty.root()).threads, std::nullopt);
}

TEST(Processors, AllowedAsInTheKernel) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  const std::vector<int> allowed = allowed_processors();
  EXPECT_EQ(static_cast<int>(allowed.size()), CPU_COUNT(&set));
  for (const int cpu : allowed) EXPECT_TRUE(CPU_ISSET(static_cast<std::size_t>(cpu), &set));
}

TEST(Processors, CpuLists) {
  EXPECT_THAT(parse_cpu_list("0-3,8\n"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(parse_cpu_list("5"), ElementsAre(5));
  EXPECT_THAT(parse_cpu_list(""), IsEmpty());
  EXPECT_THAT(parse_cpu_list("x"), IsEmpty());
  EXPECT_THAT(parse_cpu_list("1,4-2"), ElementsAre(1));
  EXPECT_THAT(parse_cpu_list("2,0-2147483647"), ElementsAre(2));
  EXPECT_THAT(parse_cpu_list("2147483647"), ElementsAre(2147483647));
}

TEST(Processors, GroupsOfSlurmsAddresses) {
  const auto group = [](const char* address) { return group_of_address(address, "switch.switch.node"); };
  EXPECT_EQ(group(nullptr), -1);
  EXPECT_EQ(group(""), -1);
  EXPECT_EQ(group("cn01"), -1);
  EXPECT_EQ(group("root.leaf1.cn01"), group("root.leaf1.cn02"));
  EXPECT_NE(group("root.leaf1.cn01"), group("root.leaf2.cn01"));
  EXPECT_GE(group("root.leaf1.cn01"), 0);
  EXPECT_EQ(group_of_address("cn01.cluster", "node"), -1);
  EXPECT_EQ(group_of_address("root.leaf1.cn01", nullptr), -1);
}

}  // namespace
}  // namespace bestride::inline model
