// SPDX-License-Identifier: Apache-2.0
#pragma once
// Makes each MPI call of the executor by its MPI_ or its PMPI_ name, records its error class and, if the program is to
// be printed, a line of C. Arguments other than numbers are wrapped, so that the C line has names for them.
#include <mpi.h>

#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace bestride::fuzz {

struct New {
  int* at;
  const char* prefix;
};  ///< a handle that the call creates
struct Gone {
  int* at;
};  ///< a handle that the call frees and sets to null
template <class T>
struct Out {
  T* at;
};  ///< a result that is compared
template <class T>
struct Scratch {
  T* at;
  std::size_t n;
};  ///< a result that is not compared
template <class F>
struct Named {
  F function;
  const char* name;
};
struct Request {
  MPI_Request h = MPI_REQUEST_NULL;
  int id = 0;
};
struct Status {
  MPI_Status s{};
  int id = 0;
};
struct Value {
  const Request* request;
};  ///< a request given by value
struct NewFile {
  MPI_File* at;
};
struct FileGone {
  MPI_File* at;
};
struct Position {
  int* at;
  const char* name;
};  ///< an argument that is read and written

/// An address that may lie outside the memory.
struct Place {
  const void* at = nullptr;
  std::int64_t shift = 0;  ///< bytes
};
/// An absolute address as a displacement.
class Address {
 public:
  explicit Address(const void* at) : at_(at), value_(reinterpret_cast<MPI_Aint>(at)) {}
  const void* at() const { return at_; }
  const MPI_Aint* value() const { return &value_; }

 private:
  const void* at_;
  MPI_Aint value_;
};
/// An array argument: counts, displacements or types. It must live until the operation completes.
class List {
 public:
  enum class Element { integer, count, address };

  void set(const std::vector<std::int64_t>& values, Element element);
  /// A pointer that MPI must not read.
  void set_pointer(const void* pointer);
  const void* data() const;
  bool operator==(const List& other) const;
  const std::vector<std::int64_t>& values() const { return values_; }
  Element element() const { return element_; }
  bool only_pointer() const { return only_pointer_; }
  /// Its name in the C text.
  mutable std::string text;

 private:
  Element element_ = Element::integer;
  std::vector<std::int64_t> values_;
  std::vector<int> narrow_;
  bool only_pointer_ = false;
  const void* pointer_ = nullptr;
};
/// The pointer of a List, as each function declares it.
struct ListPointer {
  const void* at;
  operator const int*() const { return static_cast<const int*>(at); }
  operator const MPI_Aint*() const { return static_cast<const MPI_Aint*>(at); }
};

/// The calls of one thread of one rank as C text.
class Recorder {
 public:
  explicit Recorder(std::string prefix) : prefix_(std::move(prefix)) {}
  /// A recorder for another thread, which has the existing handles and buffers.
  Recorder fork(std::string prefix) const;

  std::string handle(int value) const;
  std::string address(const void* pointer) const;
  std::string fresh(const char* prefix, const char* ctype);
  void bind(int value, std::string name) { handles_[value] = std::move(name); }
  void bind_file(const void* file, std::string name) { pointers_[file] = std::move(name); }
  /// Declares memory that the C program allocates; returns its name.
  std::string region(const void* begin, std::size_t length, const char* prefix);
  void forget_region(const void* begin) { regions_.erase(static_cast<const char*>(begin)); }
  void line(const std::string& text) { body += "  " + text + "\n"; }

  std::string body, declarations;

 private:
  struct Region {
    std::size_t length;
    std::string name;
  };
  std::string prefix_;
  int counter_ = 0;
  std::map<int, std::string> handles_;
  std::map<const void*, std::string> pointers_;
  std::map<const char*, Region> regions_;
};

// The values that MPI gets.
template <class T>
T raw(const T& value) {
  return value;
}
inline int* raw(const New& x) { return x.at; }
inline int* raw(const Gone& x) { return x.at; }
template <class T>
T* raw(const Out<T>& x) {
  return x.at;
}
inline int* raw(const Position& x) { return x.at; }
inline void* raw(const Place& x) {
  return reinterpret_cast<void*>(reinterpret_cast<std::intptr_t>(x.at) + static_cast<std::intptr_t>(x.shift));
}
inline const MPI_Aint* raw(const Address& x) { return x.value(); }
inline ListPointer raw(const List& x) { return {x.data()}; }
inline MPI_Request raw(const Value& x) { return x.request->h; }
inline MPI_File* raw(const NewFile& x) { return x.at; }
inline MPI_File* raw(const FileGone& x) { return x.at; }
template <class T>
T* raw(const Scratch<T>& x) {
  return x.at;
}
template <class F>
F raw(const Named<F>& x) {
  return x.function;
}
inline MPI_Request* raw(Request& x) { return &x.h; }
inline MPI_Status* raw(Status& x) { return &x.s; }
template <class T>
T* raw(std::vector<T>& x) {
  return x.data();
}
template <class T>
const T* raw(const std::vector<T>& x) {
  return x.data();
}

