// SPDX-License-Identifier: Apache-2.0
#pragma once
// The stacks of many ranks merged into one tree, so that a few lines show what thousands of ranks do.
//
// As in STAT (Arnold et al., "Stack Trace Analysis for Large Scale Debugging", IPDPS 2007): the tree of all stacks from
// the outermost frame inwards, each node with the set of ranks whose stack passes through it. Frames are the same if
// their function, module and line are. If the frames of one function have more than four lines, they are the same
// nevertheless: many ranks in one loop are at many lines of it.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "telemetry/stacks/frame_names.hpp"

namespace bestride::inline telemetry {

/// The stack of one thread.
struct RankStack {
  std::int32_t rank = 0;
  std::string thread;              ///< "" for the main thread; others are kept apart by this name
  bool cut = false;                ///< outer frames are missing; kept apart from complete stacks
  std::vector<NamedFrame> frames;  ///< outermost first, not empty
};

/// Frames that the same threads pass through, up to the next place where they differ.
struct StackNode {
  enum class Kind : std::uint8_t {
    stack,   ///< frames of stacks
    itself,  ///< no frames: threads whose innermost frame is the last one of the parent, which has children
  };
  Kind kind = Kind::stack;
  std::string thread;               ///< of roots: as RankStack::thread
  bool cut = false;                 ///< of roots: as RankStack::cut
  std::vector<NamedFrame> frames;   ///< outermost first; file and line only if they are the same for all threads
  std::vector<std::int32_t> ranks;  ///< ascending, without repetition
  std::size_t threads = 0;          ///< at least as many as ranks
  NamedFrame place;                 ///< of Kind::itself: the last frame of the parent, with the line of these threads
  std::vector<StackNode> children;  ///< most ranks first, then by function
};

/// Where the thread is: program_line(); without lines the innermost function of the program itself, which is the module
/// of the outermost frame. Empty if there is none.
NamedFrame place_of(const RankStack& stack);

/// The roots: main threads before others, whole stacks before cut ones, then most ranks first, then by function. Each
/// stack ends in exactly one node without children. The same for any order of `stacks`.
std::vector<StackNode> merge_stacks(const std::vector<RankStack>& stacks);

/// "solve (solver.f90:88)".
std::string frame_text(const NamedFrame& frame);

struct TreeText {
  std::size_t most_lines = 20;  ///< at least 1
  std::string indent = "";      ///< before each line
  /// The text of a set of ranks; by default "16 ranks", "rank 5".
  std::function<std::string(const std::vector<std::int32_t>&)> ranks = nullptr;
};
/// One line for each node, indented by its depth, at most `most_lines`; outer nodes are preferred to inner ones. The
/// last line says how many are left out, if any.
///     ranks 0-15  main (solver.f90:3)
///       ranks 0-4,6-15  solve (solver.f90:88) > MPI_Allreduce
///       rank 5          solve (solver.f90:90) > write_checkpoint (io.f90:17) > write
std::string tree_text(const std::vector<StackNode>& roots, const TreeText& options);

}  // namespace bestride::inline telemetry
