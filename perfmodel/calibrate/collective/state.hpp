// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the state file (perfmodel/calibrate/common/state_file.hpp) contains of collectives.
//
//   collectives <nodes> <ranks> <most on a node> <least on a node> <ring entries> <configuration>   the subject
//   link <field> <ns>
//   piece <bytes>
//   point <point id> <hierarchical ns> <library ns> <noise>
#include <set>
#include <string>

#include "perfmodel/calibrate/collective/plan.hpp"
#include "perfmodel/calibrate/common/paired_samples.hpp"
#include "perfmodel/calibrate/common/state_file.hpp"

namespace bestride::inline perfmodel {

/// The id of LinkCosts::piece_bytes among the names of link fields.
inline constexpr const char* piece_id = "piece";

struct CollectivesState {
  CollectiveMeasurements values;  ///< with at most one setting
  std::set<std::string> done;     ///< ids of points, names of link fields, piece_id
};

std::string collectives_subject(const std::string& configuration, const CollectiveSetting& setting);

/// Returns an empty state if the file is missing or damaged, is of another configuration or, if `setting` is given, of
/// another number of nodes or ranks.
CollectivesState read_collectives_state(const std::string& path, const std::string& configuration,
                                        const CollectiveSetting* setting = nullptr);

void write_link(StateWriter& state, const LinkField& field, double seconds);
void write_piece(StateWriter& state, std::int64_t bytes);
void write_point(StateWriter& state, const CollectivePoint& point, const VariantTimes& times);

}  // namespace bestride::inline perfmodel
