// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/collective/measurements.hpp"

#include <algorithm>
#include <cmath>

namespace bestride::inline perfmodel {
namespace {

/// Each point is replaced together with its noise and everything that was measured alternately with it.
void merge_points(CollectiveSetting& into, const CollectiveSetting& newer) {
  for (std::size_t what = 0; what < into.library.size(); ++what)
    for (std::size_t form = 0; form < into.library[what].size(); ++form)
      for (std::size_t size = 0; size < into.library[what][form].size(); ++size) {
        if (std::isnan(newer.library[what][form][size])) continue;
        for (auto table : {&CollectiveSetting::hierarchical, &CollectiveSetting::library, &CollectiveSetting::noise})
          (into.*table)[what][form][size] = (newer.*table)[what][form][size];
      }
}

}  // namespace

bool CollectiveMeasurements::any() const noexcept {
  return !settings.empty() || link.piece_bytes > 0 ||
         std::any_of(link_fields.begin(), link_fields.end(),
                     [&](const LinkField& field) { return !std::isnan(link.*field.value); });
}

LinkCosts CollectiveMeasurements::filled_link() const noexcept {
  LinkCosts filled = LinkCosts::built_in();
  for (const LinkField& field : link_fields)
    if (const double measured = link.*field.value; !std::isnan(measured) && measured > 0)
      filled.*field.value = measured;
  filled.piece_bytes = link.piece_bytes;
  filled.stream_byte_s = std::max(filled.stream_byte_s, filled.wire_byte_s);
  return filled;
}

void CollectiveMeasurements::merge(const CollectiveMeasurements& newer) {
  for (const LinkField& field : link_fields)
    if (!std::isnan(newer.link.*field.value)) link.*field.value = newer.link.*field.value;
  if (newer.link.piece_bytes > 0) link.piece_bytes = newer.link.piece_bytes;
  for (const CollectiveSetting& setting : newer.settings) {
    const auto known = std::find_if(settings.begin(), settings.end(),
                                    [&](const CollectiveSetting& other) { return other.same_place(setting); });
    if (known == settings.end()) {
      settings.push_back(setting);
    } else {
      merge_points(*known, setting);
      std::rotate(known, known + 1, settings.end());
    }
  }
  if (settings.size() > max_settings)
    settings.erase(settings.begin(), settings.end() - static_cast<std::ptrdiff_t>(max_settings));
}

}  // namespace bestride::inline perfmodel
