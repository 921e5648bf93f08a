# Processes without MPI. LD_BIND_NOW=1 resolves every symbol at start.
set(_preload --env LD_PRELOAD=$<TARGET_FILE:bestride>)
_expect(bind_now ${_preload} --env LD_BIND_NOW=1 -- /bin/true)
_expect(shell ${_preload} --env LD_BIND_NOW=1 --match "^3$" -- sh -c "echo one two three | wc -w")
_expect(python ${_preload} --env LD_BIND_NOW=1 --match "^ok$" -- ${Python3_EXECUTABLE} -c "print(__import__('ctypes') and 'ok')")
_expect(dlopened --match "^ok$" -- ${Python3_EXECUTABLE} -c "print(__import__('ctypes').CDLL('$<TARGET_FILE:bestride>') and 'ok')")

add_executable(preload_without_mpi without_mpi.c)
target_link_libraries(preload_without_mpi PRIVATE ${CMAKE_DL_LIBS})
_expect(without_mpi_asked ${_preload} --match "^went on$" -- $<TARGET_FILE:preload_without_mpi>)
_expect(without_mpi_called ${_preload} --match "^went on$" --lines 1
  --match "^bestride: no MPI library is loaded in this process: MPI_Barrier was called"
  -- $<TARGET_FILE:preload_without_mpi> go_on)
_expect(mpi_loaded_late --env LD_PRELOAD=${_build}/stub/libbestride.so --match "^went on$" --lines 1
  --match "^bestride: no MPI library is loaded in this process: MPI_Barrier was called"
  -- $<TARGET_FILE:preload_without_mpi> go_on $<TARGET_FILE:preload_fake_mpich>)
