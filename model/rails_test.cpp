// SPDX-License-Identifier: Apache-2.0
#include "model/rails.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "model/sys_tree.hpp"

namespace bestride::inline model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StrEq;

Nic ethernet(std::string name, std::int64_t speed_mbit) {
  Nic nic;
  nic.name = std::move(name);
  nic.up = nic.address = nic.hardware = true;
  nic.speed_mbit = speed_mbit;
  nic.driver = "ice";
  return nic;
}
Nic infiniband(std::string name, std::int64_t speed_mbit) {
  Nic nic = ethernet(std::move(name), speed_mbit);
  nic.rdma = true;
  nic.driver = "mlx5_core";
  nic.subnet = "InfiniBand fe80:0000:0000:0000";
  return nic;
}

Rails chosen(std::vector<Nic> nics) {
  const Result<Rails> rails = equal_rails(nics);
  return rails ? *rails : Rails{};
}

TEST(Rails, AreTheFastestEqualNics) {
  EXPECT_THAT(chosen({ethernet("eth0", 1000), ethernet("eth1", 25000), ethernet("eth2", 25000)}),
              ElementsAre("eth1", "eth2"));
  EXPECT_THAT(chosen({ethernet("eth0", 25000), ethernet("eth1", 10000), ethernet("eth2", 10000)}), ElementsAre());
  EXPECT_THAT(chosen({ethernet("eth0", 25000)}), ElementsAre());
  EXPECT_THAT(chosen({}), ElementsAre());
}

TEST(Rails, MustCarryTraffic) {
  for (bool Nic::*needed : {&Nic::up, &Nic::address, &Nic::hardware}) {
    Nic idle = ethernet("eth1", 1000);
    idle.*needed = false;
    EXPECT_THAT(chosen({ethernet("eth0", 1000), idle}), ElementsAre());
    EXPECT_THAT(chosen({ethernet("eth0", 1000), idle, ethernet("eth2", 1000)}), ElementsAre("eth0", "eth2"));
  }
  EXPECT_THAT(chosen({ethernet("eth0", 0), ethernet("eth1", 0)}), ElementsAre());
}

TEST(Rails, MustBeAlike) {
  Nic other = ethernet("eth1", 1000);
  other.driver = "igb";
  const std::vector<Nic> nics = {ethernet("eth0", 1000), other};
  EXPECT_THAT(equal_rails(nics).error().text,
              HasSubstr("eth0 and eth1 are of the same speed but not alike; name the rails"));
}

TEST(Rails, PreferRdmaPorts) {
  const std::vector<Nic> interfaces = {ethernet("eth0", 400000), ethernet("eth1", 400000)};
  std::vector<Nic> nics = interfaces;
  nics.push_back(infiniband("mlx5_0:1", 100000));
  EXPECT_THAT(chosen(nics), ElementsAre());
  nics.push_back(infiniband("mlx5_1:1", 100000));
  EXPECT_THAT(chosen(nics), ElementsAre("mlx5_0:1", "mlx5_1:1"));
  nics.back().subnet = "InfiniBand fe80:0000:0000:0001";
  EXPECT_THAT(chosen(nics), ElementsAre());
  nics.back().up = false;
  EXPECT_THAT(chosen(nics), ElementsAre());
  nics[2].up = false;
  EXPECT_THAT(chosen(nics), ElementsAre("eth0", "eth1"));

  std::vector<Nic> foreign = {infiniband("efa_0:1", 100000), infiniband("efa_1:1", 100000)};
  for (Nic& nic : foreign) nic.driver = "efa";
  EXPECT_THAT(equal_rails(foreign).error().text, HasSubstr("efa_0:1 is no device of UCX"));
}

TEST(Rails, ByName) {
  std::vector<Nic> nics = {infiniband("mlx5_0:1", 100000), ethernet("eth0", 1000), ethernet("veth1", 10000),
                           ethernet("eth2", 1000), ethernet("eth3", 1)};
  nics[2].hardware = false;
  nics[3].up = false;
  nics[4].address = false;
  const auto rails = [&nics](const char* list) { return *named_rails(list, nics); };
  EXPECT_THAT(rails("veth1,eth0"), ElementsAre("veth1", "eth0"));
  EXPECT_THAT(rails("mlx5_0:1"), ElementsAre("mlx5_0:1"));
  const auto error = [&nics](const char* list) { return named_rails(list, nics).error().text; };
  EXPECT_EQ(error("eth0,eth7"), "this host has no 'eth7'; what is up here: mlx5_0:1 eth0 veth1 eth3");
  EXPECT_THAT(error("eth2"), HasSubstr("'eth2' is down;"));
  EXPECT_THAT(error("eth3"), HasSubstr("'eth3' has no address;"));
  EXPECT_EQ(error("mlx5_0"), "'mlx5_0' lacks its port; write mlx5_0:1");
  for (const char* list : {"", "eth0,", ",eth0", "eth0,,veth1"})
    EXPECT_THAT(error(list), HasSubstr("a name is missing;")) << list;
}

