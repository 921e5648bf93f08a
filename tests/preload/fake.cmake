# Stubs, resolver and interception with a fake MPI library: every ABI, without an installed MPI library.
function(_fake_mpi target folder soname definition)
  add_library(${target} SHARED fake_mpi.c)
  target_compile_definitions(${target} PRIVATE ${definition})
  target_compile_options(${target} PRIVATE -Wall -Wextra)
  set_target_properties(${target} PROPERTIES PREFIX "" SUFFIX "" OUTPUT_NAME ${soname} LIBRARY_OUTPUT_DIRECTORY ${_build}/${folder})
  add_executable(${target}_program fake_program.c)
  target_link_libraries(${target}_program PRIVATE ${target})
  target_compile_options(${target}_program PRIVATE -Wall -Wextra)
  set_target_properties(${target}_program PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${_build}/${folder})
endfunction()
_fake_mpi(preload_fake_mpich fake libmpi.so.12 FAKE_MPICH)
_fake_mpi(preload_fake_openmpi fake libmpi.so.40 FAKE_OPENMPI)
_fake_mpi(preload_fake_abi fake libmpi_abi.so.1 FAKE_ABI)
_fake_mpi(preload_fake_vendor fake libmpi_vendor.so.12 FAKE_MPICH)
_fake_mpi(preload_fake_foreign fake libmpi.so FAKE_FOREIGN)

add_executable(preload_plugin_host plugin_host.c)
target_link_libraries(preload_plugin_host PRIVATE ${CMAKE_DL_LIBS})

# _stub_backend(<folder> <abi> [definition]...): a backend for that ABI in a folder.
function(_stub_backend folder abi)
  _module(preload_stub_${folder}_${abi} ${folder} libbestride-${abi} stub_backend.c)
  target_compile_definitions(preload_stub_${folder}_${abi} PRIVATE BACKEND_ABI="${abi}" ${ARGN})
endfunction()
_preload_copy(stub)
foreach(abi mpich openmpi mpi_abi)
  _stub_backend(stub ${abi})
endforeach()
foreach(kind REFUSES VERSION=7 WITHOUT_SYMBOL CALLS_MPI SLEEPS WAITS_FOR_A_CALL WATCHES)
  string(REGEX REPLACE "=.*" "" folder ${kind})
  string(TOLOWER stub_${folder} folder)
  _preload_copy(${folder})
  _stub_backend(${folder} mpich BACKEND_${kind})
endforeach()
_preload_copy(stub_missing)


# Arguments and results in every register and on the stack, through the lazy thunk, through the slot, and without the preload library.
_expect(arguments_without_preload -- $<TARGET_FILE:preload_fake_mpich_program> arguments)
_expect(arguments --env LD_PRELOAD=${_build}/stub/libbestride.so -- $<TARGET_FILE:preload_fake_mpich_program> arguments)
_expect(arguments_disabled --env LD_PRELOAD=${_build}/stub/libbestride.so --env BESTRIDE_DISABLE=on
  -- $<TARGET_FILE:preload_fake_mpich_program> arguments)

# The ABI determines the backend. MPI_X and PMPI_X are both intercepted if the backend requests it.
set(_library_lacks_it --match "^MPI_Type_free is left alone$")
set(_intercepted --match "^first call: MPI_Type_commit 77$" --match "^first call: PMPI_Type_commit 78$")
foreach(pair mpich/mpich openmpi/openmpi abi/mpi_abi vendor/mpich)
  string(REPLACE "/" ";" pair ${pair})
  list(GET pair 0 library)
  list(GET pair 1 abi)
  _expect(abi_${library} --env LD_PRELOAD=${_build}/stub/libbestride.so ${_intercepted}
    --match "^MPI_Type_commit is in libbestride-${abi}.so$" ${_library_lacks_it}
    -- $<TARGET_FILE:preload_fake_${library}_program> intercepted)
endforeach()
set(_passed --match "^first call: MPI_Type_commit 1$" --match "^first call: PMPI_Type_commit 1$"
  --match "^MPI_Type_commit is in libmpi.so" --lines)
# A plugin loads the MPI library with RTLD_LOCAL, so RTLD_NEXT does not find it. The name of the library is known or unknown.
foreach(library mpich vendor)
  _module(preload_fake_plugin_${library} fake fake_plugin_${library} fake_program.c)
  target_link_libraries(preload_fake_plugin_${library} PRIVATE preload_fake_${library})
  _expect(local_plugin_fake_${library} --env LD_PRELOAD=${_build}/stub/libbestride.so ${_intercepted}
    -- $<TARGET_FILE:preload_plugin_host> $<TARGET_FILE:preload_fake_plugin_${library}> intercepted)
endforeach()
_expect(abi_foreign --env LD_PRELOAD=${_build}/stub/libbestride.so
  --match "^bestride: .*/libmpi.so has none of the known ABIs" ${_passed} 1 -- $<TARGET_FILE:preload_fake_foreign_program> intercepted)
_expect(backend_in_relative_path --cwd ${_build} --env LD_PRELOAD=stub/libbestride.so ${_intercepted}
  -- $<TARGET_FILE:preload_fake_mpich_program> elsewhere)
_expect(backend_calls_mpi --env LD_PRELOAD=${_build}/stub_calls_mpi/libbestride.so ${_intercepted}
  -- $<TARGET_FILE:preload_fake_mpich_program> intercepted)
