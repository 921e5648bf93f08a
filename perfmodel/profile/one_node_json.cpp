// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/profile/one_node_json.hpp"

#include <algorithm>

#include "perfmodel/profile/json_seconds.hpp"

namespace bestride::inline perfmodel {
namespace {

/// The version of this section. A file with another version of it is refused.
constexpr int one_node_version = 1;
constexpr int most_ranks = 1 << 16;

}  // namespace

Json json_of(const OneNodeMeasurements& measured) {
  Json calls = Json::array();
  for (std::size_t i = 0; i < one_node_calls.size(); ++i)
    if (const OneNodeCurve& curve = measured.curves[i]; curve.any())
      calls.push_back({{"call", one_node_calls[i].id()},
                       {"shared_ns", numbers_of(curve.shared)},
                       {"library_ns", numbers_of(curve.library)}});
  return {
      {"version", one_node_version}, {"ranks", measured.ranks}, {"bytes", one_node_bytes}, {"calls", std::move(calls)}};
}

std::string read_one_node(const Json& section, OneNodeMeasurements* measured) {
  if (section.at("version") != one_node_version) return "its section for collectives on one node is another version's";
  if (section.at("bytes") != Json(one_node_bytes)) return "its sizes of collectives on one node are not this version's";
  if (!read_count(section.at("ranks"), 2, most_ranks, &measured->ranks))
    return "its section for collectives on one node has a bad number of ranks";
  for (const Json& entry : section.at("calls")) {
    const auto call = std::find_if(one_node_calls.begin(), one_node_calls.end(),
                                   [&](const OneNodeCall& each) { return entry.at("call") == each.id(); });
    if (call == one_node_calls.end()) return "it has an unknown call among collectives on one node";
    OneNodeCurve& curve = measured->curves[static_cast<std::size_t>(call - one_node_calls.begin())];
    if (!read_numbers(entry.at("shared_ns"), &curve.shared) || !read_numbers(entry.at("library_ns"), &curve.library))
      return "its times of '" + call->id() + "' on one node have a bad entry";
  }
  return "";
}

}  // namespace bestride::inline perfmodel
