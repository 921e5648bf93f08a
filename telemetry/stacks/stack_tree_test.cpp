// SPDX-License-Identifier: Apache-2.0
#include "telemetry/stacks/stack_tree.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace bestride::inline telemetry {
namespace {

using testing::ElementsAre;

NamedFrame frame(const std::string& function, int line = 0, const std::string& module = "solver") {
  return {function, module, line ? "solver.f90" : "", line};
}

RankStack stack(std::int32_t rank, const std::vector<std::string>& functions, const std::string& thread = "") {
  RankStack result{rank, thread, false, {}};
  for (const std::string& function : functions) result.frames.push_back(frame(function));
  return result;
}

/// 16 ranks, of which rank 5 writes a file.
std::vector<RankStack> sixteen_ranks() {
  std::vector<RankStack> stacks;
  for (std::int32_t rank = 0; rank < 16; ++rank) {
    stacks.push_back({rank, "", false, {frame("main", 3), frame("solve", 88)}});
    if (rank == 5) {
      stacks.back().frames[1].line = 90;
      stacks.back().frames.push_back(frame("write_checkpoint", 17));
      stacks.back().frames.push_back(frame("write", 0, "libc.so.6"));
    } else {
      stacks.back().frames.push_back(frame("MPI_Allreduce", 0, "libmpi.so.12"));
    }
  }
  return stacks;
}

TEST(StackTree, TextOfAnOutlier) {
  EXPECT_EQ(tree_text(merge_stacks(sixteen_ranks()), {.indent = "  "}),
            "  16 ranks  main (solver.f90:3)\n"
            "    15 ranks  solve (solver.f90:88) > MPI_Allreduce\n"
            "    rank 5    solve (solver.f90:90) > write_checkpoint (solver.f90:17) > write\n");
}

TEST(StackTree, TheLineOfAnOuterFunctionIsShownIfItTellsRanksApart) {
  EXPECT_EQ(tree_text(merge_stacks({{0, "", false, {frame("main", 3), frame("advance", 8), frame("copy", 20)}},
                                    {1, "", false, {frame("main", 4), frame("advance", 8), frame("copy", 20)}}}),
                      {}),
            "rank 0  main (solver.f90:3) > advance > copy (solver.f90:20)\n"
            "rank 1  main (solver.f90:4) > advance > copy (solver.f90:20)\n");
}

TEST(StackTree, TheInnermostLineOfTheProgramIsShownAboveALibraryWithLines) {
  const NamedFrame library{"std::map::at", "solver", "/usr/include/c++/12/bits/stl_map.h", 551};
  EXPECT_EQ(
      tree_text(merge_stacks({{0, "", false, {frame("main", 3), frame("load", 8), library, frame("abort", 0, "c")}}}),
                {}),
      "rank 0  main > load (solver.f90:8) > std::map::at (stl_map.h:551) > abort\n");
}

TEST(StackTree, ManyLinesOfAFunctionAreOneNode) {
  std::vector<RankStack> stacks;
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    stacks.push_back({rank, "", false, {frame("main", 3), frame("solve", 80 + rank), frame("flux", 7)}});
    stacks.push_back({rank + 8, "", false, {frame("main", 3), frame("solve", 80 + rank)}});
  }
  EXPECT_EQ(merge_stacks(stacks).front().children.size(), 4u);
  stacks.push_back({4, "", false, {frame("main", 3), frame("solve", 90), frame("flux", 9)}});
  EXPECT_EQ(tree_text(merge_stacks(stacks), {}),
            "9 ranks  main > solve (solver.f90)\n"
            "  4 ranks  solve itself (solver.f90)\n"
            "  4 ranks  flux (solver.f90:7)\n"
            "  rank 4   flux (solver.f90:9)\n");
}