TEST(Rails, OfAList) {
  EXPECT_THAT(*rails_of_list("eth0,mlx5_0:1,eth0"), ElementsAre("eth0", "mlx5_0:1", "eth0"));
  EXPECT_EQ(list_of({"eth0", "mlx5_0:1"}), "eth0,mlx5_0:1");
  EXPECT_EQ(list_of({}), "");
  const auto error = [](const std::string& list) { return rails_of_list(list).error().text; };
  EXPECT_THAT(error("eth0, eth1"), HasSubstr("has a blank in it"));
  EXPECT_THAT(error("eth0\n"), HasSubstr("has a blank in it"));
  EXPECT_THAT(error(std::string(65, 'e')), HasSubstr("longer than any NIC's name"));
  std::string many = "eth0";
  for (int i = 1; i < 64; ++i) many += ",eth0";
  EXPECT_EQ(rails_of_list(many)->size(), 64u);
  EXPECT_THAT(error(many + ",eth0"), HasSubstr("more than 64"));
}

TEST(Rails, AreAssignedAlikeOnEveryHost) {
  for (int rails = 1; rails <= 5; ++rails)
    for (int local_ranks = 1; local_ranks <= 17; ++local_ranks) {
      std::vector<int> load(static_cast<std::size_t>(rails));
      for (int l = 0; l < local_ranks; ++l) ++load[static_cast<std::size_t>(rail_of(l, rails))];
      const auto [least, most] = std::minmax_element(load.begin(), load.end());
      EXPECT_LE(*most - *least, 1);
    }
}

TEST(Rails, Variables) {
  EXPECT_THAT(device_variables("eth0"),
              ElementsAre(StrEq("UCX_NET_DEVICES"), StrEq("FI_TCP_IFACE"), StrEq("FI_SOCKETS_IFACE")));
  EXPECT_THAT(device_variables("mlx5_0:1"), ElementsAre(StrEq("UCX_NET_DEVICES")));
}

TEST(Nics, FromSys) {
  test::SysTree tree;
  tree.write("class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
  tree.write("class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)\n");
  tree.write("class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
  tree.write("class/infiniband/mlx5_0/ports/1/gids/0", "fe80:0000:0000:0000:b859:9f03:00aa:bbcc\n");
  tree.link("class/infiniband/mlx5_0/device/driver", "../../bus/pci/drivers/mlx5_core");
  tree.write("class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n");
  tree.write("class/net/eth0/speed", "25000\n");
  tree.link("class/net/eth0/device/driver", "../../bus/pci/drivers/ice");
  tree.write("class/net/eth1/speed", "-1\n");
  tree.write("class/net/eth1/device/vendor", "0x1af4\n");
  tree.link("class/net/eth1/master", "../bond0");
  tree.write("class/net/veth0/speed", "10000\n");
  tree.write("class/net/wlan0/device/vendor", "0x8086\n");
  tree.write("class/net/wlan0/wireless/status", "0\n");
  const InterfaceState states[] = {
      {"eth0", true, true}, {"eth1", true, false}, {"veth0", true, true}, {"wlan0", true, true}};
  const std::vector<Nic> nics = nics_of(states, tree.root());
  ASSERT_EQ(nics.size(), 6u);
  EXPECT_EQ(nics[0].name, "mlx5_0:1");
  EXPECT_TRUE(nics[0].rdma && nics[0].up && nics[0].hardware && nics[0].address);
  EXPECT_EQ(nics[0].speed_mbit, 200000);
  EXPECT_EQ(nics[0].driver, "mlx5_core");
  EXPECT_EQ(nics[0].subnet, "InfiniBand fe80:0000:0000:0000");
  EXPECT_EQ(nics[1].name, "mlx5_1:1");
  EXPECT_FALSE(nics[1].up);
  EXPECT_EQ(nics[2].name, "eth0");
  EXPECT_TRUE(nics[2].up && nics[2].address && nics[2].hardware);
  EXPECT_FALSE(nics[2].rdma);
  EXPECT_EQ(nics[2].speed_mbit, 25000);
  EXPECT_EQ(nics[2].driver, "ice");
  EXPECT_EQ(nics[3].speed_mbit, 0);
  for (int i : {3, 4, 5})
    EXPECT_FALSE(nics[static_cast<std::size_t>(i)].hardware) << nics[static_cast<std::size_t>(i)].name;
}

TEST(Nics, OfThisHost) {
  const std::vector<InterfaceState> states = interface_states();
  std::set<std::string> names;
  for (const InterfaceState& state : states) names.insert(state.name);
  EXPECT_EQ(names.size(), states.size());
  EXPECT_TRUE(names.contains("lo"));
}

}  // namespace
}  // namespace bestride::inline model
