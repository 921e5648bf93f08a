// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/collective/state.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace bestride {
namespace {

constexpr const char* format = "bestride-collectives 3";

std::string header(const std::string& configuration, const CollectiveSetting& place) {
  std::ostringstream text;
  text << format << ' ' << place.nodes << ' ' << place.ranks << ' ' << place.most_on_a_node << ' '
       << place.least_on_a_node << ' ' << place.ring_entries << ' ' << configuration;
  return text.str();
}

/// Reads the place of a header. False unless the header is well-formed and of this configuration.
bool read_header(const std::string& line, const std::string& configuration, CollectiveSetting* place) {
  std::istringstream in(line);
  std::string word, version;
  in >> word >> version >> place->nodes >> place->ranks >> place->most_on_a_node >> place->least_on_a_node >>
      place->ring_entries;
  return in && line == header(configuration, *place);
}

void apply_line(const std::string& line, CollectiveState* state) {
  std::istringstream in(line);
  std::string what, id;
  double first = 0, second = 0;
  if (!(in >> what >> id >> first) || !(first > 0)) return;
  if (what == "link") {
    for (const LinkField& field : link_fields)
      if (field.name == id) state->values.link.*field.value = first * 1e-9, state->done.insert(id);
    return;
  }
  if (what == piece_id) {
    if (first < least_piece_bytes || first > most_piece_bytes) return;
    state->values.link.piece_bytes = static_cast<std::int64_t>(first);
    state->done.insert(piece_id);
    return;
  }
  if (what != "point" || !(in >> second) || !(second > 0)) return;
  for (const CollectivePoint& point : make_collective_plan(false)) {
    if (point.id() != id) continue;
    CollectiveSetting& setting = state->values.settings.front();
    const auto collective = static_cast<std::size_t>(point.what), size = static_cast<std::size_t>(point.size);
    setting.hierarchical[collective][point.blocking][size] = static_cast<float>(first * 1e-9);
    setting.library[collective][point.blocking][size] = static_cast<float>(second * 1e-9);
    double noise = 0;
    setting.noise[collective][point.blocking][size] =
        in >> noise && noise >= 0 ? static_cast<float>(noise) : CollectiveSetting::unmeasured;
    double tested = 0;
    if (point.blocking) {
      if (!(in >> tested >> noise) || !(tested > 0) || !(noise >= 0)) return;
      setting.tested[collective][size] = static_cast<float>(tested * 1e-9);
      setting.tested_noise[collective][size] = static_cast<float>(noise);
    }
    state->done.insert(id);
    return;
  }
}

}  // namespace

CollectiveState read_collective_state(const std::string& path, const std::string& configuration,
                                      const CollectiveSetting* place) {
  CollectiveState state;
  std::ifstream in(path);
  std::string line;
  CollectiveSetting setting;
  if (!std::getline(in, line) || !read_header(line, configuration, &setting) || (place && !place->same_place(setting)))
    return state;
  state.values.settings.push_back(setting);
  while (std::getline(in, line) && !in.eof()) apply_line(line, &state);
  bool points = false;
  for (const std::string& id : state.done) points |= id.find('.') != std::string::npos;
  if (!points) state.values.settings.clear();
  return state;
}

Result<CollectiveStateWriter> CollectiveStateWriter::open(const std::string& path, const std::string& configuration,
                                                          const CollectiveSetting& place, bool anew) {
  std::FILE* file = std::fopen(path.c_str(), anew ? "we" : "ae");
  if (!file)
    return Error{"can't write the state file '" + path + "': " + std::strerror(errno) +
                 "; choose another place with --output"};
  std::fseek(file, 0, SEEK_END);
  if (std::ftell(file) == 0)
    std::fprintf(file, "%s\n", header(configuration, place).c_str());
  else
    std::fputc('\n', file);  // ends a line that was cut off
  std::fflush(file);
  return CollectiveStateWriter(file);
}

void CollectiveStateWriter::link(const LinkField& field, double seconds) {
  std::fprintf(file_, "link %s %.6g\n", std::string(field.name).c_str(), seconds * 1e9);
  std::fflush(file_);
}

void CollectiveStateWriter::piece(std::int64_t bytes) {
  std::fprintf(file_, "%s link %lld\n", piece_id, static_cast<long long>(bytes));
  std::fflush(file_);
}

void CollectiveStateWriter::point(const CollectivePoint& point, const BothWays& both) {
  std::fprintf(file_, "point %s %.6g %.6g %.3g", point.id().c_str(), both.mpi * 1e9, both.pmpi * 1e9, both.noise);
  if (both.tested > 0) std::fprintf(file_, " %.6g %.3g", both.tested * 1e9, both.tested_noise);
  std::fputc('\n', file_);
  std::fflush(file_);
}

}  // namespace bestride
