// SPDX-License-Identifier: Apache-2.0
#pragma once
// MeasureOptions: the arguments of the measuring program. The first one names the part to be measured.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "perfmodel/calibrate/common/sample_plan.hpp"
#include "perfmodel/host/strategy.hpp"

namespace bestride::inline perfmodel {

enum class MeasuredPart {
  messages,     ///< two ranks: packing, messages, the GPU
  links,        ///< all ranks: the links between hosts
  collectives,  ///< all ranks: the variants of each collective
  exchange,     ///< all ranks: an exchange between nodes, to compare rails
  one_node,     ///< all ranks, on one node: collectives
};

struct MeasureOptions {
  MeasuredPart part = MeasuredPart::messages;
  Depth depth = Depth::standard;
  std::string state;      ///< path of the state file; not for an exchange and one node
  bool restart = false;   ///< ignore the state file's content
  double budget_s = 300;  ///< time limit

  // messages
  enum class Gpu { if_present, required, no } gpu = Gpu::if_present;
  bool messages = true;            ///< false: only the GPU
  std::vector<CallKind> calls{};   ///< empty: all
  std::optional<Distance> near{};  ///< only contiguous messages, with the ranks bound at this near distance

  // the other parts
  std::string preload;        ///< path of the preload library; empty: not preloaded
  std::string profile;        ///< for the preload library
  std::string rails = "off";  ///< as BESTRIDE_NICS
  bool restarted = false;     ///< with the preload library

  // exchange
  std::string candidates;  ///< without rails: NICs that could be rails
  std::int64_t bytes = 0;  ///< 0: determined by NodeExchange::enough_bytes()

  bool quick() const noexcept { return depth == Depth::quick; }
};

/// An error names the argument.
Result<MeasureOptions> parse_options(int argc, char** argv);

}  // namespace bestride::inline perfmodel
