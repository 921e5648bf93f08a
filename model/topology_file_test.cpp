// SPDX-License-Identifier: Apache-2.0
#include "model/topology_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "model/sys_tree.hpp"

namespace bestride::inline model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Six ranks, two on each node, as the MPI library reports them.
const std::vector<RankLocation> three_nodes = {{0, 7, 0, 0}, {0, 7, 0, 1}, {2, 7, 0, 0},
                                               {2, 7, 0, 1}, {4, 8, 0, 0}, {4, 8, 0, 1}};
const std::vector<std::string> hosts = {"a1.cluster", "a1.cluster", "a2.cluster",
                                        "a2.cluster", "b1.cluster", "b1.cluster"};

Result<std::vector<RankLocation>> applied(std::string_view text) {
  const Result<TopologyFile> file = TopologyFile::parse(text, "t");
  if (!file) return file.error();
  return file->apply(three_nodes, hosts);
}

/// The node of every rank or, if `groups`, its group.
std::vector<int> by_rank(std::string_view text, bool groups) {
  const Result<std::vector<RankLocation>> places = applied(text);
  EXPECT_TRUE(places) << places.error().text;
  std::vector<int> all;
  if (!places) return all;
  const Topology topology{std::span<const RankLocation>(*places)};
  for (int rank = 0; rank < topology.ranks(); ++rank)
    all.push_back(groups ? topology.group_of(topology.node_of(rank)) : topology.node_of(rank));
  return all;
}
std::vector<int> nodes(std::string_view text) { return by_rank(text, false); }
std::vector<int> groups(std::string_view text) { return by_rank(text, true); }

std::string error(std::string_view text) {
  const Result<std::vector<RankLocation>> places = applied(text);
  EXPECT_FALSE(places);
  return places ? "" : places.error().text;
}

TEST(TopologyFile, EmptyFileChangesNothing) {
  for (const char* text : {"", "\n\n", "# a comment\n  \t\r\n"}) {
    const Result<std::vector<RankLocation>> places = applied(text);
    ASSERT_TRUE(places);
    EXPECT_EQ(*places, three_nodes);
  }
}

