// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/messages/state.hpp"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

namespace bestride {
namespace {

std::string header(const std::string& configuration) { return "bestride-measure 1 " + configuration; }

template <class Enum>
bool read_name(std::istream& in, int count, Enum* value) {
  std::string word;
  in >> word;
  for (int i = 0; i < count; ++i)
    if (name(static_cast<Enum>(i)) == word) {
      *value = static_cast<Enum>(i);
      return true;
    }
  return false;
}

/// Applies one value line; false if the line is not one.
bool apply_line(const std::string& line, Measurements* values) {
  std::istringstream in(line);
  std::string what;
  in >> what;
  GridKey key;
  Wire wire = Wire::plain;
  int i = -1, k = 0;
  double ns = 0;
  if (!read_name(in, lane_count, &key.lane)) return false;
  if (what == "curve") {
    if (!read_name(in, wire_count, &wire)) return false;
    in >> i >> ns;
  } else if (what == "grid") {
    if (!read_name(in, class_count + 1, &key.kind) || !read_name(in, engine_count, &key.engine) ||
        !read_name(in, spread_count, &key.spread) || !read_name(in, leaf_count, &key.leaf))
      return false;
    in >> i >> k >> ns;
  }
  if (!in || i < 0 || i >= (what == "curve" ? curve_points : bytes_points) || k < 0 || k >= block_points || !(ns > 0))
    return false;
  if (what == "curve") {
    values->curve(wire, key.lane).set(i, ns * 1e-9);
    return true;
  }
  (*values)[key].set(i, k, ns * 1e-9);
  // There are no blocks of 4 bytes with 8-byte leaves. Lists and records with a mean block length below 8 are looked up
  // there.
  if (k == 0 && key.leaf == Leaf::four) {
    key.leaf = Leaf::eight;
    (*values)[key].set(i, k, ns * 1e-9);
  }
  return true;
}

/// "gpu 0 NVIDIA H100 ...": discards the values of another GPU.
void start_gpu(const std::string& line, MeasuredState* state) {
  const std::string name = line.substr(std::min(line.size(), std::size_t{6}));
  if (name != state->gpu) {
    state->device = {};
    std::erase_if(state->done, [](const std::string& id) { return id.rfind("gpu.", 0) == 0; });
  }
  state->gpu = name;
  state->device.stand_in = line.rfind("gpu 1", 0) == 0;
}

bool apply_device(const std::string& line, DeviceMeasurements* values) {
  static const std::map<std::string, DevicePoint> points = [] {
    std::map<std::string, DevicePoint> all;
    for (const DevicePoint& point : make_device_plan(false)) all.emplace(point.id(), point);
    for (Distance distance : {Distance::node, Distance::network})
      for (const DevicePoint& point : make_wire_plan(distance)) all.emplace(point.id(), point);
    return all;
  }();
  std::istringstream in(line);
  std::string what, id;
  double ns = 0;
  if (!(in >> what >> id >> ns) || what != "device" || !(ns > 0) || !points.count(id)) return false;
  store(points.at(id), ns * 1e-9, values);
  return true;
}

}  // namespace

MeasuredState read_state(const std::string& path, const std::string& configuration) {
  MeasuredState state;
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line) || line != header(configuration)) return state;
  std::vector<std::string> pending;
  while (std::getline(in, line)) {
    if (in.eof()) break;  // no newline: the line was cut off while being written
    if (line == "start") {
      pending.clear();
      continue;
    }
    if (line.rfind("gpu ", 0) == 0) {
      start_gpu(line, &state);
      continue;
    }
    if (line.rfind("done ", 0) != 0) {
      pending.push_back(line);
      continue;
    }
    for (const std::string& value : pending)
      if (!apply_device(value, &state.device)) apply_line(value, &state.values);
    pending.clear();
    state.done.insert(line.substr(5));
  }
  return state;
}

Result<StateWriter> StateWriter::open(const std::string& path, const std::string& configuration, bool anew) {
  std::FILE* file = std::fopen(path.c_str(), anew ? "we" : "ae");
  if (!file)
    return Error{"can't write the state file '" + path + "': " + std::strerror(errno) +
                 "; choose another place with --output"};
  std::fseek(file, 0, SEEK_END);
  if (std::ftell(file) == 0)
    std::fprintf(file, "%s\n", header(configuration).c_str());
  else
    std::fputs("\nstart\n", file);  // ends a line that was cut off
  std::fflush(file);
  return StateWriter(file);
}

void StateWriter::curve(const Point& point, Wire wire, double seconds) {
  std::fprintf(file_, "curve %s %s %d %.6g\n", name(point.lane).data(), name(wire).data(), point.bytes_index,
               seconds * 1e9);
}

void StateWriter::value(const Point& point, const Series& series, double seconds) {
  std::fprintf(file_, "grid %s %s %s %s %s %d %d %.6g\n", name(point.lane).data(), name(point.kind).data(),
               name(series.engine).data(), name(point.spread).data(), name(series.leaf).data(), point.bytes_index,
               point.block_index, seconds * 1e9);
}

void StateWriter::done(const Point& point) {
  std::fprintf(file_, "done %s\n", point.id().c_str());
  std::fflush(file_);
}

void StateWriter::gpu(const std::string& name, bool stand_in) {
  std::fprintf(file_, "gpu %d %s\n", stand_in ? 1 : 0, name.c_str());
  std::fflush(file_);
}

void StateWriter::device(const DevicePoint& point, double seconds) {
  const std::string id = point.id();
  std::fprintf(file_, "device %s %.6g\ndone %s\n", id.c_str(), seconds * 1e9, id.c_str());
  std::fflush(file_);
}

}  // namespace bestride
