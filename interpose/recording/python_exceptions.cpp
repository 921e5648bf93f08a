// SPDX-License-Identifier: Apache-2.0
#include "interpose/recording/python_exceptions.hpp"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "telemetry/record/end_notes.hpp"
#include "telemetry/record/recorder.hpp"

namespace bestride::inline interpose {
namespace {

/// Functions of Python's stable ABI; the interpreter is not linked.
struct Python {
  using Object = void;
  using Hook = int(const char* event, Object* arguments, void* data);
  int (*Py_IsInitialized)();
  int (*PyGILState_Check)();
  int (*PySys_AddAuditHook)(Hook*, void*);
  Object* (*PySys_GetObject)(const char*);  ///< borrowed
  void* (*PyCFunction_GetFunction)(Object*);
  void* (*PyType_GetSlot)(Object*, int);
  Object** PyExc_SystemExit;
  Object* PyBaseObject_Type;  ///< the type itself
  int (*Py_AddPendingCall)(int (*)(void*), void*);
  Object* (*PyTuple_GetItem)(Object*, long);  ///< borrowed
  Object* (*PyObject_GetAttrString)(Object*, const char*);
  Object* (*PyObject_Str)(Object*);
  Object* (*PyUnicode_AsEncodedString)(Object*, const char* encoding, const char* errors);
  char* (*PyBytes_AsString)(Object*);
  long (*PyLong_AsLong)(Object*);
  Object* (*PyEval_GetFrame)();  ///< borrowed
  void (*Py_DecRef)(Object*);
  void (*PyErr_Fetch)(Object**, Object**, Object**);
  void (*PyErr_Restore)(Object*, Object*, Object*);

