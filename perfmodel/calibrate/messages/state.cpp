// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/messages/state.hpp"

#include <map>
#include <sstream>

namespace bestride::inline perfmodel {
namespace {

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

/// False if the record is neither a curve nor a grid.
bool apply_message(const std::string& record, Measurements* values) {
  std::istringstream in(record);
  std::string what;
  in >> what;
  GridKey key;
  ContiguousForm form = ContiguousForm::plain;
  int i = -1, k = 0;
  double ns = 0;
  if (!read_name(in, call_class_count, &key.call_class)) return false;
  if (what == "curve") {
    if (!read_name(in, contiguous_form_count, &form)) return false;
    in >> i >> ns;
  } else if (what == "grid") {
    if (static_cast<int>(key.call_class) >= grid_class_count || !read_name(in, class_count + 1, &key.kind) ||
        !read_name(in, engine_count, &key.engine) || !read_name(in, spread_count, &key.spread) ||
        !read_name(in, leaf_count, &key.leaf))
      return false;
    in >> i >> k >> ns;
  }
  if (!in || i < 0 || i >= (what == "curve" ? curve_points : bytes_points) || k < 0 || k >= block_points || !(ns > 0))
    return false;
  if (what == "curve") {
    values->curve(form, key.call_class).set(i, ns * 1e-9);
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
bool apply_gpu(const std::string& record, MessagesState* state) {
  if (!record.starts_with("gpu ")) return false;
  const std::string name = record.substr(std::min(record.size(), std::size_t{6}));
  if (name != state->gpu) state->clear_device();
  state->gpu = name;
  state->device.stand_in = record.starts_with("gpu 1");
  return true;
}

bool apply_device(const std::string& record, DeviceMeasurements* values) {
  static const std::map<std::string, DevicePoint> points = [] {
    std::map<std::string, DevicePoint> all;
    for (const DevicePoint& point : make_device_plan(false)) all.emplace(point.id(), point);
    for (Distance distance : {Distance::node, Distance::network})
      for (const DevicePoint& point : make_wire_plan(distance)) all.emplace(point.id(), point);
    return all;
  }();
  std::istringstream in(record);
  std::string what, id;
  double ns = 0;
  if (!(in >> what >> id >> ns) || what != "device" || !(ns > 0) || !points.count(id)) return false;
  store(points.at(id), ns * 1e-9, values);
  return true;
}

}  // namespace

void MessagesState::clear_device() {
  device = {};
  std::erase_if(done, [](const std::string& id) { return id.starts_with("gpu."); });
}

std::string messages_subject(const std::string& configuration) { return "messages " + configuration; }

MessagesState read_messages_state(const std::string& path, const std::string& configuration) {
  MessagesState state;
  const StateFile file = read_state_file(path);
  if (file.subject != messages_subject(configuration)) return state;
  for (const StatePoint& point : file.points) {
    bool complete = true;
    for (const std::string& record : point.records)
      complete &=
          apply_gpu(record, &state) || apply_device(record, &state.device) || apply_message(record, &state.values);
    if (complete) state.done.insert(point.id);
  }
  return state;
}

void write_point(StateWriter& state, const Point& point, const std::vector<double>& seconds) {
  const std::vector<Series> series = series_at(point);
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    const double ns = seconds[i] * 1e9;
    if (point.kind == Shape::Class::contiguous)
      state.record("curve %s %s %d %.6g", name(point.call_class).data(), name(static_cast<ContiguousForm>(i)).data(),
                   point.bytes_index, ns);
    else
      state.record("grid %s %s %s %s %s %d %d %.6g", name(point.call_class).data(), name(point.kind).data(),
                   name(series[i].engine).data(), name(point.spread).data(), name(series[i].leaf).data(),
                   point.bytes_index, point.block_index, ns);
  }
  state.done(point.id());
}

void write_device_point(StateWriter& state, const DevicePoint& point, double seconds, const std::string& gpu,
                        bool stand_in) {
  state.record("gpu %d %s", stand_in ? 1 : 0, gpu.c_str());
  state.record("device %s %.6g", point.id().c_str(), seconds * 1e9);
  state.done(point.id());
}

}  // namespace bestride::inline perfmodel