// The values as C text.
template <class T>
constexpr const char* c_type() {
  if constexpr (std::is_same_v<T, int>)
    return "int";
  else if constexpr (std::is_same_v<T, MPI_Aint>)
    return "MPI_Aint";
  else if constexpr (std::is_same_v<T, char>)
    return "char";
  else if constexpr (std::is_same_v<T, void*>)
    return "void *";
  else
    return "MPI_Count";
}
std::string quoted(const char* text);
template <class T>
std::string show(Recorder& r, const T& x) {
  if constexpr (std::is_same_v<T, int>)
    return r.handle(x);
  else if constexpr (std::is_integral_v<T>)
    return std::to_string(x);
  else if constexpr (std::is_same_v<T, const char*> || std::is_same_v<T, char*>)
    return quoted(x);
  else
    return r.address(reinterpret_cast<const void*>(x));
}
inline std::string show(Recorder& r, const Gone& x) { return "(int[]){" + r.handle(*x.at) + "}"; }
inline std::string show(Recorder& r, const Position& x) { return "&" + std::string(x.name); }
inline std::string show(Recorder& r, const Value& x) { return "q[" + std::to_string(x.request->id) + "]"; }
inline std::string show(Recorder& r, const FileGone& x) { return "&" + r.address(*x.at); }
inline std::string show(Recorder& r, Request& x) { return "&q[" + std::to_string(x.id) + "]"; }
inline std::string show(Recorder& r, Status& x) { return "&st[" + std::to_string(x.id) + "]"; }
std::string show(Recorder& r, const Place& x);
std::string show(Recorder& r, const Address& x);
std::string show(Recorder& r, const List& x);
template <class F>
std::string show(Recorder& r, const Named<F>& x) {
  return x.name;
}
template <class T>
std::string show(Recorder& r, const Scratch<T>& x) {
  return "(" + std::string(c_type<T>()) + "[" + std::to_string(x.n + 1) + "]){0}";
}
template <class T>
std::string show(Recorder& r, const std::vector<T>& x) {
  if (x.empty()) return "0";
  std::string text = "(" + std::string(c_type<T>()) + "[]){";
  for (const T& one : x) text += (text.back() == '{' ? "" : ",") + show(r, one);
  return text + "}";
}

/// Makes the MPI calls of one thread.
class Caller {
 public:
  Recorder* recorder = nullptr;
  bool some_pmpi = false;   ///< whether PMPI_ names and addresses from dlsym may be chosen
  std::uint64_t draws = 1;  ///< state of the random choice of names
  std::string items;        ///< trace output of the running step
  int types_alive = 0;      ///< number of derived types, including parts of others

  template <class F, class... A>
  int invoke(const char* name, F* mpi, F* pmpi, A&&... arguments) {
    F* const found = some_pmpi ? reinterpret_cast<F*>(look_up(name)) : nullptr;
    const bool by_pmpi = !found && some_pmpi && draw();
    std::string text;
    std::vector<std::string> after;
    if (recorder) {
      text = (found ? looked_up : std::string(by_pmpi ? "PMPI_" : "MPI_") + name) + "(";
      ((text += (text.back() == '(' ? "" : ", ") + argument(arguments, after)), ...);
      text += ")";
      announce(text);
    }
    const int code = (found ? found : by_pmpi ? pmpi : mpi)(raw(arguments)...);
    finish(name, code, text);
    if (recorder) (write_result(arguments, after), ...);
    return code;
  }
  /// Adds "key=value" to the trace line of the running step.
  void item(const std::string& key, std::int64_t value);
  void say(const std::string& text) { items += " " + text; }
  void line(const std::string& text) {
    if (recorder) recorder->line(text);
  }

 private:
  std::string looked_up;  ///< the function that look_up() found, as C text
  bool draw();
  /// Sometimes the address of MPI_`name` or PMPI_`name`, from dlsym; else nullptr.
  void* look_up(const char* name);
  /// If FUZZ_ANNOUNCE is set, writes each recorded call to stderr before it is made, for programs that crash in it.
  static void announce(const std::string& text);
  void finish(const char* name, int code, const std::string& text);

  template <class T>
  std::string argument(T& x, std::vector<std::string>&) {
    return show(*recorder, x);
  }
  std::string argument(New& x, std::vector<std::string>& after) {
    after.push_back(recorder->fresh(x.prefix, "int"));
    return "&" + after.back();
  }
  std::string argument(NewFile& x, std::vector<std::string>& after) {
    after.push_back(recorder->fresh("file", "MPI_File"));
    return "&" + after.back();
  }
  template <class T>
  std::string argument(Out<T>& x, std::vector<std::string>& after) {
    after.push_back(recorder->fresh("out", c_type<T>()));
    return "&" + after.back();
  }
  template <class T>
  void write_result(T&, std::vector<std::string>&) {}
  void write_result(New& x, std::vector<std::string>& after) {
    recorder->bind(*x.at, after.front());
    after.erase(after.begin());
  }
  void write_result(NewFile& x, std::vector<std::string>& after) {
    recorder->bind_file(*x.at, after.front());
    after.erase(after.begin());
  }
  template <class T>
  void write_result(Out<T>& x, std::vector<std::string>& after) {
    if constexpr (std::is_integral_v<T>)
      recorder->line("is(\"" + after.front() + "\", " + after.front() + ", " + show(*recorder, *x.at) + ");");
    after.erase(after.begin());
  }
};

}  // namespace bestride::fuzz

/// CALL(context, Send, buffer, 1, MPI_INT, ...): MPI_Send or PMPI_Send. Evaluates to the error code.
#define CALL(context, function, ...) (context).invoke(#function, &MPI_##function, &PMPI_##function, __VA_ARGS__)