  /// The calling thread holds the interpreter's lock.
  static bool has_thread_state() noexcept {
    using Get = void*();
    for (const char* const name : {"PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet"})
      if (auto* const get = reinterpret_cast<Get*>(dlsym(RTLD_DEFAULT, name))) return get() != nullptr;
    return false;
  }
  bool load() noexcept {
#define BESTRIDE_PYTHON(name) ((name = reinterpret_cast<decltype(name)>(dlsym(RTLD_DEFAULT, #name))) != nullptr)
    return BESTRIDE_PYTHON(Py_IsInitialized) && BESTRIDE_PYTHON(PyGILState_Check) &&
           BESTRIDE_PYTHON(PySys_AddAuditHook) && BESTRIDE_PYTHON(PySys_GetObject) &&
           BESTRIDE_PYTHON(PyCFunction_GetFunction) && BESTRIDE_PYTHON(PyType_GetSlot) &&
           BESTRIDE_PYTHON(PyExc_SystemExit) && BESTRIDE_PYTHON(PyBaseObject_Type) &&
           BESTRIDE_PYTHON(Py_AddPendingCall) && BESTRIDE_PYTHON(PyTuple_GetItem) &&
           BESTRIDE_PYTHON(PyObject_GetAttrString) && BESTRIDE_PYTHON(PyObject_Str) &&
           BESTRIDE_PYTHON(PyUnicode_AsEncodedString) && BESTRIDE_PYTHON(PyBytes_AsString) &&
           BESTRIDE_PYTHON(PyLong_AsLong) && BESTRIDE_PYTHON(PyEval_GetFrame) && BESTRIDE_PYTHON(Py_DecRef) &&
           BESTRIDE_PYTHON(PyErr_Fetch) && BESTRIDE_PYTHON(PyErr_Restore);
#undef BESTRIDE_PYTHON
  }
};
Python python;

/// A reference that is owned, or null after an error.
class Reference {
 public:
  explicit Reference(Python::Object* object) noexcept : object_(object) {}
  ~Reference() {
    if (object_) python.Py_DecRef(object_);
  }
  Reference(Reference&& other) noexcept : object_(other.object_) { other.object_ = nullptr; }
  Reference& operator=(Reference&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  Python::Object* get() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  Reference attribute(const char* name) const noexcept {
    return Reference(object_ ? python.PyObject_GetAttrString(object_, name) : nullptr);
  }
  long number() const noexcept { return object_ ? python.PyLong_AsLong(object_) : 0; }
  /// str(object) in UTF-8 without control characters; "" after an error.
  std::string text() const {
    const Reference string(object_ ? python.PyObject_Str(object_) : nullptr);
    const Reference bytes(string ? python.PyUnicode_AsEncodedString(string.get(), "utf-8", "backslashreplace")
                                 : nullptr);
    const char* const characters = bytes ? python.PyBytes_AsString(bytes.get()) : nullptr;
    std::string result = characters ? characters : "";
    for (char& c : result)
      if (static_cast<unsigned char>(c) < ' ' || c == 127) c = ' ';
    return result;
  }

 private:
  Python::Object* object_;
};

/// The path as Python knows it; of a long one the last folders: ".../solver/input.py".
std::string shortened(const std::string& path) {
  constexpr std::size_t most_bytes = 80;
  if (path.size() <= most_bytes) return path;
  const std::size_t slash = path.find('/', path.size() - most_bytes);
  return slash == path.npos ? path.substr(path.rfind('/') + 1) : "..." + path.substr(slash);
}

/// "load (/home/me/solver/input.py:12)\n" for each frame, innermost first; "" without a traceback (None).
std::string frames_of(Python::Object* traceback) {
  constexpr int most_frames = 1000;
  std::string text;
  Reference owner(nullptr);  // of `traceback`, from the second frame on
  for (int i = 0; i < most_frames && traceback; ++i) {
    const Reference frame(python.PyObject_GetAttrString(traceback, "tb_frame"));
    if (!frame) break;
    const Reference code = frame.attribute("f_code");
    const std::string file = code.attribute("co_filename").text();
    const long line = Reference(python.PyObject_GetAttrString(traceback, "tb_lineno")).number();
    text = code.attribute("co_name").text() + " (" + shortened(file) + ":" + std::to_string(line) + ")\n" + text;
    owner = Reference(python.PyObject_GetAttrString(traceback, "tb_next"));
    traceback = owner.get();
  }
  return text;
}

/// The frames of the calling thread, innermost first, as faulthandler writes them.
std::string frames_of_caller() {
  constexpr int most_frames = 16;
  std::string text;
  Reference owner(nullptr);  // of `frame`, from the second one on
  Python::Object* frame = python.PyEval_GetFrame();
  for (int i = 0; i < most_frames && frame; ++i) {
    const Reference code(python.PyObject_GetAttrString(frame, "f_code"));
    const long line = Reference(python.PyObject_GetAttrString(frame, "f_lineno")).number();
    text += "  File \"" + shortened(code.attribute("co_filename").text()) + "\", line " + std::to_string(line) +
            " in " + code.attribute("co_name").text() + "\n";
    owner = Reference(python.PyObject_GetAttrString(frame, "f_back"));
    frame = owner.attribute("f_code") ? owner.get() : nullptr;  // None has no code
  }
  return text;
}

void drop_error() {
  Python::Object* error[3] = {};
  python.PyErr_Fetch(&error[0], &error[1], &error[2]);
  for (Python::Object* const each : error)
    if (each) python.Py_DecRef(each);
}

/// The interpreter's error, which is unchanged at the end; what is called meanwhile may set another.
class KeptError {
 public:
  KeptError() noexcept { python.PyErr_Fetch(&type_, &value_, &traceback_); }
  ~KeptError() {
    drop_error();
    python.PyErr_Restore(type_, value_, traceback_);
  }

