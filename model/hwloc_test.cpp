// SPDX-License-Identifier: Apache-2.0
// Runs on the stand-in and, if it is installed, on the real library.
#include "model/hwloc.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "model/hwloc_environment.hpp"
#include "model/processors.hpp"
#include "model/sys_tree.hpp"

namespace bestride::inline model {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using HwlocStandIn = test::HwlocEnvironment;

TEST_F(HwlocStandIn, ItsMachine) {
  const Result<HwlocMachine> machine = hwloc_machine(BESTRIDE_FAKE_HWLOC);
  ASSERT_TRUE(machine) << machine.error().text;
  ASSERT_EQ(machine->cores.size(), 2u);
  EXPECT_EQ(machine->cores[0].number, 0);
  EXPECT_THAT(machine->cores[0].processors, ElementsAre(0, 2));
  EXPECT_EQ(machine->cores[1].number, 1);
  EXPECT_THAT(machine->cores[1].processors, ElementsAre(1, 3));
  ASSERT_EQ(machine->domains.size(), 3u);
  EXPECT_EQ(machine->domains[0].number, 5);
  EXPECT_THAT(machine->domains[0].processors, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(machine->domains[2].number, 8);
}

TEST_F(HwlocStandIn, LeavesNothingBehind) {
  {
    const test::Library held(BESTRIDE_FAKE_HWLOC);
    const auto has_topology = reinterpret_cast<bool (*)()>(dlsym(held.handle(), "fake_hwloc_has_topology"));
    for (const char* failing : {"", "version", "init", "components", "flags", "filter", "load"}) {
      set("FAKE_HWLOC", failing);
      EXPECT_EQ(static_cast<bool>(hwloc_machine(BESTRIDE_FAKE_HWLOC)), *failing == '\0') << failing;
      EXPECT_FALSE(has_topology()) << failing;
    }
  }
  EXPECT_EQ(dlopen(BESTRIDE_FAKE_HWLOC, RTLD_LAZY | RTLD_NOLOAD), nullptr);
}

TEST_F(HwlocStandIn, ReportsWhyNothingIsKnown) {
  EXPECT_EQ(hwloc_machine("/nowhere/libhwloc.so.15").error().text, "/nowhere/libhwloc.so.15 can't be loaded");
  EXPECT_EQ(hwloc_machine("libm.so.6").error().text, "libm.so.6 is not hwloc 2.1 or a later 2");
  set("FAKE_HWLOC", "version");
  EXPECT_THAT(hwloc_machine(BESTRIDE_FAKE_HWLOC).error().text, testing::EndsWith("libhwloc.so.15 is not hwloc 2"));
  set("FAKE_HWLOC", "load");
  EXPECT_EQ(hwloc_machine(BESTRIDE_FAKE_HWLOC).error().text, "hwloc could not load a topology");
}

TEST_F(HwlocStandIn, UsesTheLoadedLibrary) {
  const test::Library held(BESTRIDE_FAKE_HWLOC);
  const Result<HwlocMachine> machine = hwloc_machine();
  ASSERT_TRUE(machine);
  EXPECT_EQ(machine->domains.at(0).number, 5);
}

class RealHwloc : public test::HwlocEnvironment {
 protected:
  void SetUp() override {
    if (!test::Library(hwloc_library).handle()) GTEST_SKIP() << hwloc_library << " is not installed";
  }
};

TEST_F(RealHwloc, OfASyntheticMachine) {
  set("HWLOC_SYNTHETIC", "numa:2 core:2 pu:2(indexes=0,4,1,5,2,6,3,7)");
  const Result<HwlocMachine> machine = hwloc_machine();
  ASSERT_TRUE(machine) << machine.error().text;
  ASSERT_EQ(machine->cores.size(), 4u);
  EXPECT_EQ(machine->cores[3].number, 3);
  EXPECT_THAT(machine->cores[3].processors, ElementsAre(3, 7));
  ASSERT_EQ(machine->domains.size(), 2u);
  EXPECT_EQ(machine->domains[1].number, 1);
  EXPECT_THAT(machine->domains[1].processors, ElementsAre(2, 3, 6, 7));
}

TEST_F(RealHwloc, OfAMachineWhoseCoresAreNotKnown) {
  set("HWLOC_SYNTHETIC", "numa:2 pu:2");
  const Result<HwlocMachine> machine = hwloc_machine();
  ASSERT_TRUE(machine);
  EXPECT_THAT(machine->cores, IsEmpty());
  EXPECT_EQ(machine->domains.size(), 2u);
}

TEST_F(RealHwloc, OfAMachineInAFile) {
  test::SysTree folder;
  folder.write("machine.xml", R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x2" nodeset="0x8" complete_nodeset="0x8" allowed_nodeset="0x8" gp_index="1">
    <object type="NUMANode" os_index="3" cpuset="0x3" complete_cpuset="0x3" nodeset="0x8" complete_nodeset="0x8" gp_index="2" local_memory="1024"/>
    <object type="Core" os_index="0" cpuset="0x3" complete_cpuset="0x3" nodeset="0x8" complete_nodeset="0x8" gp_index="3">
      <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x8" complete_nodeset="0x8" gp_index="4"/>
      <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x8" complete_nodeset="0x8" gp_index="5"/>
    </object>
  </object>
</topology>
)");
  set("HWLOC_XMLFILE", folder.root() + "/machine.xml");
  const Result<HwlocMachine> machine = hwloc_machine();
  ASSERT_TRUE(machine) << machine.error().text;
  // Processor 0 was not allowed for the process that wrote the file, but the core still has its number.
  ASSERT_EQ(machine->cores.size(), 1u);
  EXPECT_THAT(machine->cores[0].processors, ElementsAre(0, 1));
  ASSERT_EQ(machine->domains.size(), 1u);
  EXPECT_EQ(machine->domains[0].number, 3);
}

TEST_F(RealHwloc, OfThisMachine) {
  const std::vector<int> allowed = allowed_processors();
  const Result<HwlocMachine> machine = hwloc_machine();
  ASSERT_TRUE(machine) << machine.error().text;
  EXPECT_EQ(allowed_processors(), allowed) << "the binding changed";
  std::vector<int> known;
  for (const HwlocMachine::Part& domain : machine->domains)
    known.insert(known.end(), domain.processors.begin(), domain.processors.end());
  EXPECT_THAT(known, testing::IsSupersetOf(allowed));
}

}  // namespace
}  // namespace bestride::inline model