_expect(backend_waits_for_a_call --env LD_PRELOAD=${_build}/stub_waits_for_a_call/libbestride.so ${_intercepted}
  -- $<TARGET_FILE:preload_fake_mpich_program> intercepted)

# The hook is called for functions that are not intercepted.
foreach(mode watched watched_threads)
  _expect(${mode} --env LD_PRELOAD=${_build}/stub_watches/libbestride.so -- $<TARGET_FILE:preload_fake_mpich_program> ${mode})
endforeach()

# Each failure of a backend: one message, and the program continues.
_expect(backend_missing --env LD_PRELOAD=${_build}/stub_missing/libbestride.so ${_passed} 1
  --match "^bestride: the mpich backend can't be opened .*libbestride-mpich.so: .*: nothing is accelerated.*install"
  -- $<TARGET_FILE:preload_fake_mpich_program> intercepted)
# Only rank 0 writes messages about the job; with BESTRIDE_LOG=info all ranks do.
foreach(variable PMI_RANK PMIX_RANK SLURM_PROCID)
  foreach(rank 0 1)
    math(EXPR lines "1 - ${rank}")
    _expect(backend_missing_${variable}_${rank} --env LD_PRELOAD=${_build}/stub_missing/libbestride.so --env ${variable}=${rank} ${_passed} ${lines}
      -- $<TARGET_FILE:preload_fake_mpich_program> intercepted)
  endforeach()
endforeach()
_expect(backend_missing_info_on_rank_1 --env LD_PRELOAD=${_build}/stub_missing/libbestride.so --env PMI_RANK=1 --env BESTRIDE_LOG=info ${_passed} 1
  -- $<TARGET_FILE:preload_fake_mpich_program> intercepted)
# No installation has a backend for these ABIs yet, so there is no remedy.
foreach(pair openmpi/openmpi abi/mpi_abi)
  string(REPLACE "/" ";" pair ${pair})
  list(GET pair 0 library)
  list(GET pair 1 abi)
  _expect(not_supported_${abi} --env LD_PRELOAD=${_build}/stub_missing/libbestride.so --match "^first call: MPI_Type_commit 1$"
    -- $<TARGET_FILE:preload_fake_${library}_program> intercepted)
  _expect(not_supported_${abi}_info --env LD_PRELOAD=${_build}/stub_missing/libbestride.so --env BESTRIDE_LOG=info --lines 1
    --match "^first call: MPI_Type_commit 1$" --match "^bestride: MPI libraries with the ABI ${abi} are not supported yet: nothing is accelerated$"
    -- $<TARGET_FILE:preload_fake_${library}_program> intercepted)
endforeach()
_expect(backend_refuses --env LD_PRELOAD=${_build}/stub_refuses/libbestride.so ${_passed} 1
  --match "^bestride: the mpich backend does not support .*/libmpi.so.12" -- $<TARGET_FILE:preload_fake_mpich_program> intercepted)
_expect(backend_version --env LD_PRELOAD=${_build}/stub_version/libbestride.so ${_passed} 1
  --match "^bestride: .*/stub_version/libbestride-mpich.so has interface version 7" -- $<TARGET_FILE:preload_fake_mpich_program> intercepted)
_expect(backend_without_symbol --env LD_PRELOAD=${_build}/stub_without_symbol/libbestride.so ${_passed} 1
  --match "^bestride: .*has no bestride_backend_open" -- $<TARGET_FILE:preload_fake_mpich_program> intercepted)
_expect(backend_missing_quiet --env LD_PRELOAD=${_build}/stub_missing/libbestride.so --env BESTRIDE_LOG=quiet ${_passed} 0
  -- $<TARGET_FILE:preload_fake_mpich_program> intercepted)
foreach(word 1 on yes true)
  _expect(disabled_${word} --env LD_PRELOAD=${_build}/stub/libbestride.so --env BESTRIDE_DISABLE=${word} ${_passed} 0
    -- $<TARGET_FILE:preload_fake_mpich_program> intercepted)
endforeach()
_expect(disabled_0 --env LD_PRELOAD=${_build}/stub/libbestride.so --env BESTRIDE_DISABLE=0 ${_intercepted}
  -- $<TARGET_FILE:preload_fake_mpich_program> intercepted)

# Preloaded twice, from two installations: only the first copy intercepts.
_expect(two_copies --env "LD_PRELOAD=${_build}/stub/libbestride.so ${_build}/stub_sleeps/libbestride.so" ${_intercepted}
  -- $<TARGET_FILE:preload_fake_mpich_program> intercepted)
_expect(first_call_by_many_threads --env LD_PRELOAD=${_build}/stub_sleeps/libbestride.so
  -- $<TARGET_FILE:preload_fake_mpich_program> threads)
_expect(function_the_library_lacks --env LD_PRELOAD=${_build}/stub/libbestride.so -- $<TARGET_FILE:preload_fake_mpich_program> missing)

find_program(BESTRIDE_VALGRIND valgrind)
if(BESTRIDE_VALGRIND)
  # x86-64: endbr64 and the jump; aarch64: bti, three to load the slot, the branch.
  set(_limit 2)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    set(_limit 5)
  endif()
  _preload_test(instructions ${_python} ${_here}/count_instructions.py ${_build}/stub/libbestride.so ${_limit}
    -- $<TARGET_FILE:preload_fake_mpich_program> spin)
else()
  bestride_leave_out("preload.instructions" "valgrind is not installed (Debian: valgrind)")
endif()