TEST(StackTree, RanksAndLinesAsText) {
  auto stacks = sixteen_ranks();
  stacks.erase(stacks.begin() + 5);
  EXPECT_EQ(tree_text(merge_stacks(stacks), {.ranks =
                                                 [](const std::vector<std::int32_t>& ranks) {
                                                   return "from " + std::to_string(ranks.front()) + " to " +
                                                          std::to_string(ranks.back());
                                                 }}),
            "from 0 to 15  main > solve (solver.f90:88) > MPI_Allreduce\n");
}

TEST(StackTree, AStackThatEndsWhereOthersGoOn) {
  EXPECT_EQ(tree_text(merge_stacks({{0, "", false, {frame("main"), frame("solve", 91), frame("flux")}},
                                    {1, "", false, {frame("main"), frame("solve", 91), frame("flux")}},
                                    {2, "", false, {frame("main"), frame("solve", 91)}}}),
                      {}),
            "3 ranks  main > solve (solver.f90:91)\n"
            "  2 ranks  flux\n"
            "  rank 2   solve itself (solver.f90:91)\n");
}

TEST(StackTree, ThreadsAndCutStacksAreApart) {
  auto cut = stack(3, {"flux"});
  cut.cut = true;
  EXPECT_EQ(tree_text(merge_stacks({stack(0, {"main"}), stack(0, {"run", "poll"}, "threads"),
                                    stack(1, {"run", "poll"}, "threads"), stack(1, {"run", "poll"}, "threads"), cut}),
                      {}),
            "rank 0              main\n"
            "rank 3              (outer frames missing) ... > flux\n"
            "2 ranks, 3 threads  [threads] run > poll\n");
}

TEST(StackTree, LongChainsAndRecursionAreShortened) {
  std::vector<std::string> functions(300, "recurse");
  functions.insert(functions.begin(), "main");
  functions.push_back("leaf");
  EXPECT_EQ(tree_text(merge_stacks({stack(0, functions)}), {}), "rank 0  main > recurse x300 > leaf\n");
  functions.clear();
  for (int i = 0; i < 20; ++i) functions.push_back("f" + std::to_string(i));
  EXPECT_EQ(tree_text(merge_stacks({stack(0, functions)}), {}),
            "rank 0  f0 > f1 > f2 > f3 > ... 11 more ... > f15 > f16 > f17 > f18 > f19\n");
}

/// The leaves with the threads that end in them.
void collect(const std::vector<StackNode>& nodes, std::vector<std::string> path, const StackNode* root,
             std::multiset<std::string>& found) {
  std::size_t ranks_before = SIZE_MAX;
  for (const StackNode& node : nodes) {
    EXPECT_LE(node.ranks.size(), ranks_before) << "most ranks first";
    if (root) ranks_before = node.ranks.size();
    EXPECT_GE(node.threads, node.ranks.size());
    auto here = path;
    for (const NamedFrame& f : node.frames) here.push_back(f.function);
    const StackNode* const top = root ? root : &node;
    if (node.children.empty()) {
      std::string text = top->thread + (top->cut ? " cut" : "");
      for (const std::string& name : here) text += "/" + name;
      for (const std::int32_t rank : node.ranks) found.insert(text + " " + std::to_string(rank));
      found.insert(text + " threads " + std::to_string(node.threads));
    } else {
      EXPECT_GT(node.children.size(), 1u);
      std::set<std::int32_t> below;
      std::size_t threads = 0;
      for (const StackNode& child : node.children) {
        below.insert(child.ranks.begin(), child.ranks.end());
        threads += child.threads;
      }
      EXPECT_THAT(node.ranks, testing::ElementsAreArray(below));
      EXPECT_EQ(node.threads, threads);
    }
    collect(node.children, here, top, found);
  }
}