 private:
  Python::Object *type_ = nullptr, *value_ = nullptr, *traceback_ = nullptr;
};

thread_local bool noting_in_python = false;  ///< what a note asks the interpreter for may lead to further notes

/// "numpy.linalg.LinAlgError", "ValueError".
std::string name_of_type(Python::Object* type) {
  const std::string module = Reference(python.PyObject_GetAttrString(type, "__module__")).text();
  const std::string name = Reference(python.PyObject_GetAttrString(type, "__qualname__")).text();
  const bool is_short = module.empty() || module == "builtins" || module == "__main__";
  return is_short || name.empty() ? name : module + "." + name;
}

void note_exception(Python::Object* arguments) {
  const std::string name = name_of_type(python.PyTuple_GetItem(arguments, 1));
  std::string what = Reference(python.PyObject_Str(python.PyTuple_GetItem(arguments, 2))).text();
  what.resize(std::min(what.find(", error stack:"), what.size()));  // the functions of the MPI library
  constexpr std::size_t most_bytes = 200;
  if (what.size() > most_bytes) {
    std::size_t length = most_bytes;
    while (length > 0 && (static_cast<unsigned char>(what[length]) & 0xc0) == 0x80) --length;  // whole characters
    what.resize(length);
  }
  if (name.empty()) return;
  note_end(EndKind::exception, 0,
           name + (what.empty() ? "" : ": " + what) + "\n" + frames_of(python.PyTuple_GetItem(arguments, 3)));
}

int on_event(const char* event, Python::Object* arguments, void*) {
  if (std::strcmp(event, "sys.excepthook") != 0) return 0;
  // With a Python frame below it, the program has only printed the exception, as PyRun_SimpleString() does.
  if (noting_in_python || python.PyEval_GetFrame()) return 0;
  noting_in_python = true;
  try {
    const KeptError kept;
    note_exception(arguments);
  } catch (...) {  // without memory
  }
  noting_in_python = false;
  return 0;
}

/// In other threads than the main one, SystemExit ends the thread.
void note_system_exit() noexcept {
  if (noting_in_python || syscall(SYS_gettid) != getpid() || !thread_recorder->record) return;
  noting_in_python = true;
  try {
    const KeptError kept;
    note_end(EndKind::system_exit, 0, frames_of_caller());
  } catch (...) {  // without memory
  }
  noting_in_python = false;
}

/// What is called for sys.exit(). A function that takes its arguments in a tuple has no `count`.
using Exit = Python::Object*(Python::Object* module, Python::Object* arguments, long count);
Exit* original_exit = nullptr;
Python::Object* exit_noted(Python::Object* module, Python::Object* arguments, long count) {
  note_system_exit();
  return original_exit(module, arguments, count);
}

using Initialize = int(Python::Object* self, Python::Object* arguments, Python::Object* keywords);
Initialize* original_initialize = nullptr;
int initialize_noted(Python::Object* self, Python::Object* arguments, Python::Object* keywords) {
  note_system_exit();
  return original_initialize(self, arguments, keywords);
}

/// The interpreter calls sys.exit() through the PyMethodDef of its object, whose first members are a name and the
/// function, and which follows the head of the object.
void note_calls_of_exit() {
  Python::Object* const function = python.PySys_GetObject("exit");
  void* const called = function ? python.PyCFunction_GetFunction(function) : nullptr;
  const Reference head(python.PyObject_GetAttrString(python.PyBaseObject_Type, "__basicsize__"));
  if (!called || !head) return drop_error();
  void** const method = *reinterpret_cast<void***>(static_cast<char*>(function) + head.number());
  if (std::strcmp(static_cast<const char*>(method[0]), "exit") != 0 || method[1] != called) return;
  original_exit = reinterpret_cast<Exit*>(called);
  method[1] = reinterpret_cast<void*>(&exit_noted);
}

/// The object of an exception is made at `raise SystemExit`, and for sys.exit() from CPython 3.12 on.
void note_system_exit_objects() {
  constexpr int initialize_slot = 60;  // Py_tp_init
  constexpr std::size_t most_words = 64;
  void* const called = python.PyType_GetSlot(*python.PyExc_SystemExit, initialize_slot);
  if (!called) return drop_error();  // before CPython 3.10
  void** const type = static_cast<void**>(*python.PyExc_SystemExit);
  void** const slot = std::find(type, type + most_words, called);
  if (slot == type + most_words) return;
  original_initialize = reinterpret_cast<Initialize*>(called);
  *slot = reinterpret_cast<void*>(&initialize_noted);
}

int add_hook(void*) {
  if (python.PySys_AddAuditHook(on_event, nullptr) != 0) drop_error();  // a hook of the program refuses others
  note_calls_of_exit();
  note_system_exit_objects();
  return 0;
}

}  // namespace

void note_python_exceptions() noexcept {
  if (!python.load() || !python.Py_IsInitialized()) return;
  // A caller that has released the interpreter's lock, as ctypes does, may not wait for it here; Python's main thread
  // adds the hook soon. With sub-interpreters PyGILState_Check() is always true.
  if (python.has_thread_state() && python.PyGILState_Check())
    add_hook(nullptr);
  else
    python.Py_AddPendingCall(add_hook, nullptr);
}

}  // namespace bestride::inline interpose
