// SPDX-License-Identifier: Apache-2.0
#include "telemetry/symbols/symbolizer.hpp"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>

namespace bestride::inline telemetry {
namespace {

char* debug_path = nullptr;  // libdw's default: beside the file, in .debug, in /usr/lib/debug
const Dwfl_Callbacks callbacks = {dwfl_build_id_find_elf, dwfl_standard_find_debuginfo, dwfl_offline_section_address,
                                  &debug_path};

/// One module that was opened, or the reason why it was not.
struct Module {
  std::unique_ptr<Dwfl, decltype(&dwfl_end)> session{nullptr, &dwfl_end};
  Dwfl_Module* module = nullptr;
  std::vector<std::uint8_t> build_id;
  std::string problem;
};

Module open_module(const std::string& path) {
  Module result;
  // O_NONBLOCK: the path is from a record and may name anything.
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    result.problem = "can't read '" + path + "': " + (file < 0 ? std::strerror(errno) : "not a regular file");
    if (file >= 0) close(file);
    return result;
  }
  result.session.reset(dwfl_begin(&callbacks));
  if (result.session) {
    result.module = dwfl_report_offline(result.session.get(), path.c_str(), path.c_str(), file);  // takes `file`
    if (!result.module) close(file);
    dwfl_report_end(result.session.get(), nullptr, nullptr);
  } else {
    close(file);
  }
  GElf_Addr bias = 0;
  if (!result.module || !dwfl_module_getelf(result.module, &bias)) {
    result.module = nullptr;
    result.problem = "'" + path + "' is not a program or library: " + dwfl_errmsg(-1);
    return result;
  }
  const unsigned char* bits = nullptr;
  GElf_Addr address = 0;
  if (const int length = dwfl_module_build_id(result.module, &bits, &address); length > 0)
    result.build_id.assign(bits, bits + length);
  return result;
}

/// The linkage name of a function, which names its class or module, else its plain name.
std::string name_of(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  for (const unsigned what : {unsigned{DW_AT_linkage_name}, unsigned{DW_AT_MIPS_linkage_name}})
    if (dwarf_attr_integrate(die, what, &attribute))
      if (const char* const name = dwarf_formstring(&attribute)) return readable_function(name);
  const char* const name = dwarf_diename(die);
  return name ? name : "";
}

/// File and line of the call that was inlined as `die`.
SourceLocation call_site(Dwarf_Die* unit, Dwarf_Die* die) {
  SourceLocation location;
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_attr(die, DW_AT_call_line, &attribute) && dwarf_formudata(&attribute, &value) == 0)
    location.line = static_cast<int>(value);
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  if (dwarf_attr(die, DW_AT_call_file, &attribute) && dwarf_formudata(&attribute, &value) == 0 &&
      dwarf_getsrcfiles(unit, &files, &count) == 0 && value < count)
    if (const char* const name = dwarf_filesrc(files, value, nullptr, nullptr)) location.file = name;
  return location;
}

/// Finds the innermost scope below `die` that has the address. Unlike dwarf_getscopes also that of a function whose
/// entry is inside of another function's, where its code is not: regions of OpenMP, procedures of Fortran after
/// "contains".
bool find_nested(Dwarf_Die* die, Dwarf_Addr address, Dwarf_Die* found) {
  Dwarf_Die child;
  if (dwarf_child(die, &child) != 0) return false;
  do {
    const bool here = dwarf_haspc(&child, address) > 0;
    if (here) *found = child;
    if (find_nested(&child, address, found) || here) return true;
  } while (dwarf_siblingof(&child, &child) == 0);
  return false;
}

/// Where the address is, by the line table and the scopes around it.
std::vector<SourceLocation> find_in_dwarf(Dwfl_Module* module, Dwarf_Addr address) {
  std::vector<SourceLocation> frames;
  Dwarf_Addr bias = 0;
  Dwarf_Die* const unit = dwfl_module_addrdie(module, address, &bias);
  if (!unit) return frames;
  SourceLocation here;
  if (Dwfl_Line* const line = dwfl_module_getsrc(module, address))
    if (const char* const file = dwfl_lineinfo(line, nullptr, &here.line, nullptr, nullptr, nullptr)) here.file = file;
  Dwarf_Die* scopes = nullptr;
  const int count = dwarf_getscopes(unit, address - bias, &scopes);
  Dwarf_Die innermost;
  bool is_known = count > 0;
  if (is_known) innermost = scopes[0];
  if (!is_known || dwarf_tag(&innermost) == DW_TAG_compile_unit)
    is_known = find_nested(unit, address - bias, &innermost);
  // dwarf_getscopes takes the callers of an inlined function from where it was defined; the tree has the right ones.
  Dwarf_Die* around = nullptr;
  const int depth = is_known ? dwarf_getscopes_die(&innermost, &around) : 0;
  for (int i = 0; i < depth; ++i) {
    const int tag = dwarf_tag(&around[i]);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
    here.function = name_of(&around[i]);
    frames.push_back(here);
    if (tag == DW_TAG_subprogram) break;
    here = call_site(unit, &around[i]);
  }
  std::free(around);
  std::free(scopes);
  if (frames.empty() && !here.file.empty()) frames.push_back(here);
  return frames;
}

}  // namespace

struct Symbolizer::Modules {
  std::map<std::string, Module> by_path;
};

Symbolizer::Symbolizer() : modules_(std::make_unique<Modules>()) {
  unsetenv("DEBUGINFOD_URLS");  // else libdw asks these servers and waits for their answer
}
Symbolizer::~Symbolizer() = default;
bool Symbolizer::available() noexcept { return true; }

SymbolLookup Symbolizer::find(const std::string& path, std::span<const std::uint8_t> build_id, std::uint64_t address) {
  auto found = modules_->by_path.find(path);
  if (found == modules_->by_path.end()) found = modules_->by_path.emplace(path, open_module(path)).first;
  const Module& module = found->second;
  if (!module.module) return {{}, module.problem};
  if (!build_id.empty() && !std::equal(build_id.begin(), build_id.end(), module.build_id.begin(),
                                       module.build_id.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                     build_id.size(), module.build_id.size()))))
    return {{}, "'" + path + "' is not the file that the job has loaded (another build id)"};
  GElf_Addr bias = 0;
  dwfl_module_getelf(module.module, &bias);
  const GElf_Addr at = address + bias;
  SymbolLookup result{find_in_dwarf(module.module, at), ""};
  if (result.frames.empty() || result.frames.back().function.empty()) {
    GElf_Off offset = 0;
    GElf_Sym symbol;
    const char* const name = dwfl_module_addrinfo(module.module, at, &offset, &symbol, nullptr, nullptr, nullptr);
    if (name && result.frames.empty()) result.frames.emplace_back();
    if (name) result.frames.back().function = readable_function(name);
  }
  if (result.frames.empty()) result.problem = "'" + path + "' has no symbol for the address";
  return result;
}

}  // namespace bestride::inline telemetry