TEST(StackTree, EachStackEndsInOneLeafInAnyOrder) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<RankStack> stacks;
    std::map<std::string, std::pair<std::set<std::int32_t>, std::size_t>> expected;
    const int ranks = 1 + static_cast<int>(random() % 12);
    for (int rank = 0; rank < ranks; ++rank)
      for (unsigned thread = 0; thread <= random() % 3; ++thread) {
        std::vector<std::string> functions{"main"};
        for (std::size_t depth = random() % 6; depth > 0; --depth)
          functions.push_back(std::string(1, static_cast<char>('a' + random() % 2)));
        RankStack made = stack(rank, functions, thread ? "threads" : "");
        made.cut = random() % 8 == 0;
        std::string text = made.thread + (made.cut ? " cut" : "");
        for (const std::string& name : functions) text += "/" + name;
        expected[text].first.insert(rank);
        ++expected[text].second;
        stacks.push_back(made);
      }
    std::multiset<std::string> leaves, wanted;
    for (const auto& [text, threads] : expected) {
      for (const std::int32_t rank : threads.first) wanted.insert(text + " " + std::to_string(rank));
      wanted.insert(text + " threads " + std::to_string(threads.second));
    }
    const auto tree = merge_stacks(stacks);
    collect(tree, {}, nullptr, leaves);
    EXPECT_EQ(leaves, wanted);
    const std::string whole = tree_text(tree, {.most_lines = 1000});
    std::shuffle(stacks.begin(), stacks.end(), random);
    EXPECT_EQ(tree_text(merge_stacks(stacks), {.most_lines = 1000}), whole);
    const auto all = std::count(whole.begin(), whole.end(), '\n');
    for (std::size_t most = 1; most < 20; ++most) {
      const std::string text = tree_text(tree, {.most_lines = most});
      EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), std::min<std::ptrdiff_t>(all, static_cast<int>(most)))
          << text;
    }
  }
}

std::size_t threads_of_leaves(const std::vector<StackNode>& nodes) {
  std::size_t sum = 0;
  for (const StackNode& node : nodes) sum += node.children.empty() ? node.threads : threads_of_leaves(node.children);
  return sum;
}

/// At most so many nodes are neighbors that begin with the same function.
std::size_t most_alike(const std::vector<StackNode>& nodes) {
  std::map<std::string, std::size_t> alike;
  std::size_t most = 0;
  for (const StackNode& node : nodes) {
    most = std::max(most, most_alike(node.children));
    if (node.kind == StackNode::Kind::stack) most = std::max(most, ++alike[node.frames.front().function]);
  }
  return most;
}

TEST(StackTree, FunctionsAtSeveralLinesInAnyOrder) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    std::vector<RankStack> stacks;
    const int ranks = 1 + static_cast<int>(random() % 24);
    const unsigned lines = 1 + random() % 8;
    for (int rank = 0; rank < ranks; ++rank) {
      RankStack& made = stacks.emplace_back(RankStack{rank, "", false, {frame("main", 1)}});
      for (std::size_t depth = random() % 4; depth > 0; --depth)
        made.frames.push_back(
            frame(std::string(1, static_cast<char>('a' + random() % 2)), static_cast<int>(1 + random() % lines)));
    }
    const auto tree = merge_stacks(stacks);
    EXPECT_EQ(threads_of_leaves(tree), stacks.size());
    EXPECT_LE(most_alike(tree), 4u);
    const std::string whole = tree_text(tree, {.most_lines = 1000});
    std::shuffle(stacks.begin(), stacks.end(), random);
    EXPECT_EQ(tree_text(merge_stacks(stacks), {.most_lines = 1000}), whole);
  }
}

TEST(StackTree, OuterNodesArePreferredIfLinesAreFew) {
  std::vector<RankStack> stacks = sixteen_ranks();
  for (std::int32_t rank = 0; rank < 4; ++rank) stacks.push_back(stack(rank, {"run", std::to_string(rank)}, "threads"));
  EXPECT_EQ(tree_text(merge_stacks(stacks), {.most_lines = 5}),
            "16 ranks  main (solver.f90:3)\n"
            "  15 ranks  solve (solver.f90:88) > MPI_Allreduce\n"
            "  rank 5    solve (solver.f90:90) > write_checkpoint (solver.f90:17) > write\n"
            "4 ranks   [threads] run\n"
            "and 4 more parts of the tree\n");
  EXPECT_EQ(tree_text(merge_stacks(stacks), {.most_lines = 1}), "8 parts of the tree\n");
}

