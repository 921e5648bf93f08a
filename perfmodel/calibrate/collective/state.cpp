// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/collective/state.hpp"

#include <algorithm>
#include <sstream>

namespace bestride::inline perfmodel {
namespace {

/// Reads the setting of a subject. False if it is not a subject of this configuration.
bool read_setting(const std::string& subject, const std::string& configuration, CollectiveSetting* setting) {
  std::istringstream in(subject);
  std::string part;
  in >> part >> setting->nodes >> setting->ranks >> setting->max_ranks_per_node >> setting->min_ranks_per_node >>
      setting->ring_entries;
  return in && subject == collectives_subject(configuration, *setting);
}

bool apply_link(std::istream& in, LinkCosts* link) {
  std::string field_name;
  double ns = 0;
  if (!(in >> field_name >> ns) || !(ns > 0)) return false;
  const auto field = std::find_if(link_fields.begin(), link_fields.end(),
                                  [&](const LinkField& each) { return each.name == field_name; });
  if (field == link_fields.end()) return false;
  link->*field->value = ns * 1e-9;
  return true;
}

bool apply_piece(std::istream& in, LinkCosts* link) {
  std::int64_t bytes = 0;
  if (!(in >> bytes) || bytes < min_piece_bytes || bytes > max_piece_bytes) return false;
  link->piece_bytes = bytes;
  return true;
}

bool apply_point(std::istream& in, CollectiveSetting* setting) {
  static const std::vector<CollectivePoint> plan = make_collective_plan(false);
  std::string id;
  double hierarchical = 0, library = 0, noise = 0;
  if (!(in >> id >> hierarchical >> library >> noise) || !(hierarchical > 0) || !(library > 0) || !(noise >= 0))
    return false;
  const auto point =
      std::find_if(plan.begin(), plan.end(), [&](const CollectivePoint& each) { return each.id() == id; });
  if (point == plan.end()) return false;
  const auto collective = static_cast<std::size_t>(point->what), size = static_cast<std::size_t>(point->size);
  setting->hierarchical[collective][point->blocking][size] = static_cast<float>(hierarchical * 1e-9);
  setting->library[collective][point->blocking][size] = static_cast<float>(library * 1e-9);
  setting->noise[collective][point->blocking][size] = static_cast<float>(noise);
  return true;
}

bool apply_collective(const std::string& record, CollectiveMeasurements* values) {
  std::istringstream in(record);
  std::string what;
  in >> what;
  if (what == "link") return apply_link(in, &values->link);
  if (what == "piece") return apply_piece(in, &values->link);
  return what == "point" && apply_point(in, &values->settings.front());
}

}  // namespace

std::string collectives_subject(const std::string& configuration, const CollectiveSetting& setting) {
  std::ostringstream text;
  text << "collectives " << setting.nodes << ' ' << setting.ranks << ' ' << setting.max_ranks_per_node << ' '
       << setting.min_ranks_per_node << ' ' << setting.ring_entries << ' ' << configuration;
  return text.str();
}

CollectivesState read_collectives_state(const std::string& path, const std::string& configuration,
                                        const CollectiveSetting* setting) {
  CollectivesState state;
  const StateFile file = read_state_file(path);
  CollectiveSetting measured;
  if (!read_setting(file.subject, configuration, &measured) || (setting && !setting->same_place(measured)))
    return state;
  state.values.settings.push_back(measured);
  bool points = false;
  for (const StatePoint& point : file.points) {
    const bool complete = std::all_of(point.records.begin(), point.records.end(), [&](const std::string& record) {
      return apply_collective(record, &state.values);
    });
    if (!complete) continue;
    state.done.insert(point.id);
    points |= point.id.find('.') != std::string::npos;
  }
  if (!points) state.values.settings.clear();
  return state;
}

void write_link(StateWriter& state, const LinkField& field, double seconds) {
  const std::string id(field.name);
  state.record("link %s %.6g", id.c_str(), seconds * 1e9);
  state.done(id);
}

void write_piece(StateWriter& state, std::int64_t bytes) {
  state.record("piece %lld", static_cast<long long>(bytes));
  state.done(piece_id);
}

void write_point(StateWriter& state, const CollectivePoint& point, const VariantTimes& times) {
  const std::string id = point.id();
  state.record("point %s %.6g %.6g %.3g", id.c_str(), times.mpi * 1e9, times.pmpi * 1e9, times.noise);
  state.done(id);
}

}  // namespace bestride::inline perfmodel
