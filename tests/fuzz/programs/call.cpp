// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/programs/call.hpp"

#include <dlfcn.h>

#include "datatype/named.hpp"
#include "tests/fuzz/programs/common.h"
#include "tests/support/mpi_types.hpp"

namespace bestride::fuzz {
namespace {

struct Constant {
  int value;
  const char* name;
};
const Constant constants[] = {
    {MPI_COMM_WORLD, "MPI_COMM_WORLD"},
    {MPI_COMM_SELF, "MPI_COMM_SELF"},
    {MPI_COMM_NULL, "MPI_COMM_NULL"},
    {MPI_DATATYPE_NULL, "MPI_DATATYPE_NULL"},
    {MPI_OP_NULL, "MPI_OP_NULL"},
    {MPI_REQUEST_NULL, "MPI_REQUEST_NULL"},
    {MPI_INFO_NULL, "MPI_INFO_NULL"},
    {MPI_GROUP_EMPTY, "MPI_GROUP_EMPTY"},
    {MPI_ERRORS_RETURN, "MPI_ERRORS_RETURN"},
    {MPI_ERRORS_ARE_FATAL, "MPI_ERRORS_ARE_FATAL"},
    {MPI_SUM, "MPI_SUM"},
    {MPI_MAX, "MPI_MAX"},
    {MPI_MIN, "MPI_MIN"},
    {MPI_PROD, "MPI_PROD"},
    {MPI_BXOR, "MPI_BXOR"},
    {MPI_BAND, "MPI_BAND"},
    {MPI_MINLOC, "MPI_MINLOC"},
    {MPI_MAXLOC, "MPI_MAXLOC"},
    {MPI_REPLACE, "MPI_REPLACE"},
    {MPI_MESSAGE_NULL, "MPI_MESSAGE_NULL"},
    {MPI_WIN_NULL, "MPI_WIN_NULL"},
};

const char* macro_of(std::string_view word) {
  struct Word {
    const char *word, *macro;
  };
  static constexpr Word odd[] = {{"bool", "MPI_C_BOOL"},
                                 {"complex", "MPI_C_FLOAT_COMPLEX"},
                                 {"double_complex", "MPI_C_DOUBLE_COMPLEX"},
                                 {"long_double_complex", "MPI_C_LONG_DOUBLE_COMPLEX"},
                                 {"long_long", "MPI_LONG_LONG"}};
  for (const Word& one : odd)
    if (word == one.word) return one.macro;
  return nullptr;
}

}  // namespace

std::string quoted(const char* text) { return "\"" + std::string(text) + "\""; }

Recorder Recorder::fork(std::string prefix) const {
  Recorder other(*this);
  other.prefix_ = std::move(prefix);
  other.body.clear();
  other.declarations.clear();
  return other;
}

std::string Recorder::handle(int value) const {
  if (value > -1000000 && value < 0x04000000) return std::to_string(value);
  for (const Constant& one : constants)
    if (one.value == value) return one.name;
  for (const NamedType& type : named_types()) {
    if (test::predefined(type.name) != value) continue;
    if (const char* macro = macro_of(type.name)) return macro;
    std::string name = "MPI_";
    for (const char c : type.name) name += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
    return type.name.find("int8") != std::string_view::npos || type.name.find("int16") != std::string_view::npos ||
                   type.name.find("int32") != std::string_view::npos ||
                   type.name.find("int64") != std::string_view::npos
               ? name + "_T"
               : name;
  }
  const auto found = handles_.find(value);
  return found == handles_.end() ? std::to_string(value) + " /* ? */" : found->second;
}

std::string Recorder::address(const void* pointer) const {
  if (pointer == nullptr) return "0";
  if (pointer == MPI_IN_PLACE) return "MPI_IN_PLACE";
  if (pointer == MPI_UNWEIGHTED) return "MPI_UNWEIGHTED";
  if (pointer == static_cast<const void*>(MPI_STATUS_IGNORE)) return "(void *)1";
  if (const auto file = pointers_.find(pointer); file != pointers_.end()) return file->second;
  auto after = regions_.upper_bound(static_cast<const char*>(pointer));
  if (after != regions_.begin()) {
    const auto& [begin, region] = *--after;
    const auto offset = static_cast<const char*>(pointer) - begin;
    if (offset <= static_cast<std::ptrdiff_t>(region.length)) return region.name + " + " + std::to_string(offset);
  }
  return "(void *)" + std::to_string(reinterpret_cast<std::intptr_t>(pointer));
}

std::string Recorder::fresh(const char* prefix, const char* ctype) {
  std::string name = prefix + prefix_ + std::to_string(++counter_);
  declarations += "static " + std::string(ctype) + " " + name + ";\n";
  return name;
}

std::string Recorder::region(const void* begin, std::size_t length, const char* prefix) {
  const std::string name = fresh(prefix, "char *");
  line(name + " = aligned_alloc(64, " + std::to_string((length + 64) / 64 * 64) + ");");
  regions_[static_cast<const char*>(begin)] = {length, name};
  return name;
}

void List::set(const std::vector<std::int64_t>& values, Element element) {
  element_ = element;
  values_ = values;
  narrow_.assign(values.begin(), values.end());
  only_pointer_ = false;
  text.clear();
}
void List::set_pointer(const void* pointer) {
  only_pointer_ = true;
  pointer_ = pointer;
}
const void* List::data() const {
  static_assert(sizeof(MPI_Aint) == sizeof(std::int64_t) && sizeof(MPI_Count) == sizeof(std::int64_t));
  if (only_pointer_) return pointer_;
  if (values_.empty()) return nullptr;
  return element_ == Element::integer ? static_cast<const void*>(narrow_.data()) : values_.data();
}
bool List::operator==(const List& other) const {
  return !only_pointer_ && !other.only_pointer_ && element_ == other.element_ && values_ == other.values_;
}

std::string show(Recorder& r, const Place& x) {
  const std::string base = r.address(x.at);
  return x.shift == 0 ? base : "(char *)" + base + " + " + std::to_string(x.shift);
}
std::string show(Recorder& r, const Address& x) { return "(MPI_Aint[]){(MPI_Aint)(" + r.address(x.at()) + ")}"; }
std::string show(Recorder& r, const List& x) {
  if (x.values().empty() || x.only_pointer()) return r.address(x.data());
  if (!x.text.empty()) return x.text;
  const char* const type = x.element() == List::Element::integer ? "int"
                           : x.element() == List::Element::count ? "MPI_Count"
                                                                 : "MPI_Aint";
  std::string values;
  for (const std::int64_t one : x.values())
    values += (values.empty() ? "" : ",") +
              (x.element() == List::Element::integer ? r.handle(static_cast<int>(one)) : std::to_string(one));
  // A call with the same array again gets the same address.
  x.text = r.fresh("list", (std::string(type) + " *").c_str());
  r.line(x.text + " = (" + type + "[]){" + values + "};");
  return x.text;
}

void* Caller::look_up(const char* name) {
  draws = fuzz_mix(draws);
  if (draws % 4 != 0) return nullptr;
  static void* const program = dlopen(nullptr, RTLD_NOW);
  const bool of_program = draws / 4 % 2 == 0;
  const std::string symbol = (draws / 8 % 4 == 0 ? "PMPI_" : "MPI_") + std::string(name);
  if (recorder)
    looked_up = "((__typeof__(&MPI_" + std::string(name) + "))dlsym(" +
                (of_program ? "dlopen(0, RTLD_NOW)" : "RTLD_DEFAULT") + ", \"" + symbol + "\"))";
  return dlsym(of_program ? program : RTLD_DEFAULT, symbol.c_str());
}

void Caller::item(const std::string& key, std::int64_t value) { items += " " + key + "=" + std::to_string(value); }

bool Caller::draw() {
  draws = fuzz_mix(draws);
  return draws % 4 == 0;
}

void Caller::announce(const std::string& text) {
  static const bool wanted = std::getenv("FUZZ_ANNOUNCE") != nullptr;
  if (wanted) std::fprintf(stderr, "%s\n", text.c_str());
}

void Caller::finish(const char* name, int code, const std::string& text) {
  const int error = fuzz_class(code);
  if (error != 0) items += " !" + std::string(name) + "=" + std::to_string(error);
  if (recorder) recorder->line("rc(" + std::to_string(error) + ", " + text + ");");
}

}  // namespace bestride::fuzz