std::vector<std::string> kept(const std::vector<NamedFrame>& frames) {
  std::vector<std::string> result;
  for (const NamedFrame& f : without_library_frames(frames, "/opt/solver")) result.push_back(f.function);
  return result;
}

const char* const c = "libc.so.6";
const char* const mpi = "libmpich.so.12";
const char* const bestride_library = "libbestride-mpich.so";

TEST(LibraryFrames, WhatIsOutsideMainAndBelowMpiIsLeftOut) {
  EXPECT_THAT(kept({frame("_start"), frame("__libc_start_main", 0, c), frame("main"), frame("solve"),
                    frame("PMPI_Allreduce", 0, mpi), frame("MPIR_Wait", 0, mpi), frame("poll", 0, c)}),
              ElementsAre("main", "solve", "MPI_Allreduce"));
  EXPECT_THAT(kept({frame("clone3", 0, c), frame("start_thread", 0, c), frame("run"), frame("poll", 0, c)}),
              ElementsAre("run", "poll"));
  EXPECT_THAT(kept({frame("solver+0x12"), frame("__libc_start_main_impl", 0, c), frame("__libc_start_call_main", 0, c),
                    frame("solver+0x34"), frame("__GI___libc_read", 0, c), frame("inner", 0, c), frame("solver+0x56"),
                    frame("__GI___nanosleep", 0, c)}),
              ElementsAre("solver+0x34", "read", "solver+0x56", "nanosleep"));
  EXPECT_THAT(kept({frame("clone3", 0, c), frame("start_thread", 0, c), frame("timer", 0, c)}),
              ElementsAre("clone3", "start_thread", "timer"));
}

TEST(LibraryFrames, ThreadsOfLibraries) {
  EXPECT_TRUE(is_library_thread({frame("clone3", 0, c), frame("start_thread", 0, c),
                                 frame("progress", 0, "libucs.so.0"), frame("epoll_wait", 0, c)}));
  EXPECT_TRUE(
      is_library_thread({frame("clone3", 0, c), frame("run", 0, bestride_library), frame("MPIR_Wait", 0, mpi)}));
  EXPECT_FALSE(is_library_thread({frame("clone3", 0, c), frame("worker"), frame("MPIR_Wait", 0, mpi)}));
}

TEST(LibraryFrames, FortranNames) {
  for (const char* const name : {"mpi_allreduce_", "pmpi_allreduce_", "mpi_allreduce__", "mpi_allreduce_f08_"})
    EXPECT_THAT(
        kept({frame("main"), frame("MAIN__"), frame(name, 0, "libmpifort.so.12"), frame("PMPI_Allreduce", 0, mpi)}),
        ElementsAre("main", "MAIN__", "MPI_Allreduce"));
}

TEST(LibraryFrames, FunctionsThatMpiCallsBackAreKept) {
  EXPECT_THAT(kept({frame("main"), frame("MPI_Reduce", 0, mpi), frame("MPIR_Reduce", 0, mpi),
                    frame("progress", 0, "libucp.so.0"), frame("my_operation"), frame("memcpy", 0, c)}),
              ElementsAre("main", "MPI_Reduce", "my_operation", "memcpy"));
  EXPECT_THAT(kept({frame("main"), frame("step", 0, "libphysics.so"), frame("MPI_Reduce", 0, mpi),
                    frame("my_operation", 0, "libphysics.so")}),
              ElementsAre("main", "step", "MPI_Reduce", "my_operation"));
  EXPECT_THAT(
      kept({frame("main"), frame("qsort", 0, c), frame("compare"), frame("MPI_Barrier", 0, mpi), frame("poll", 0, c)}),
      ElementsAre("main", "qsort", "compare", "MPI_Barrier"));
}

