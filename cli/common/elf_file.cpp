// SPDX-License-Identifier: Apache-2.0
#include "cli/common/elf_file.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

namespace bestride::inline cli {
namespace {

#if defined(__x86_64__)
constexpr int this_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr int this_machine = EM_AARCH64;
#elif defined(__powerpc64__)
constexpr int this_machine = EM_PPC64;
#else
constexpr int this_machine = EM_NONE;
#endif

/// The bytes of a file, with every access checked. Values are copied out, because offsets in a broken file need not be
/// aligned.
class FileBytes {
 public:
  explicit FileBytes(std::string_view bytes) : bytes_(bytes) {}

  template <class Value>
  bool get(std::uint64_t offset, Value& value) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof value) return false;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return true;
  }
  /// The zero-terminated string at `offset`; "" if it is outside the file or not terminated.
  std::string_view string(std::uint64_t offset) const {
    if (offset >= bytes_.size()) return "";
    const auto end = bytes_.find('\0', offset);
    return end == std::string_view::npos ? "" : bytes_.substr(offset, end - offset);
  }

 private:
  std::string_view bytes_;
};

class Mapping {
 public:
  // O_NONBLOCK: a FIFO without a writer would block.
  explicit Mapping(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    struct stat info;
    if (fd_ < 0 || ::fstat(fd_, &info) != 0) {
      error_ = errno;
    } else if (!S_ISREG(info.st_mode)) {
      error_ = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
    } else if (info.st_size > 0) {
      void* const start = ::mmap(nullptr, static_cast<std::size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd_, 0);
      if (start == MAP_FAILED)
        error_ = errno;
      else
        bytes_ = {static_cast<const char*>(start), static_cast<std::size_t>(info.st_size)};
    }
  }
  ~Mapping() {
    if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
    if (fd_ >= 0) ::close(fd_);
  }
  Mapping(const Mapping&) = delete;
  int error() const { return error_; }
  std::string_view bytes() const { return bytes_; }

 private:
  int fd_;
  int error_ = 0;
  std::string_view bytes_;
};

bool interesting(std::string_view name) {
  return name.starts_with("MPI_") || name.starts_with("PMPI_") || name == "dlopen" || name == "__asan_default_options";
}

/// "mpi_isend" for mpi_isend_, mpi_isend__, mpi_isend_f08_, mpi_isend_f08ts_ and their forms with large counts; "" for
/// other names.
std::string_view fortran_binding(std::string_view name) {
  if (!name.starts_with("mpi_") || !name.ends_with('_')) return "";
  while (name.ends_with('_')) name.remove_suffix(1);
  for (const std::string_view suffix : {"_large", "_c", "_f08ts", "_f08"})
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return name;
}

/// File offset of a virtual address; 0 if no segment contains it.
std::uint64_t offset_of(const FileBytes& bytes, const Elf64_Ehdr& header, std::uint64_t address) {
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!bytes.get(header.e_phoff + i * sizeof segment, segment)) break;
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz)
      return segment.p_offset + (address - segment.p_vaddr);
  }
  return 0;
}

void read_dynamic(const FileBytes& bytes, const Elf64_Ehdr& header, const Elf64_Phdr& segment, ElfFile& file) {
  std::vector<std::uint64_t> names;
  std::uint64_t strings = 0;
  for (std::uint64_t i = 0; i < segment.p_filesz / sizeof(Elf64_Dyn); ++i) {
    Elf64_Dyn entry;
    if (!bytes.get(segment.p_offset + i * sizeof entry, entry) || entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_NEEDED) names.push_back(entry.d_un.d_val);
    if (entry.d_tag == DT_STRTAB) strings = offset_of(bytes, header, entry.d_un.d_ptr);
  }
  for (const std::uint64_t name : names)
    if (const auto text = bytes.string(strings + name); strings && !text.empty()) file.needed.emplace_back(text);
}

void read_segments(const FileBytes& bytes, const Elf64_Ehdr& header, ElfFile& file) {
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!bytes.get(header.e_phoff + i * sizeof segment, segment)) return;
    if (segment.p_type == PT_INTERP) file.interpreter = bytes.string(segment.p_offset);
    if (segment.p_type == PT_DYNAMIC) read_dynamic(bytes, header, segment, file);
  }
}

void read_symbols(const FileBytes& bytes, const Elf64_Ehdr& header, ElfFile& file) {
  for (unsigned s = 0; s < header.e_shnum; ++s) {
    Elf64_Shdr section, strings;
    if (!bytes.get(header.e_shoff + s * sizeof section, section)) return;
    if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) continue;
    if (section.sh_type == SHT_SYMTAB) file.stripped = false;
    if (!bytes.get(header.e_shoff + section.sh_link * sizeof strings, strings)) continue;
    for (std::uint64_t i = 1; i < section.sh_size / sizeof(Elf64_Sym); ++i) {
      Elf64_Sym symbol;
      if (!bytes.get(section.sh_offset + i * sizeof symbol, symbol)) break;
      std::string_view name = bytes.string(strings.sh_offset + symbol.st_name);
      name = name.substr(0, name.find('@'));  // .symtab includes versions in the names
      if (const auto function = fortran_binding(name); !function.empty() && symbol.st_shndx == SHN_UNDEF)
        file.fortran_imports.emplace(function);
      if (!interesting(name)) continue;
      if (symbol.st_shndx == SHN_UNDEF)
        file.imports.emplace(name);
      else if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
        file.defines.emplace(name);
    }
  }
}

}  // namespace

Result<ElfFile> ElfFile::read(const std::string& path) {
  const Mapping mapping(path);
  if (mapping.error())
    return Error{"can't read '" + path + "': " + std::strerror(mapping.error()) + "; give the program the job runs"};
  const FileBytes bytes(mapping.bytes());
  Elf64_Ehdr header;
  if (!mapping.bytes().starts_with("\177ELF") || !bytes.get(0, header))
    return Error{"'" + path + "' is not an ELF program; give the program the job runs"};
  if (header.e_ident[EI_CLASS] == ELFCLASS32)
    return Error{"'" + path +
                 "' is a 32-bit program, into which no 64-bit library can be preloaded; build it for 64 bits"};
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != this_machine)
    return Error{"'" + path + "' is built for another processor than this command; run the command on such a machine"};
  ElfFile file;
  read_segments(bytes, header, file);
  read_symbols(bytes, header, file);
  return file;
}

}  // namespace bestride::inline cli
