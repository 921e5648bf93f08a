// SPDX-License-Identifier: Apache-2.0
#pragma once
// A small harness for tests that are MPI programs: named cases that all ranks run together.
//
//   MPI_CASE(send_on_a_duplicate) { ...; CHECK_EQUAL(expected, got); }
//   int main(int argc, char** argv) { return run_cases(argc, argv); }
//
// program                    runs every case
// program --list             prints their names, one per line, without MPI; "alone" follows that of an MPI_CASE_ALONE
// program --only NAME...     runs these cases
// Rank 0 prints the name and result of each case when it ends; run_cases.py reads them. A failed check prints rank,
// case, line, expected and got, and the case continues. The exit status is 0 if no rank failed. GoogleTest does not
// support cases that several processes run and that fail if one rank fails.
#include <mpi.h>

#include <sstream>
#include <string>

namespace bestride::test {

using CaseFunction = void (*)();

struct Registration {
  Registration(const char* name, CaseFunction run, bool alone);
};

/// Rank in and size of MPI_COMM_WORLD.
int world_rank();
int world_size();

/// Records a failure of the running case on this rank. At most 20 per rank are printed.
void fail_check(const char* file, int line, const std::string& what);

/// The program's main(). `threads`: the level that MPI_Init_thread requests. `before_each`: called before each case.
int run_cases(int argc, char** argv, int threads = MPI_THREAD_SINGLE, void (*before_each)() = nullptr);

/// The class of an error code.
int error_class(int code);

/// Makes errors on the communicator return instead of being fatal, until it is destroyed.
class ReturnErrors {
 public:
  explicit ReturnErrors(MPI_Comm comm) : comm_(comm) {
    MPI_Comm_get_errhandler(comm, &before_);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  }
  ~ReturnErrors() {
    MPI_Comm_set_errhandler(comm_, before_);
    MPI_Errhandler_free(&before_);
  }
  ReturnErrors(const ReturnErrors&) = delete;
  ReturnErrors& operator=(const ReturnErrors&) = delete;

 private:
  MPI_Comm comm_;
  MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
};

template <class Expected, class Got>
void check_equal(const char* file, int line, const char* text, const Expected& expected, const Got& got) {
  if (got == expected) return;
  std::ostringstream what;
  what << text << ": expected " << expected << ", got " << got;
  fail_check(file, line, what.str());
}

}  // namespace bestride::test

#define BESTRIDE_TEST_CASE(name, alone)                                                \
  static void name();                                                                  \
  static const ::bestride::test::Registration registration_##name(#name, name, alone); \
  static void name()
#define MPI_CASE(name) BESTRIDE_TEST_CASE(name, false)
/// A case that needs a process without other cases before or after it; a comment says why.
#define MPI_CASE_ALONE(name) BESTRIDE_TEST_CASE(name, true)

#define CHECK(condition)                                                            \
  do {                                                                              \
    if (!(condition)) ::bestride::test::fail_check(__FILE__, __LINE__, #condition); \
  } while (false)

#define CHECK_EQUAL(expected, got) ::bestride::test::check_equal(__FILE__, __LINE__, #got, (expected), (got))