TEST(LibraryFrames, EntriesOfThePreloadLibraryAreTheMpiFunction) {
  EXPECT_THAT(kept({frame("main"), frame("bestride_entry_Bcast", 0, bestride_library),
                    frame("bestride::collectives::bcast", 0, bestride_library), frame("PMPI_Isend", 0, mpi)}),
              ElementsAre("main", "MPI_Bcast"));
  const std::string recorded =
      "bestride::interpose::RecordingEntry<int (int)>::call<&bestride::interpose::(anonymous namespace)::below_P";
  EXPECT_THAT(kept({frame("main"), frame(recorded + "Barrier, (unsigned short)42>", 0, bestride_library),
                    frame("bestride_entry_Barrier", 0, bestride_library), frame("PMPI_Barrier", 0, mpi)}),
              ElementsAre("main", "MPI_Barrier"));
  EXPECT_THAT(kept({frame("main"), frame(recorded + "ack, (unsigned short)42>", 0, bestride_library)}),
              ElementsAre("main", "MPI_Pack"));
  EXPECT_THAT(kept({frame("main"), frame("libbestride-mpich.so+0x12", 0, bestride_library),
                    frame("PMPI_Barrier", 0, mpi), frame("poll", 0, c)}),
              ElementsAre("main", "MPI_Barrier"));
  EXPECT_THAT(kept({frame("clone3", 0, c), frame("bestride::progress", 0, bestride_library)}),
              ElementsAre("in libbestride-mpich.so"));
}

/// With the file of a library or of the program.
NamedFrame at(const std::string& function, const std::string& file, int line, const std::string& module = "solver") {
  return {function, module, file, line};
}

TEST(ProgramLine, IsTheInnermostInTheProgramsOwnSource) {
  const auto line = [](const std::vector<NamedFrame>& frames) {
    const NamedFrame* const found = program_line(frames);
    return found ? frame_text(*found) : "";
  };
  const NamedFrame main = at("main", "/home/me/solver.cpp", 9), load = at("load", "../mesh.cpp", 3);
  EXPECT_EQ(line({main, load, at("std::map::at", "/usr/include/c++/12/bits/stl_map.h", 551), frame("abort", 0, c)}),
            "load (mesh.cpp:3)");
  EXPECT_EQ(line({main, load, at("GOMP_parallel", "parallel.c", 178, "libgomp.so.1.0.0"),
                  at("pthread_join", "./nptl/pthread_join_common.c", 4, c)}),
            "load (mesh.cpp:3)");
  EXPECT_EQ(line({at("main", "program.py", 54, ""), at("Condition.wait", "/usr/lib/python3.11/threading.py", 327, "")}),
            "main (program.py:54)");
  EXPECT_EQ(line({at("main", "program.py", 54, ""), at("Py_Exit", "Python/pylifecycle.c", 2944, "libpython3.11.so.1.0"),
                  at("pause", "x.c", 3, "python3.11")}),
            "main (program.py:54)");
  EXPECT_EQ(line({frame("main"), at("run", "/usr/lib/python3.11/threading.py", 982, ""), frame("poll", 0, c)}),
            "run (threading.py:982)");
  EXPECT_EQ(line({frame("main"), frame("solve")}), "");
}

TEST(ProgramLine, PlaceWithoutLinesIsInTheProgramItself) {
  const auto place = [](bool cut, const std::vector<NamedFrame>& frames) {
    return place_of({0, "", cut, frames}).function;
  };
  const NamedFrame product = frame("dgemm_", 0, "libopenblas.so.0");
  EXPECT_EQ(place(false, {frame("main"), frame("solve"), product, frame("memcpy", 0, c)}), "solve");
  EXPECT_EQ(place(false, {frame("main"), frame("solve", 88), frame("step"), product}), "solve");
  EXPECT_EQ(place(true, {product, frame("memcpy", 0, c)}), "") << "which module is the program's is not known";
  EXPECT_EQ(place(false, {}), "");
}

}  // namespace
}  // namespace bestride::inline telemetry