TEST(TopologyFile, DividesNodes) {
  EXPECT_THAT(nodes("node 0\n"), ElementsAre(0, 1, 2, 2, 3, 3));
  EXPECT_THAT(nodes("node 0-1\nnode 2  # one each\nnode 3"), ElementsAre(0, 0, 1, 2, 3, 3));
  EXPECT_THAT(nodes("node a1 \nnode 4,5"), ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_THAT(nodes("node nowhere"), ElementsAre(0, 0, 1, 1, 2, 2));
}

TEST(TopologyFile, GroupsNodes) {
  EXPECT_THAT(groups("group 0-3"), ElementsAre(0, 0, 0, 0, 1, 1));
  EXPECT_THAT(groups("group 0,4"), ElementsAre(0, 0, 1, 1, 0, 0));
  EXPECT_THAT(groups("group 0-4:4 \ngroup 3"), ElementsAre(0, 0, 1, 1, 0, 0));
  EXPECT_THAT(groups("group a*\ngroup b1.cluster"), ElementsAre(0, 0, 0, 0, 1, 1));
  EXPECT_THAT(groups("group a[2-9] b1"), ElementsAre(0, 0, 1, 1, 1, 1));
  EXPECT_THAT(groups("group c*"), ElementsAre(0, 0, 0, 0, 0, 0));
  // Groups refer to the divided nodes, in any order of the lines.
  EXPECT_THAT(groups("group 1-2\nnode 0\n"), ElementsAre(0, 1, 1, 1, 0, 0));
}

TEST(TopologyFile, ContradictsTheMpiLibrary) {
  EXPECT_EQ(error("# two nodes\nnode 1-2\n"),
            "topology file 't', line 2: ranks 1 and 2 are put on one node, but the MPI library says that they share no "
            "memory; put them on "
            "different lines; the file is ignored");
  EXPECT_THAT(error("node a*"), HasSubstr("line 1: ranks 0 and 2 are put on one node"));
}

TEST(TopologyFile, ContradictsItself) {
  EXPECT_THAT(error("node 0\nnode 0-1\n"), HasSubstr("line 2: rank 0 is on the node of line 1 already; name it once;"));
  EXPECT_THAT(error("group 0\n\ngroup 1\n"),
              HasSubstr("line 3: rank 1 is on the node of rank 0, which line 1 put into another group;"));
}

TEST(TopologyFile, NamesUnknownRanks) {
  EXPECT_THAT(error("node 0,6\n"), HasSubstr("line 1: rank 6 is not among the job's 6 ranks; take it out;"));
  EXPECT_THAT(error("group 0-2147483647:2147483647\n"), HasSubstr("rank 2147483647 is not among"));
}

TEST(TopologyFile, InvalidText) {
  EXPECT_THAT(error("nodes 0-1\n"), HasSubstr("line 1: 'nodes' is not known; a line begins with node or group;"));
  EXPECT_THAT(error("\ngroup # 0-1\n"),
              HasSubstr("line 2: nothing is named; write ranks (0-3,8) or hosts after 'group';"));
  for (const char* word :
       {"3-1", "1-", "-1", "1--2", "1-2-3", "99999999999", ",1", "1,,2", "0-4:0", "0-4:-1", "0-4:", ":2"})
    EXPECT_THAT(error(std::string("node ") + word), HasSubstr("is no list of ranks; write it as 0-3,8 or 0-14:2;"))
        << word;
}

TEST(TopologyFile, ReportsWhetherHostNamesAreNeeded) {
  EXPECT_FALSE(TopologyFile::parse("node 0-3\ngroup 4", "t")->names_hosts());
  EXPECT_TRUE(TopologyFile::parse("node 0-3\ngroup 4 b1", "t")->names_hosts());
  EXPECT_THAT(groups("group 0-3"), ElementsAre(0, 0, 0, 0, 1, 1));
  const Result<std::vector<RankLocation>> without = TopologyFile::parse("group 0-3", "t")->apply(three_nodes, {});
  ASSERT_TRUE(without);
  EXPECT_EQ((*without)[4].group, RankLocation::unknown);
}

TEST(TopologyFile, IsReadCompletely) {
  test::SysTree tree;
  const auto read = [&tree](const char* name) { return TopologyFile::read(tree.root() + "/" + name); };
  const std::string text(TopologyFile::max_bytes, '#');
  tree.write("longest", text);
  tree.write("longer", text + "#");
  EXPECT_EQ(*read("longest"), text);
  EXPECT_THAT(read("longer").error().text,
              HasSubstr("longer' can't be read: has more than 64 KiB; set BESTRIDE_TOPOLOGY"));
  EXPECT_THAT(read("missing").error().text,
              HasSubstr("can't be read: No such file or directory; set BESTRIDE_TOPOLOGY"));
  EXPECT_THAT(TopologyFile::read(tree.root()).error().text, HasSubstr("can't be read: is a directory, not a file; "));
}

TEST(TopologyFile, RandomTextOnlyDividesNodes) {
  std::mt19937 random(99);
  const std::string_view pieces[] = {"node ", "group ", "0",  "1", "2-3", "4",  "5", ",", "-",
                                     ":",     "a1",     "b*", "[", "\n",  "\n", " ", "#"};
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (unsigned n = random() % 12; n > 0; --n) text += pieces[random() % std::size(pieces)];
    const Result<std::vector<RankLocation>> places = applied(text);
    if (!places) {
      ASSERT_THAT(places.error().text, HasSubstr("; the file is ignored")) << text;
      continue;
    }
    ++accepted;
    ASSERT_EQ(places->size(), three_nodes.size());
    for (std::size_t a = 0; a < places->size(); ++a)
      for (std::size_t b = 0; b < a; ++b)
        if ((*places)[a].node == (*places)[b].node) {
          ASSERT_EQ(three_nodes[a].node, three_nodes[b].node) << text;
          ASSERT_EQ((*places)[a].group, (*places)[b].group) << text;
        }
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace bestride::inline model
