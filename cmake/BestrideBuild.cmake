# Functions that build the rooms, tools and tests of the project.

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

# Several sources in one translation unit: a full build takes a third of the time, but a build after a change of one file takes longer.
option(BESTRIDE_UNITY "compile the library, the command and larger programs in unity batches" ON)
# bestride_unity(<target>...): compiles these targets in unity batches.
function(bestride_unity)
  set_target_properties(${ARGV} PROPERTIES UNITY_BUILD ${BESTRIDE_UNITY} UNITY_BUILD_BATCH_SIZE 10)
  if(BESTRIDE_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC warns about the use of anonymous namespaces in included sources.
    foreach(target ${ARGV})
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    endforeach()
  endif()
endfunction()

# bestride_compile_quickly(<target>...): reduces optimization for targets that take long to compile and whose speed does not matter.
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

# bestride_function_source(<output> <what> [arguments...] [DEPENDS files...]): a source that interpose/preload/generate.py makes of
# functions.tsv at build time. The caller adds it to the sources of a target of the same folder.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(BESTRIDE_FUNCTIONS ${CMAKE_SOURCE_DIR}/interpose/preload/functions.tsv)
set(BESTRIDE_FUNCTIONS_COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_SOURCE_DIR}/interpose/preload/generate.py ${BESTRIDE_FUNCTIONS})
set(BESTRIDE_FUNCTIONS_DEPENDS ${CMAKE_SOURCE_DIR}/interpose/preload/generate.py ${BESTRIDE_FUNCTIONS})
function(bestride_function_source output)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  add_custom_command(OUTPUT ${output} COMMAND ${BESTRIDE_FUNCTIONS_COMMAND} ${ARG_UNPARSED_ARGUMENTS} > ${output}
    DEPENDS ${BESTRIDE_FUNCTIONS_DEPENDS} ${ARG_DEPENDS} VERBATIM)
endfunction()

# The targets that scripts/test builds for the tests labeled unit or sanitize. The functions here and in BestrideMpi.cmake add the programs
# of the tests that they create; other tests must add theirs. If a program is missing, its test fails.
add_custom_target(sanitized_tests)
function(bestride_sanitized)
  add_dependencies(sanitized_tests ${ARGV})
endfunction()

# bestride_depend_on_folder(<target> <source folder>): the target builds all programs and libraries of this folder and of those below.
function(bestride_depend_on_folder target folder)
  get_property(_targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(_each ${_targets})
    add_dependencies(${target} ${_each})
  endforeach()
  get_property(_below DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(_each ${_below})
    bestride_depend_on_folder(${target} ${_each})
  endforeach()
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

# Optimized less, because compiling takes longer than the tests. -Warray-bounds: false positives of GCC 12 on std::string, which precompiled
# headers no longer hide.
function(bestride_unit_test_options target)
  target_compile_options(${target} PRIVATE $<IF:$<BOOL:${BESTRIDE_SANITIZE}>,-O0,$<$<CONFIG:Release>:-O1>> $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-array-bounds;-fpch-preprocess>)
endfunction()
# Builds the unit tests. Those without RELEASE are not in the target all, because scripts/test runs them only under the sanitizers.
add_custom_target(unit_tests)
if(BESTRIDE_TESTS)
  find_package(GTest)
  if(NOT GTest_FOUND)
    bestride_leave_out("unit tests" "GoogleTest is not installed (Debian: libgtest-dev)")
  else()
    # The headers of every unit test are compiled once, because they take most of the compile time of a small test.
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/unit_test_headers.cpp CONTENT "")
    add_executable(bestride_unit_test_headers EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/unit_test_headers.cpp)
    target_link_libraries(bestride_unit_test_headers PRIVATE bestride_flags GTest::gtest GTest::gmock GTest::gtest_main)
    bestride_unit_test_options(bestride_unit_test_headers)
    target_precompile_headers(bestride_unit_test_headers PRIVATE <gtest/gtest.h> <gmock/gmock.h> <algorithm> <cmath> <fstream> <map>
      <random> <string> <thread> <vector>)
  endif()
endif()
# bestride_unit_test(<name> SOURCES ... LIBRARIES ... [ARGUMENTS ...] [RELEASE] [THREADS]): a GoogleTest program without MPI.
# RELEASE: scripts/test runs it with the optimization of a release too, label unit_release instead of unit. For code with versions for instruction
# sets, with a fixed rounding, or with memory that threads or processes share without locks.
# THREADS: the test has threads, so it also runs under ThreadSanitizer; implies RELEASE.
function(bestride_unit_test name)
  cmake_parse_arguments(ARG "RELEASE;THREADS" "" "SOURCES;LIBRARIES;ARGUMENTS" ${ARGN})
  if(NOT BESTRIDE_TESTS OR NOT GTest_FOUND)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} bestride_flags GTest::gtest GTest::gmock GTest::gtest_main)
  bestride_unit_test_options(${name})
  target_precompile_headers(${name} REUSE_FROM bestride_unit_test_headers)
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGUMENTS})
  bestride_sanitized(${name})
  add_dependencies(unit_tests ${name})
  if(ARG_RELEASE OR ARG_THREADS)
    set_tests_properties(${name} PROPERTIES TIMEOUT 300 LABELS unit_release)
  else()
    set_tests_properties(${name} PROPERTIES TIMEOUT 300 LABELS unit)
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)
  endif()
  if(ARG_THREADS)
    set_property(TEST ${name} APPEND PROPERTY LABELS threads)
  endif()
endfunction()

# bestride_unit_test_again(<name> <suffix> <variable=value>...): the test <name>, which has no arguments, with these variables.
function(bestride_unit_test_again name suffix)
  if(NOT TARGET ${name})
    return()
  endif()
  add_test(NAME ${name}.${suffix} COMMAND ${name})
  get_test_property(${name} LABELS labels)
  set_tests_properties(${name}.${suffix} PROPERTIES TIMEOUT 300 LABELS "${labels}" ENVIRONMENT "${ARGN}")
endfunction()

# bestride_header_comparison(<name> SOURCE file HEADER header OURS header [HINTS dir...] REMEDY text): static assertions that our declarations for a
# library that is opened at run time agree with its own header. Compiled, but never run; skipped if the header is not installed.
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
