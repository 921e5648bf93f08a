// SPDX-License-Identifier: Apache-2.0
#include "model/processor_sources.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "model/hwloc_environment.hpp"
#include "model/sys_tree.hpp"

namespace bestride::inline model {
namespace {

constexpr const char* no_library = "/nowhere/libhwloc.so.15";

/// The stand-in reports cores {0, 2} and {1, 3}, and domains 5 {0, 1, 2, 3}, 7 {1, 3} and 8 {1, 3}.
class Sources : public test::HwlocEnvironment {
 protected:
  /// /sys reports each processor as a core.
  void write_cores() {
    for (int cpu = 0; cpu < 4; ++cpu)
      tree_.write("devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/core_cpus_list",
                  std::to_string(cpu) + "\n");
    tree_.write("devices/system/cpu/online", "0-3\n");
  }
  /// One domain with all processors.
  void write_domains() {
    tree_.write("devices/system/node/online", "2\n");
    tree_.write("devices/system/node/node2/cpulist", "0-3\n");
  }
  Sourced<Binding> bound(std::vector<int> allowed, const char* hwloc = BESTRIDE_FAKE_HWLOC) {
    return find_binding(allowed, {tree_.root().c_str(), hwloc});
  }
  void expect(const Sourced<Binding>& found, std::optional<int> core, std::optional<int> domain,
              const std::string& source) {
    EXPECT_EQ(found.known.core, core);
    EXPECT_EQ(found.known.domain, domain);
    EXPECT_EQ(found.source, source);
    EXPECT_EQ(found.by_sys_alone, source == "from /sys");
  }
  test::SysTree tree_;
};

TEST_F(Sources, SysIsEnoughIfComplete) {
  write_cores();
  write_domains();
  set("FAKE_HWLOC", "load");
  expect(bound({1}), 1, 2, "from /sys");
  expect(bound({1, 3}), -1, 2, "from /sys");
}

TEST_F(Sources, HwlocIfSysHasNothing) {
  expect(bound({2}), 0, 5, "from hwloc");
  expect(bound({1, 3}), 1, 7, "from hwloc");
  expect(bound({0, 1}), -1, 5, "from hwloc");
  expect(bound({1, 9}), -1, -1, "from hwloc");
  expect(bound({9}), std::nullopt, std::nullopt, "neither from /sys nor from hwloc");
  expect(bound({}), std::nullopt, std::nullopt, "neither from /sys nor from hwloc");
}

TEST_F(Sources, HwlocFillsGapsOfSys) {
  write_cores();
  expect(bound({3}), 3, 7, "from /sys and hwloc");
}

TEST_F(Sources, FailedHwlocChangesNothing) {
  expect(bound({3}, no_library), std::nullopt, std::nullopt,
         "neither from /sys nor from hwloc; /nowhere/libhwloc.so.15 can't be loaded");
  write_cores();
  expect(bound({3}, no_library), 3, std::nullopt, "from /sys; /nowhere/libhwloc.so.15 can't be loaded");
  set("FAKE_HWLOC", "load");
  expect(bound({3}), 3, std::nullopt, "from /sys; hwloc could not load a topology");
}

TEST_F(Sources, HwlocFirstForAUserSuppliedMachine) {
  write_cores();
  write_domains();
  for (const char* name : {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT"}) {
    set(name, "something");
    expect(bound({3}), 1, 7, std::string("from hwloc (") + name + " is set)");
    set(name, "");
    expect(bound({3}), 3, 2, "from /sys");
  }
  set("HWLOC_SYNTHETIC", "something");
  expect(bound({3}, no_library), 3, 2, "from /sys (HWLOC_SYNTHETIC is set); /nowhere/libhwloc.so.15 can't be loaded");
}

TEST_F(Sources, SysFillsGapsOfAUserSuppliedMachine) {
  tree_.write("devices/system/cpu/cpu9/topology/core_cpus_list", "8-9\n");
  set("HWLOC_SYNTHETIC", "something");
  expect(bound({9}), 8, std::nullopt, "from /sys (HWLOC_SYNTHETIC is set)");
}

TEST_F(Sources, Counted) {
  Sourced<Processors> found = find_processors({tree_.root().c_str(), BESTRIDE_FAKE_HWLOC});
  EXPECT_EQ(found.known.threads, 4);
  EXPECT_EQ(found.known.cores, 2);
  EXPECT_EQ(found.known.domains, 3);
  EXPECT_EQ(found.source, "from hwloc");
  write_cores();
  found = find_processors({tree_.root().c_str(), BESTRIDE_FAKE_HWLOC});
  EXPECT_EQ(found.known.cores, 4);
  EXPECT_EQ(found.known.domains, 3);
  EXPECT_EQ(found.source, "from /sys and hwloc");
  found = find_processors({tree_.root().c_str(), no_library});
  EXPECT_EQ(found.known.domains, std::nullopt);
  EXPECT_EQ(found.source, "from /sys; /nowhere/libhwloc.so.15 can't be loaded");
}

}  // namespace
}  // namespace bestride::inline model
