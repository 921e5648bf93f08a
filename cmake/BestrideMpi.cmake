# Finds the MPI libraries a back can be compiled for. Each found one becomes an imported target bestride_mpi_<abi> (headers and
# library) and is listed in BESTRIDE_ABIS; what is not found is said, not an error.

set(BESTRIDE_ABIS "")

# MPICH and its ABI family. -DBESTRIDE_MPICH_CC=/path/to/mpicc picks one.
find_program(BESTRIDE_MPICH_CC NAMES mpicc.mpich)
if(NOT BESTRIDE_MPICH_CC)
  find_program(BESTRIDE_ANY_MPICC NAMES mpicc)
  if(BESTRIDE_ANY_MPICC)
    execute_process(COMMAND ${BESTRIDE_ANY_MPICC} -show OUTPUT_VARIABLE _show ERROR_QUIET)
    if(_show MATCHES "mpich|libmpi\\.so\\.12|-lmpi ")
      set(BESTRIDE_MPICH_CC ${BESTRIDE_ANY_MPICC} CACHE FILEPATH "MPICH compiler wrapper" FORCE)
    endif()
  endif()
endif()
if(BESTRIDE_MPICH_CC)
  execute_process(COMMAND ${BESTRIDE_MPICH_CC} -show OUTPUT_VARIABLE _show OUTPUT_STRIP_TRAILING_WHITESPACE)
  separate_arguments(_words UNIX_COMMAND "${_show}")
  set(_includes "")
  set(_links "")
  foreach(_word ${_words})
    if(_word MATCHES "^-I(.+)")
      list(APPEND _includes ${CMAKE_MATCH_1})
    elseif(_word MATCHES "^-(L|l|Wl)")
      list(APPEND _links ${_word})
    endif()
  endforeach()
  add_library(bestride_mpi_mpich INTERFACE)
  target_include_directories(bestride_mpi_mpich SYSTEM INTERFACE ${_includes})
  target_link_options(bestride_mpi_mpich INTERFACE)
  target_link_libraries(bestride_mpi_mpich INTERFACE ${_links})
  # The headers alone: for objects that must leave no MPI symbol undefined.
  add_library(bestride_mpi_headers_mpich INTERFACE)
  target_include_directories(bestride_mpi_headers_mpich SYSTEM INTERFACE ${_includes})
  list(APPEND BESTRIDE_ABIS mpich)
  get_filename_component(_bin ${BESTRIDE_MPICH_CC} DIRECTORY)
  find_program(BESTRIDE_MPIEXEC_MPICH NAMES mpiexec.mpich mpiexec.hydra mpiexec HINTS ${_bin})
  find_program(BESTRIDE_MPIFORT_MPICH NAMES mpifort.mpich mpif90.mpich HINTS ${_bin})
else()
  bestride_leave_out("the MPICH back and every test that runs MPI" "no MPICH compiler wrapper found (Debian: libmpich-dev, mpich)")
endif()

# bestride_mpi_test(<name> SOURCES ... RANKS 1 2 ... [LIBRARIES ...] [ARGUMENTS ...] [ENVIRONMENT A=1 ...] [PRELOAD] [TIMEOUT s])
# An MPI program, run at each number of ranks; with PRELOAD under libbestride.so. One ctest entry per rank count: <name>.np<N>.
function(bestride_mpi_test name)
  cmake_parse_arguments(ARG "PRELOAD" "TIMEOUT" "SOURCES;RANKS;LIBRARIES;ARGUMENTS;ENVIRONMENT" ${ARGN})
  if(NOT BESTRIDE_TESTS OR NOT "mpich" IN_LIST BESTRIDE_ABIS)
    return()
  endif()
  if(ARG_SOURCES)
    add_executable(${name} ${ARG_SOURCES})
    target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} bestride_flags bestride_mpi_mpich)
  endif()
  bestride_mpi_run(${name} PROGRAM ${name} RANKS ${ARG_RANKS} ARGUMENTS ${ARG_ARGUMENTS} ENVIRONMENT ${ARG_ENVIRONMENT}
    TIMEOUT ${ARG_TIMEOUT} PRELOAD ${ARG_PRELOAD})
endfunction()

# What a sanitizer needs to live in one process with MPICH; empty without one. The settings of the run stand before these.
set(BESTRIDE_SANITIZER_ENVIRONMENT "")
if(BESTRIDE_SANITIZE MATCHES "address")
  # The preloaded library precedes the sanitizer's runtime, which is harmless: it defines nothing that the runtime intercepts.
  # A small quarantine, because some tests bound the resident memory.
  set(BESTRIDE_SANITIZER_ENVIRONMENT ASAN_OPTIONS=verify_asan_link_order=0:quarantine_size_mb=8
    LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/support/lsan.supp:print_suppressions=0 UBSAN_OPTIONS=print_stacktrace=1)
elseif(BESTRIDE_SANITIZE MATCHES "thread")
  # UCX rewrites the code of mmap() to see memory go; under ThreadSanitizer, which has its own, that ends in a crash at MPI_Init.
  set(BESTRIDE_SANITIZER_ENVIRONMENT UCX_MEM_MMAP_HOOK_MODE=none)
endif()

# bestride_mpi_run(<test name> PROGRAM target RANKS ... [ARGUMENTS] [ENVIRONMENT] [PRELOAD TRUE|FALSE] [TIMEOUT s] [SANITIZE])
# Registers further runs of a program that is built already. SANITIZE: also worth its time under a sanitizer (label sanitize).
function(bestride_mpi_run name)
  cmake_parse_arguments(ARG "SANITIZE" "PROGRAM;PRELOAD;TIMEOUT" "RANKS;ARGUMENTS;ENVIRONMENT" ${ARGN})
  if(NOT BESTRIDE_TESTS OR NOT "mpich" IN_LIST BESTRIDE_ABIS)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set(_labels mpi)
  if(ARG_SANITIZE)
    list(APPEND _labels sanitize)
  endif()
  foreach(ranks ${ARG_RANKS})
    set(_launch ${BESTRIDE_MPIEXEC_MPICH} -n ${ranks})
    if(ARG_PRELOAD)
      list(APPEND _launch -genv LD_PRELOAD $<TARGET_FILE:bestride>)
    endif()
    add_test(NAME ${name}.np${ranks} COMMAND ${_launch} $<TARGET_FILE:${ARG_PROGRAM}> ${ARG_ARGUMENTS})
    set_tests_properties(${name}.np${ranks} PROPERTIES TIMEOUT ${ARG_TIMEOUT} PROCESSORS 2 LABELS "${_labels}"
      ENVIRONMENT "${ARG_ENVIRONMENT};${BESTRIDE_SANITIZER_ENVIRONMENT}")
  endforeach()
endfunction()
