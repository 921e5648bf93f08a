# Processes without MPI. LD_BIND_NOW=1 resolves every symbol at start.
set(_preload --env LD_PRELOAD=$<TARGET_FILE:bestride>)
_expect(bind_now ${_preload} --env LD_BIND_NOW=1 -- /bin/true)
_expect(shell ${_preload} --env LD_BIND_NOW=1 --match "^3$" -- sh -c "echo one two three | wc -w")
_expect(python ${_preload} --env LD_BIND_NOW=1 --match "^ok$" -- ${Python3_EXECUTABLE} -c "print(__import__('ctypes') and 'ok')")
_expect(dlopened --match "^ok$" -- ${Python3_EXECUTABLE} -c "print(__import__('ctypes').CDLL('$<TARGET_FILE:bestride>') and 'ok')")

# Calls without an MPI library. Such a library does not start without the preload.
add_library(preload_without_mpi_library SHARED without_mpi.c)
target_compile_definitions(preload_without_mpi_library PRIVATE LIBRARY)
target_link_options(preload_without_mpi_library PRIVATE -Wl,-z,now)
add_executable(preload_without_mpi without_mpi.c)
target_link_libraries(preload_without_mpi PRIVATE preload_without_mpi_library ${CMAKE_DL_LIBS})
target_link_options(preload_without_mpi PRIVATE -Wl,--allow-shlib-undefined)
_expect(without_mpi_called ${_preload} --match "^went on$" --lines 1
  --match "^bestride: no MPI library is loaded in this process: MPI_Barrier was called"
  -- $<TARGET_FILE:preload_without_mpi>)
_expect(mpi_loaded_late --env LD_PRELOAD=${_build}/stub/libbestride.so --match "^went on$" --lines 1
  --match "^bestride: no MPI library is loaded in this process: MPI_Barrier was called"
  -- $<TARGET_FILE:preload_without_mpi> $<TARGET_FILE:preload_fake_mpich>)
