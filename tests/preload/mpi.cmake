# Real MPI programs, with a counting backend.
if(NOT "mpich" IN_LIST BESTRIDE_ABIS)
  return()
endif()
get_target_property(_includes bestride_mpi_headers_mpich INTERFACE_INCLUDE_DIRECTORIES)
_preload_test(table_header ${_python} ${_here}/check_table.py ${_table} header ${_includes})

_preload_copy(counting)
_module(preload_counting_backend counting libbestride-mpich counting_backend.c)
target_link_libraries(preload_counting_backend PRIVATE bestride_mpi_headers_mpich)
_module(preload_counting_tool counting counting_tool counting_tool.c)
target_link_libraries(preload_counting_tool PRIVATE bestride_mpi_headers_mpich)
_module(preload_counting_pmpi_tool counting counting_pmpi_tool counting_tool.c)
target_compile_definitions(preload_counting_pmpi_tool PRIVATE TOOL_CALLS_PMPI)
target_link_libraries(preload_counting_pmpi_tool PRIVATE bestride_mpi_headers_mpich)
_module(preload_plugin counting plugin calls.c)
target_link_libraries(preload_plugin PRIVATE bestride_mpi_mpich)
function(_mpi_program name)
  add_executable(${name} ${ARGN})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(${name} PRIVATE -Wall -Wextra)
  find_package(Threads REQUIRED)
  target_link_libraries(${name} PRIVATE bestride_mpi_mpich Threads::Threads ${CMAKE_DL_LIBS})
endfunction()
_mpi_program(preload_calls calls_main.c calls.c)
_mpi_program(preload_slots_report slots_report.c calls.c)
_mpi_program(preload_threads threads_mpi.c)

_preload_test(table_library sh -c "${Python3_EXECUTABLE} -B ${_here}/check_table.py ${_table} library \
  $(ldd $<TARGET_FILE:preload_calls> | sed -n 's/.*libmpi.* => \\([^ ]*\\).*/\\1/p' | head -n 1)")

set(_counting ${_build}/counting/libbestride.so)
set(_tool ${_build}/counting/counting_tool.so)
set(_tool_pmpi ${_build}/counting/counting_pmpi_tool.so)
set(_each_once "MPI_Type_commit 1 MPI_Pack 1 MPI_Isend 1 MPI_Irecv 1 MPI_Waitall 1 MPI_Sendrecv 1 MPI_Type_free 1 MPI_Finalize 1$")
# MPICH's mpi_f08 layer calls PMPI_X for functions without a buffer, so a tool that defines only MPI_X does not see them.
set(_tool_once ${_each_once})
set(_tool_once_use_mpi_f08 "MPI_Type_commit [01] MPI_Pack 1 MPI_Isend 1 MPI_Irecv 1 MPI_Waitall [01] MPI_Sendrecv 1 ")

# Each call is counted exactly once, in every language, and together with another tool.
function(_each_call_once name)
  _expect(${name} --env LD_PRELOAD=${_counting} --match "^counted: ${_each_once}" -- ${ARGN})
  _expect(${name}_bind_now --env LD_BIND_NOW=1 --env LD_PRELOAD=${_counting} --match "^counted: ${_each_once}" -- ${ARGN})
  _expect(${name}_tool_before --env "LD_PRELOAD=${_tool} ${_counting}" --match "^counted: ${_each_once}"
    --match "^tool: ${_tool_once}" -- ${ARGN})
  _expect(${name}_tool_after --env "LD_PRELOAD=${_counting} ${_tool}" --match "^counted: ${_each_once}"
    --match "^tool: ${_tool_once}" -- ${ARGN})
endfunction()
_each_call_once(c $<TARGET_FILE:preload_calls>)
foreach(order "${_counting} ${_tool_pmpi}" "${_tool_pmpi} ${_counting}")
  string(FIND "${order}" ${_counting} _at)
  if(_at EQUAL 0)
    set(_name c_pmpi_tool_after)
  else()
    set(_name c_pmpi_tool_before)
  endif()
  _expect(${_name} --env "LD_PRELOAD=${order}" --match "^counted: ${_each_once}" --match "^tool: ${_each_once}"
    -- $<TARGET_FILE:preload_calls>)
endforeach()
_expect(local_plugin --env LD_PRELOAD=${_counting} --match "^counted: ${_each_once}"
  -- $<TARGET_FILE:preload_plugin_host> $<TARGET_FILE:preload_plugin>)
