// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/common/state_file.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

namespace bestride::inline perfmodel {
namespace {

constexpr std::string_view state_format = "bestride-measure 2 ";

}  // namespace

StateFile read_state_file(const std::string& path) {
  StateFile file;
  std::ifstream in(path);
  std::string line;
  if (!std::getline(in, line) || !line.starts_with(state_format)) return file;
  file.subject = line.substr(state_format.size());
  StatePoint point;
  while (std::getline(in, line) && !in.eof()) {
    if (line == "start") {
      point.records.clear();
    } else if (line.starts_with("done ")) {
      point.id = line.substr(5);
      file.points.push_back(std::exchange(point, {}));
    } else {
      point.records.push_back(line);
    }
  }
  return file;
}

Result<StateWriter> StateWriter::open(const std::string& path, const std::string& subject, bool anew) {
  std::FILE* file = std::fopen(path.c_str(), anew ? "we" : "ae");
  if (!file)
    return Error{"can't write the state file '" + path + "': " + std::strerror(errno) +
                 "; choose another place with --output"};
  std::fseek(file, 0, SEEK_END);
  if (std::ftell(file) == 0)
    std::fprintf(file, "%s%s\n", std::string(state_format).c_str(), subject.c_str());
  else
    std::fputs("\nstart\n", file);  // ends a line that was cut off
  std::fflush(file);
  return StateWriter(file);
}

void StateWriter::record(const char* format, ...) {
  std::va_list values;
  va_start(values, format);
  std::vfprintf(file_, format, values);
  va_end(values);
  std::fputc('\n', file_);
}

void StateWriter::done(const std::string& id) {
  std::fprintf(file_, "done %s\n", id.c_str());
  std::fflush(file_);
}

}  // namespace bestride::inline perfmodel
