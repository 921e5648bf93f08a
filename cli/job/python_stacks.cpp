// SPDX-License-Identifier: Apache-2.0
#include "cli/job/python_stacks.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "cli/common/shell.hpp"
#include "telemetry/record/printable.hpp"

namespace bestride::inline cli {
namespace {

constexpr int patience = 5;  // seconds

/// "/opt/venv/bin/" of "/opt/venv/bin/python"; "" without a folder.
std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

std::string find_py_spy(const RankSnapshot& rank) {
  // As it was called: in a virtual environment, the interpreter is a link to another folder.
  std::ifstream file("/proc/" + std::to_string(rank.pid) + "/cmdline");
  std::string called;
  std::getline(file, called, '\0');
  for (const std::string& interpreter : {called, rank.executable})
    if (const std::string path = folder_of(interpreter) + "py-spy";
        interpreter.starts_with('/') && access(path.c_str(), X_OK) == 0)
      return path;
  return find_program("py-spy");
}

bool is_interpreter(const NamedFrame& frame, const std::string& executable) {
  return frame.module == base_name(executable) || frame.module.starts_with("libpython") ||
         frame.module.find(".cpython-") != std::string::npos || frame.module.find(".abi3.") != std::string::npos ||
         frame.module.starts_with("_ctypes.") || frame.module.starts_with("libffi.");
}

}  // namespace

bool runs_python(const RankSnapshot& rank) { return base_name(rank.executable).starts_with("python"); }

Result<std::map<int, std::vector<NamedFrame>>> python_frames(const RankSnapshot& rank) {
  const std::string py_spy = find_py_spy(rank);
  if (py_spy.empty())
    return Error{"the Python frames are not known without py-spy: pip install py-spy, where the ranks' python is"};
  const auto output =
      output_of({py_spy, "dump", "--pid", std::to_string(rank.pid), "--json", "--nonblocking"}, patience);
  const auto json = nlohmann::json::parse(output ? output->text : "", nullptr, /*allow_exceptions=*/false);
  if (!output || output->exit_code != 0 || !json.is_array())
    return Error{py_spy + " can't read the Python frames of process " + std::to_string(rank.pid)};
  std::map<int, std::vector<NamedFrame>> result;
  try {
    for (const auto& thread : json) {
      std::vector<NamedFrame> frames;
      for (const auto& frame : thread.at("frames"))
        frames.push_back({frame.at("name"), "", frame.at("filename"), frame.at("line")});
      std::reverse(frames.begin(), frames.end());
      if (thread.at("os_thread_id").is_number() && !frames.empty())
        result[thread.at("os_thread_id").get<int>()] = std::move(frames);
    }
  } catch (const nlohmann::json::exception& error) {
    return Error{py_spy + " writes another format than is known: " + error.what()};
  }
  return result;
}

std::vector<NamedFrame> interpreted_frames(const std::string& text) {
  const std::string file = "  File \"", line = "\", line ", function = " in ";
  std::vector<NamedFrame> frames;
  std::istringstream lines(text);
  for (std::string each; std::getline(lines, each);) {
    const std::size_t file_end = each.find(line);
    if (!each.starts_with(file) || file_end == each.npos) continue;
    int number = 0;
    const auto [rest, error] = std::from_chars(each.data() + file_end + line.size(), each.data() + each.size(), number);
    const std::string name = printable(rest);
    if (error != std::errc() || !name.starts_with(function)) continue;
    frames.push_back(
        {name.substr(function.size()), "", printable(each.substr(file.size(), file_end - file.size())), number});
  }
  std::reverse(frames.begin(), frames.end());
  return frames;
}

std::vector<NamedFrame> with_python_frames(const std::vector<NamedFrame>& native, const std::vector<NamedFrame>& python,
                                           const std::string& executable) {
  const auto last = std::find_if(native.rbegin(), native.rend(),
                                 [&](const NamedFrame& frame) { return is_interpreter(frame, executable); });
  if (last == native.rend()) return native;
  std::vector<NamedFrame> result = python;
  result.insert(result.end(), last.base(), native.end());
  return result;
}

}  // namespace bestride::inline cli