_expect(c_two_ranks --times 2 --match "^counted: ${_each_once}"
  -- ${BESTRIDE_MPIEXEC_MPICH} -n 2 -genv LD_PRELOAD ${_counting} $<TARGET_FILE:preload_calls>)

if(BESTRIDE_MPIFORT_MPICH)
  foreach(binding mpif_h use_mpi use_mpi_f08)
    string(TOUPPER ${binding} _macro)
    set(_program ${_build}/fortran_${binding})
    add_custom_command(OUTPUT ${_program} DEPENDS calls.F90 VERBATIM
      COMMAND ${BESTRIDE_MPIFORT_MPICH} -D${_macro} ${_here}/calls.F90 -o ${_program})
    add_custom_target(preload_fortran_${binding} ALL DEPENDS ${_program})
    if(binding STREQUAL use_mpi_f08)
      set(_tool_once ${_tool_once_use_mpi_f08})
    endif()
    _each_call_once(fortran_${binding} ${_program})
  endforeach()
else()
  bestride_leave_out("preload.fortran_*" "no MPICH Fortran wrapper found (Debian: gfortran, libmpich-dev)")
endif()

# 8 threads, 50 rounds.
_expect(first_calls_by_many_threads_mpich --env LD_PRELOAD=${_counting} --match "MPI_Sendrecv 400 MPI_Type_free 0"
  -- $<TARGET_FILE:preload_threads>)

# BESTRIDE_DISABLE intercepts nothing; otherwise the backend intercepts exactly the functions that the table lists for it.
_preload_test(disabled_addresses ${_python} ${_here}/check_slots.py disabled ${_table}
  -- ${CMAKE_COMMAND} -E env BESTRIDE_DISABLE=1 LD_PRELOAD=${_counting} $<TARGET_FILE:preload_slots_report> ${_table})
if(TARGET bestride-mpich AND NOT BESTRIDE_SANITIZE)
  _preload_test(intercepted_as_the_table_says ${_python} ${_here}/check_slots.py intercepted ${_table} mpich
    -- ${CMAKE_COMMAND} -E env LD_PRELOAD=$<TARGET_FILE:bestride> $<TARGET_FILE:preload_slots_report> ${_table})
  set_tests_properties(preload.intercepted_as_the_table_says PROPERTIES ENVIRONMENT "BESTRIDE_DISABLE=0")
  _preload_test(intercepted_for_a_gpu ${_python} ${_here}/check_slots.py gpu ${_table} mpich
    -- ${CMAKE_COMMAND} -E env LD_PRELOAD=$<TARGET_FILE:bestride> BESTRIDE_CUDA_DRIVER=/nowhere/libcuda.so.1 BESTRIDE_LOG=quiet
    $<TARGET_FILE:preload_slots_report> ${_table})
endif()

# Tasks of srun that are separate MPI jobs: the first task prints a message, once.
set(_lone_task --env LD_PRELOAD=$<TARGET_FILE:bestride> --env SLURM_NTASKS=4)
_expect(slurm_lone_task ${_lone_task} --env SLURM_STEP_ID=0 --env SLURM_PROCID=0 --lines 1
  --match "^bestride: srun started 4 tasks, but this task's MPI_COMM_WORLD has one rank.*srun --mpi=pmi2" -- $<TARGET_FILE:preload_calls>)
_expect(slurm_lone_task_1 ${_lone_task} --env SLURM_STEP_ID=0 --env SLURM_PROCID=1 -- $<TARGET_FILE:preload_calls>)
_expect(slurm_batch_script ${_lone_task} --env SLURM_PROCID=0 -- $<TARGET_FILE:preload_calls>)
_expect(slurm_one_task --env LD_PRELOAD=$<TARGET_FILE:bestride> --env SLURM_NTASKS=1 --env SLURM_STEP_ID=0 --env SLURM_PROCID=0
  -- $<TARGET_FILE:preload_calls>)
# Rank 0 reports an invalid value.
foreach(rank 0 1)
  math(EXPR _lines "1 - ${rank}")
  _expect(bad_value_${rank} --env LD_PRELOAD=$<TARGET_FILE:bestride> --env BESTRIDE_CACHE_BYTES=plenty --env SLURM_PROCID=${rank} --lines ${_lines}
    -- $<TARGET_FILE:preload_calls>)
endforeach()
