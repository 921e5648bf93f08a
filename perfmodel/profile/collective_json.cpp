// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/profile/collective_json.hpp"

#include "perfmodel/profile/json_seconds.hpp"

namespace bestride::inline perfmodel {
namespace {

/// The version of this section. A file with another version of it is refused.
constexpr int collectives_version = 1;
constexpr int max_ranks = 1 << 24;

/// Relative errors, not times; older files lack them.
Json noises_of(const std::array<float, collective_sizes>& values) {
  Json row = Json::array();
  for (float value : values)
    row.push_back(std::isnan(value) ? Json(nullptr) : Json(std::round(static_cast<double>(value) * 1e4) / 1e4));
  return row;
}
bool read_noises(const Json& curve, std::array<float, collective_sizes>* values) {
  values->fill(CollectiveSetting::unmeasured);
  if (!curve.contains("noise")) return true;
  const Json& row = curve.at("noise");
  if (!row.is_array() || row.size() != values->size()) return false;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i].is_null()) continue;
    if (!row[i].is_number() || !(row[i].get<double>() >= 0 && row[i].get<double>() <= 1e6)) return false;
    (*values)[i] = row[i].get<float>();
  }
  return true;
}

Json sizes() {
  Json bytes = Json::array();
  for (int i = 0; i < collective_sizes; ++i) bytes.push_back(collective_bytes_at(i));
  return bytes;
}

template <class Row>
bool any(const Row& values) {
  for (float value : values)
    if (!std::isnan(value)) return true;
  return false;
}

bool read_setting(const Json& entry, CollectiveSetting* setting) {
  if (!read_count(entry.at("ranks"), 2, max_ranks, &setting->ranks) ||
      !read_count(entry.at("nodes"), 2, setting->ranks, &setting->nodes) ||
      !read_count(entry.at("most_on_a_node"), 1, setting->ranks, &setting->max_ranks_per_node) ||
      (entry.contains("least_on_a_node") &&
       !read_count(entry.at("least_on_a_node"), 0, setting->max_ranks_per_node, &setting->min_ranks_per_node)) ||
      !read_count(entry.at("ring_entries"), 1, setting->max_ranks_per_node, &setting->ring_entries))
    return false;
  for (const Json& curve : entry.at("curves")) {
    Collective what;
    if (!named(curve.at("collective"), collective_count, &what)) return false;
    const bool blocking = curve.at("blocking").get<bool>();
    if (!read_numbers(curve.at("hierarchical_ns"), &setting->hierarchical[static_cast<std::size_t>(what)][blocking]) ||
        !read_numbers(curve.at("library_ns"), &setting->library[static_cast<std::size_t>(what)][blocking]) ||
        !read_noises(curve, &setting->noise[static_cast<std::size_t>(what)][blocking]))
      return false;
  }
  return true;
}

}  // namespace

Json json_of(const CollectiveMeasurements& measured) {
  Json section{{"version", collectives_version}, {"bytes", sizes()}, {"settings", Json::array()}};
  for (const LinkField& field : link_fields)
    section["link_ns"][std::string(field.name)] = number_of(measured.link.*field.value);
  if (measured.link.piece_bytes > 0) section["piece"] = measured.link.piece_bytes;
  for (const CollectiveSetting& setting : measured.settings) {
    Json curves = Json::array();
    for (std::size_t what = 0; what < collective_count; ++what)
      for (std::size_t form = 0; form < 2; ++form)
        if (any(setting.library[what][form]))
          curves.push_back({{"collective", name(static_cast<Collective>(what))},
                            {"blocking", form == 1},
                            {"hierarchical_ns", numbers_of(setting.hierarchical[what][form])},
                            {"library_ns", numbers_of(setting.library[what][form])},
                            {"noise", noises_of(setting.noise[what][form])}});
    section["settings"].push_back({{"nodes", setting.nodes},
                                   {"ranks", setting.ranks},
                                   {"most_on_a_node", setting.max_ranks_per_node},
                                   {"least_on_a_node", setting.min_ranks_per_node},
                                   {"ring_entries", setting.ring_entries},
                                   {"curves", std::move(curves)}});
  }
  return section;
}

std::string read_collectives(const Json& section, CollectiveMeasurements* measured) {
  if (section.at("version") != collectives_version) return "its section for collectives is another version's";
  if (section.at("bytes") != sizes()) return "its sizes of collectives are not this version's";
  for (const LinkField& field : link_fields)
    if (!read_number(section.at("link_ns").at(std::string(field.name)), &(measured->link.*field.value)))
      return "the link's '" + std::string(field.name) + "' has a bad value";
  // Older files lack it.
  if (section.contains("piece") &&
      !read_count(section.at("piece"), min_piece_bytes, max_piece_bytes, &measured->link.piece_bytes))
    return "the link's 'piece' has a bad value";
  const Json& settings = section.at("settings");
  if (!settings.is_array() || settings.size() > CollectiveMeasurements::max_settings)
    return "it has more measured sets of collectives than this version's";
  for (const Json& entry : settings)
    if (!read_setting(entry, &measured->settings.emplace_back()))
      return "a measured set of collectives has a bad entry";
  return "";
}

}  // namespace bestride::inline perfmodel
