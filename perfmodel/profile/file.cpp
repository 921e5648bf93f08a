// SPDX-License-Identifier: Apache-2.0
// Reads and writes a MachineProfile (docs/profile.md). No exception leaves this file.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <ostream>
#include <streambuf>
#include <string_view>
#include <vector>

#include "base/fnv1a.hpp"
#include "base/input_file.hpp"
#include "base/replace_file.hpp"
#include "perfmodel/profile/collective_json.hpp"
#include "perfmodel/profile/device_json.hpp"
#include "perfmodel/profile/image.hpp"
#include "perfmodel/profile/json_points.hpp"
#include "perfmodel/profile/one_node_json.hpp"
#include "perfmodel/profile/profile.hpp"

namespace bestride::inline perfmodel {
namespace {

constexpr const char* format_name = "bestride-profile";
constexpr int format_version = 2;
constexpr const char* respell_contiguous_key = "respell_contiguous_from";

/// FNV-1a, 64 bit, of what is written to it.
struct HashingBuffer : std::streambuf {
  std::uint64_t hash = fnv1a_start;

 private:
  int_type overflow(int_type character) override {
    hash = fnv1a(hash, static_cast<unsigned char>(character));
    return character;
  }
  std::streamsize xsputn(const char* text, std::streamsize length) override {
    for (std::streamsize i = 0; i < length; ++i) overflow(static_cast<unsigned char>(text[i]));
    return length;
  }
};

/// Detects damage and edits; it is no protection against deliberate changes.
std::string signature_text(std::uint64_t hash) {
  char text[32];
  std::snprintf(text, sizeof text, "fnv1a64:%016llx", static_cast<unsigned long long>(hash));
  return text;
}

/// FNV-1a, 64 bit, of the canonical dump of a file that has no signature yet.
std::string signature_of(const Json& file) {
  HashingBuffer buffer;
  std::ostream(&buffer) << file;
  return signature_text(buffer.hash);
}

Json axes() {
  Json bytes = Json::array();
  for (int i = 0; i < bytes_points; ++i) bytes.push_back(bytes_at(i));
  Json curve = Json::array();
  for (int i = 0; i < curve_points; ++i) curve.push_back(curve_bytes_at(i));
  return {{"bytes", bytes}, {"curve_bytes", curve}, {"block", block_lengths}, {"wide_jump", wide_jump}};
}

Json json_of(const MachineProfile& profile) {
  Json file;
  file["format"] = format_name;
  file["version"] = format_version;
  file["fingerprint"] = {{"cpu", profile.fingerprint.cpu},
                         {"mpi_library", profile.fingerprint.mpi_library},
                         {"host_class", profile.fingerprint.host_class},
                         {"bestride", profile.fingerprint.bestride}};
  if (!profile.fingerprint.gpu.empty()) file["fingerprint"]["gpu"] = profile.fingerprint.gpu;
  file["axes"] = axes();
  const Measurements& measured = profile.measured();
  Json curves = Json::array();
  for (ContiguousForm form : {ContiguousForm::plain, ContiguousForm::respelled})
    for (int call_class = 0; call_class < call_class_count; ++call_class) {
      const CostCurve& curve = measured.curve(form, static_cast<CallClass>(call_class));
      bool any = false;
      for (float value : curve.log_seconds) any |= !std::isnan(value);
      if (any)
        curves.push_back({{"call", name(static_cast<CallClass>(call_class))},
                          {"form", name(form)},
                          {"ns", row_of(curve.log_seconds)}});
    }
  file["contiguous"] = std::move(curves);
  Json grids = Json::array();
  for (int index = 0; index < grid_count; ++index) {
    const CostGrid& grid = measured.grids[static_cast<std::size_t>(index)];
    if (grid.measured() == 0) continue;
    const GridKey key = grid_key(index);
    Json rows = Json::array();
    for (const auto& row : grid.log_seconds) rows.push_back(row_of(row));
    grids.push_back({{"call", name(key.call_class)},
                     {"class", name(key.kind)},
                     {"engine", name(key.engine)},
                     {"spread", name(key.spread)},
                     {"leaf", name(key.leaf)},
                     {"ns", std::move(rows)}});
  }
  file["grids"] = std::move(grids);
  if (profile.device().measured().any()) file["gpu"] = json_of(profile.device().measured());
  if (profile.collectives().any()) file["collectives"] = json_of(profile.collectives());
  if (profile.one_node.any()) file["one_node"] = json_of(profile.one_node);
  if (!profile.rails.empty()) file["rails"] = profile.rails;
  if (profile.respell_contiguous_from > 0) file[respell_contiguous_key] = profile.respell_contiguous_from;
  file["signature"] = signature_of(file);
  return file;
}

/// Returns "" or what is wrong with an entry.
std::string read_measurements(const Json& file, Measurements* measured) {
  if (file.at("axes") != axes()) return "its axes are not this version's";
  for (const Json& entry : file.at("contiguous")) {
    CallClass call_class;
    ContiguousForm form;
    if (!named(entry.at("call"), call_class_count, &call_class) ||
        !named(entry.at("form"), contiguous_form_count, &form))
      return "a curve has an unknown call class or form";
    if (!read_row(entry.at("ns"), &measured->curve(form, call_class).log_seconds))
      return "the contiguous curve of '" + std::string(name(call_class)) + "' has a bad entry";
  }
  for (const Json& entry : file.at("grids")) {
    GridKey key;
    if (!named(entry.at("call"), grid_class_count, &key.call_class) ||
        !named(entry.at("class"), class_count + 1, &key.kind, 1) ||
        !named(entry.at("engine"), engine_count, &key.engine) ||
        !named(entry.at("spread"), spread_count, &key.spread) || !named(entry.at("leaf"), leaf_count, &key.leaf))
      return "a grid has an unknown call class, class, engine, spread or leaf";
    const Json& rows = entry.at("ns");
    bool good = rows.is_array() && rows.size() == bytes_points;
    for (std::size_t i = 0; good && i < rows.size(); ++i) good = read_row(rows[i], &(*measured)[key].log_seconds[i]);
    if (!good)
      return "the grid " + std::string(name(key.call_class)) + " " + std::string(name(key.kind)) + " " +
             std::string(name(key.engine)) + " has a bad entry";
  }
  return "";
}

std::string read_rails(const Json& names, Rails* rails) {
  if (!names.is_array() || names.empty()) return "its rails are no list of NICs";
  for (const Json& name : names) {
    if (!name.is_string()) return "its rails are no list of NICs";
    rails->push_back(name.get<std::string>());
  }
  // A name with a comma would be read back as two names.
  const Result<Rails> good = rails_of_list(list_of(*rails));
  if (!good) return "its rails: " + good.error().text;
  return *good == *rails ? "" : "its rails: a name has a comma in it";
}

Error bad(const std::string& path, const std::string& cause) {
  return {"profile '" + path + "': " + cause +
          "; the built-in profile is used (run 'bestride calibrate' to measure anew)"};
}

/// As read_file_text(), with an error that names the profile and the remedy.
Result<FileText> read_file(const std::string& path) {
  Result<FileText> text = read_file_text(path, most_profile_bytes);
  return text ? std::move(text) : bad(path, text.error().text);
}

/// The text after `key`; no value if `key` does not occur.
std::optional<std::string_view> text_after(const FileText& text, std::string_view key) {
  const std::string_view all(text.data(), text.size());
  const std::size_t at = all.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return all.substr(at + key.size());
}

/// `file`: the parsed `text`.
bool signature_fits(const FileText& text, Json& file) {
  const Json signature = file.value("signature", Json());
  if (!signature.is_string()) return false;
  // As save() writes it: the dump with the signature in it, and a newline.
  const std::string member = "\"signature\":" + signature.dump() + ",";
  if (const auto rest = text_after(text, member); rest && rest->ends_with('\n')) {
    HashingBuffer buffer;
    buffer.sputn(text.data(), static_cast<std::streamsize>(text.size() - rest->size() - member.size()));
    buffer.sputn(rest->data(), static_cast<std::streamsize>(rest->size() - 1));
    if (signature_text(buffer.hash) == signature) return true;
  }
  // Or formatted by another program.
  file.erase("signature");
  return signature_of(file) == signature;
}

}  // namespace

bool profile_may_have_rails(const std::string& path) {
  if (path.empty()) return false;
  const Result<FileText> text = read_file(path);
  return !text || text_after(*text, "\"rails\"");
}

std::int64_t respell_contiguous_from(const std::string& path) {
  if (path.empty()) return 0;
  const Result<FileText> text = read_file(path);
  if (!text) return 0;
  std::int64_t bytes = 0;
  if (const auto number = text_after(*text, '"' + std::string(respell_contiguous_key) + "\":"))
    std::from_chars(number->data(), number->data() + number->size(), bytes);
  return std::max<std::int64_t>(0, bytes);
}

namespace {

/// Everything in a profile but the curves.
struct Rest {
  MachineFingerprint fingerprint;
  DeviceMeasurements device;
  CollectiveMeasurements collectives;
  OneNodeMeasurements one_node;
  Rails rails;
  std::int64_t respell_contiguous_from = 0;
};

/// Returns "" or what is wrong with an entry; throws if one is missing or of the wrong kind.
std::string read_rest(const Json& file, Rest* rest) {
  std::string wrong;
  if (file.contains("gpu")) wrong = read_device(file.at("gpu"), &rest->device);
  if (wrong.empty() && file.contains("collectives"))
    wrong = read_collectives(file.at("collectives"), &rest->collectives);
  if (wrong.empty() && file.contains("one_node")) wrong = read_one_node(file.at("one_node"), &rest->one_node);
  if (wrong.empty() && file.contains("rails")) wrong = read_rails(file.at("rails"), &rest->rails);
  const Json from_bytes = file.value(respell_contiguous_key, Json(0));
  if (wrong.empty() && (!from_bytes.is_number_integer() || from_bytes.get<std::int64_t>() < 0))
    wrong = "its " + std::string(respell_contiguous_key) + " is no number of bytes";
  if (!wrong.empty()) return wrong;
  rest->respell_contiguous_from = from_bytes.get<std::int64_t>();
  const Json& print = file.at("fingerprint");
  const auto text = [&](const char* key) { return print.at(key).get<std::string>(); };
  rest->fingerprint = {text("cpu"), text("mpi_library"), text("host_class"), text("bestride"), print.value("gpu", "")};
  return "";
}

/// Adds what the constructor does not take.
void add_rest(MachineProfile* profile, Rest& rest, const std::string& path) {
  profile->one_node = rest.one_node;
  profile->rails = std::move(rest.rails);
  profile->respell_contiguous_from = rest.respell_contiguous_from;
  profile->path = path;
}

/// The text that read_rest() needs.
std::string text_of_rest(Json file) {
  for (const char* key : {"axes", "contiguous", "grids", "signature"}) file.erase(key);
  return file.dump();
}

}  // namespace

MachineProfile::MachineProfile(MappedPtr<Measurements> curves, MachineFingerprint print,
                               const DeviceMeasurements& device, CollectiveMeasurements collectives)
    : fingerprint(std::move(print)),
      filled_(std::move(curves)),
      curves_(filled_.get()),
      collectives_(std::move(collectives)) {
  if (device.any()) device_ = DeviceCosts::from(device);
}

Result<MachineProfile> MachineProfile::load(const std::string& path) {
  try {
    const Result<FileText> all = read_file(path);
    if (!all) return all.error();
    Json file = Json::parse(all->begin(), all->end(), nullptr, /*allow_exceptions=*/false);
    if (file.is_discarded()) return bad(path, "damaged or cut short (not JSON)");
    if (!file.is_object() || file.value("format", Json()) != format_name) return bad(path, "not a bestride profile");
    if (file.value("version", Json()) != format_version)
      return bad(path, "written by another version of bestride (format " + file.value("version", Json()).dump() +
                           ", this one reads " + std::to_string(format_version) + ")");
    if (!signature_fits(*all, file))
      return bad(path, "changed or damaged since it was written (its signature is wrong)");
    const MappedPtr<Measurements> measured = make_mapped<Measurements>();
    Rest rest;
    std::string wrong = read_measurements(file, measured.get());
    if (wrong.empty()) wrong = read_rest(file, &rest);
    if (!wrong.empty()) return bad(path, wrong);
    MachineProfile profile = from(*measured, std::move(rest.fingerprint), rest.device, std::move(rest.collectives));
    add_rest(&profile, rest, path);
    return profile;
  } catch (const std::bad_alloc&) {
    return Error{"not enough memory to read a profile"};
  } catch (const std::exception&) {
    return bad(path, "an entry is missing or of the wrong kind");
  }
}

Result<MachineProfile> MachineProfile::load_for_predictions(const std::string& path) {
  try {
    if (std::optional<ProfileImage> image = read_image(path)) {
      Rest rest;
      const Json file = Json::parse(image->rest, nullptr, /*allow_exceptions=*/false);
      if (!file.is_discarded() && read_rest(file, &rest).empty()) {
        MachineProfile profile(std::move(image->curves), std::move(rest.fingerprint), rest.device,
                               std::move(rest.collectives));
        add_rest(&profile, rest, path);
        return profile;
      }
    }
  } catch (const std::exception&) {
    // load() reports what is wrong.
  }
  return load(path);
}

Result<bool> MachineProfile::save(const std::string& path) const {
  try {
    const Json file = json_of(*this);
    const std::string text = file.dump(-1) + "\n";
    const std::filesystem::path target(path);
    std::error_code ignored;
    if (target.has_parent_path()) std::filesystem::create_directories(target.parent_path(), ignored);
    if (const auto written = replace_file(path, text); !written)
      return Error{written.error().text + "; choose another place with --output"};
    // The curves of the image are those that load() makes of the rounded numbers in the file. Without an image, or with
    // one of an older file, processes read the file itself.
    if (const Result<MachineProfile> saved = load(path)) (void)write_image(path, *saved->curves_, text_of_rest(file));
    return true;
  } catch (const std::exception& error) {
    return Error{"can't write '" + path + "': " + error.what()};
  }
}

}  // namespace bestride::inline perfmodel
