# How every room, tool and test of the project is built.

add_library(bestride_flags INTERFACE)
target_compile_options(bestride_flags INTERFACE -Wall -Wextra -Wno-unused-parameter
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>)  # -Wrestrict: false positives of GCC 12 on std::string
target_include_directories(bestride_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_definitions(bestride_flags INTERFACE BESTRIDE_VERSION="${PROJECT_VERSION}")
if(BESTRIDE_SANITIZE)
  string(REPLACE ";" "," _sanitize "${BESTRIDE_SANITIZE}")
  target_compile_options(bestride_flags INTERFACE -fsanitize=${_sanitize} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
  target_link_options(bestride_flags INTERFACE -fsanitize=${_sanitize})
endif()

# Several sources in one translation unit: a third of the time for a whole build, more for a change of one file.
option(BESTRIDE_UNITY "compile the library, the command and larger programs in unity batches" ON)
# bestride_unity(<target>...): these are compiled so.
function(bestride_unity)
  set_target_properties(${ARGV} PROPERTIES UNITY_BUILD ${BESTRIDE_UNITY} UNITY_BUILD_BATCH_SIZE 10)
  if(BESTRIDE_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC takes what lies in an anonymous namespace of an included source for a mistake.
    foreach(target ${ARGV})
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    endforeach()
  endif()
endfunction()

# bestride_compile_quickly(<target>...): these take long to compile and their speed does not matter, with a sanitizer least of all.
function(bestride_compile_quickly)
  foreach(target ${ARGV})
    target_compile_options(${target} PRIVATE $<IF:$<BOOL:${BESTRIDE_SANITIZE}>,-O0,-O1>)
  endforeach()
endfunction()

# bestride_room(<name> SOURCES ... [ROOMS below...]): the static, position-independent library bestride_<name>.
function(bestride_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;ROOMS" ${ARGN})
  add_library(bestride_${name} STATIC ${ARG_SOURCES})
  bestride_unity(bestride_${name})
  target_link_libraries(bestride_${name} PUBLIC bestride_flags)
  foreach(room ${ARG_ROOMS})
    target_link_libraries(bestride_${name} PUBLIC bestride_${room})
  endforeach()
endfunction()

# What scripts/test builds to run the tests labelled unit or sanitize: these, and what they run. A test of these labels that none of
# the functions here or in BestrideMpi.cmake made names its programs by itself; one forgotten is a test that did not run, which fails.
add_custom_target(sanitized_tests)
function(bestride_sanitized)
  add_dependencies(sanitized_tests ${ARGV})
endfunction()

set_property(GLOBAL PROPERTY BESTRIDE_LEFT_OUT "")
# bestride_leave_out("what" "because, and how to get it")
function(bestride_leave_out what why)
  set_property(GLOBAL APPEND PROPERTY BESTRIDE_LEFT_OUT "${what}: ${why}")
endfunction()
function(bestride_say_what_is_left_out)
  get_property(all GLOBAL PROPERTY BESTRIDE_LEFT_OUT)
  if(all)
    message(STATUS "Left out of this build:")
    foreach(line ${all})
      message(STATUS "  ${line}")
    endforeach()
  else()
    message(STATUS "Nothing is left out of this build.")
  endif()
endfunction()

# -O1: half the time to compile of -O3. -Warray-bounds: false positives of GCC 12 on std::string, which precompiled headers no longer hide.
function(bestride_unit_test_options target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1> $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-array-bounds;-fpch-preprocess>)
endfunction()
if(BESTRIDE_TESTS)
  find_package(GTest)
  if(NOT GTest_FOUND)
    bestride_leave_out("unit tests" "GoogleTest is not installed (Debian: libgtest-dev)")
  else()
    # The headers that every unit test reads, compiled once: most of the time of compiling a small test.
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/unit_test_headers.cpp CONTENT "")
    add_executable(bestride_unit_test_headers EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/unit_test_headers.cpp)
    target_link_libraries(bestride_unit_test_headers PRIVATE bestride_flags GTest::gtest GTest::gmock GTest::gtest_main)
    bestride_unit_test_options(bestride_unit_test_headers)
    target_precompile_headers(bestride_unit_test_headers PRIVATE <gtest/gtest.h> <gmock/gmock.h> <algorithm> <cmath> <fstream> <map>
      <random> <string> <thread> <vector>)
  endif()
endif()
# bestride_unit_test(<name> SOURCES ... LIBRARIES ... [ARGUMENTS ...] [THREADS]): a GoogleTest program without MPI.
# THREADS: it has threads, so it runs under ThreadSanitizer too.
function(bestride_unit_test name)
  cmake_parse_arguments(ARG "THREADS" "" "SOURCES;LIBRARIES;ARGUMENTS" ${ARGN})
  if(NOT BESTRIDE_TESTS OR NOT GTest_FOUND)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} bestride_flags GTest::gtest GTest::gmock GTest::gtest_main)
  bestride_unit_test_options(${name})
  target_precompile_headers(${name} REUSE_FROM bestride_unit_test_headers)
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGUMENTS})
  bestride_sanitized(${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 300 LABELS unit)
  if(ARG_THREADS)
    set_property(TEST ${name} APPEND PROPERTY LABELS threads)
  endif()
endfunction()

# bestride_header_comparison(<name> SOURCE file HEADER header OURS header [HINTS dir...] REMEDY text): static assertions that what we declare of a
# library that is opened at run time is what its own header says. Compiled, never run; left out where that header is not.
function(bestride_header_comparison name)
  cmake_parse_arguments(ARG "" "SOURCE;HEADER;OURS;REMEDY" "HINTS" ${ARGN})
  if(NOT BESTRIDE_TESTS)
    return()
  endif()
  find_path(${name}_headers ${ARG_HEADER} HINTS ${ARG_HINTS} PATH_SUFFIXES include)
  if(NOT ${name}_headers)
    bestride_leave_out("the comparison of ${ARG_OURS} with ${ARG_HEADER}" "${ARG_HEADER} was not found${ARG_REMEDY}")
    return()
  endif()
  add_library(${name} OBJECT ${ARG_SOURCE})
  target_include_directories(${name} SYSTEM PRIVATE ${${name}_headers})
  target_link_libraries(${name} PRIVATE bestride_flags)
endfunction()
