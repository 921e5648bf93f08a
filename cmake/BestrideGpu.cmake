# GPU kernels, compiled by nvcc into a fatbin inside the library or program that loads it. Builds everywhere: without nvcc the image is a
# line of text, which the driver refuses to load.
option(BESTRIDE_GPU_KERNELS "compile the GPU kernels if nvcc is installed" ON)
find_program(BESTRIDE_NVCC NAMES nvcc HINTS /usr/local/cuda/bin ENV CUDA_HOME PATH_SUFFIXES bin)
set(BESTRIDE_GPU_ARCHITECTURES "80;90;100" CACHE STRING "compute capabilities to generate machine code for; PTX of the first is added for all later ones")

if(BESTRIDE_NVCC AND BESTRIDE_GPU_KERNELS)
  list(GET BESTRIDE_GPU_ARCHITECTURES 0 _first)
  set(BESTRIDE_GPU_GENCODE -gencode=arch=compute_${_first},code=compute_${_first})
  execute_process(COMMAND ${BESTRIDE_NVCC} --list-gpu-arch OUTPUT_VARIABLE _known ERROR_QUIET)
  foreach(_one ${BESTRIDE_GPU_ARCHITECTURES})
    if(_known MATCHES "compute_${_one}\n")
      list(APPEND BESTRIDE_GPU_GENCODE -gencode=arch=compute_${_one},code=sm_${_one})
    else()
      bestride_leave_out("GPU machine code for compute capability ${_one}" "this nvcc can't make it, such devices compile the PTX at first use")
    endif()
  endforeach()
else()
  bestride_leave_out("GPU kernels" "no nvcc (set BESTRIDE_NVCC), or BESTRIDE_GPU_KERNELS is off, so device memory goes by copy engines and copies of its blocks")
endif()

# bestride_gpu_image(<target> <symbol> <source.cu> [DEPENDS headers...]): puts the compiled kernels into the target, at the hidden symbol.
function(bestride_gpu_image target symbol source)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  set(BESTRIDE_GPU_SYMBOL ${symbol})
  set(BESTRIDE_GPU_IMAGE ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.image)
  if(BESTRIDE_GPU_GENCODE)
    add_custom_command(OUTPUT ${BESTRIDE_GPU_IMAGE}
      COMMAND ${BESTRIDE_NVCC} -std=c++20 -O3 -I${CMAKE_SOURCE_DIR} ${BESTRIDE_GPU_GENCODE} --fatbin -o ${BESTRIDE_GPU_IMAGE}
        ${CMAKE_CURRENT_SOURCE_DIR}/${source}
      DEPENDS ${source} ${ARG_DEPENDS} COMMENT "Compiling the GPU kernels of ${target}" VERBATIM)
  else()
    file(WRITE ${BESTRIDE_GPU_IMAGE} "bestride: built without nvcc, so without GPU kernels")
  endif()
  set(_assembly ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.S)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/gpu_image.S.in ${_assembly} @ONLY)
  set_source_files_properties(${_assembly} PROPERTIES OBJECT_DEPENDS ${BESTRIDE_GPU_IMAGE})
  target_sources(${target} PRIVATE ${_assembly})
endfunction()
