# The CUDA plugin: src/backend/cuda/*.cu → prony_cuda.so beside the executable, which loads it with
# dlopen. It carries the CUDA runtime and its own copy of base/ and core/, and exports one symbol.

# One that an earlier configuration of this build left behind must not be loaded.
if(NOT PRONY_CUDA)
  file(REMOVE ${PROJECT_BINARY_DIR}/prony_cuda.so)
endif()
file(GLOB cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/cuda/*.cu)
if(NOT PRONY_CUDA OR NOT cuda_sources)
  return()
endif()
if(NOT CMAKE_CUDA_COMPILER)
  find_program(CMAKE_CUDA_COMPILER nvcc PATHS /usr/local/cuda/bin)
endif()
if(NOT CMAKE_CUDA_COMPILER)
  message(STATUS "CUDA plugin left out: nvcc not found (NVIDIA's CUDA toolkit)")
  return()
endif()
execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --version OUTPUT_VARIABLE nvcc_says ERROR_QUIET)
if(NOT nvcc_says MATCHES "release ([0-9.]+)" OR CMAKE_MATCH_1 VERSION_LESS 13.0)
  message(STATUS "CUDA plugin left out: it needs nvcc 13.0 or newer; ${CMAKE_CUDA_COMPILER} is ${CMAKE_MATCH_1}")
  return()
endif()
# Ampere and Hopper as machine code; what is newer compiles the PTX when it loads it. Who builds for one
# machine alone names it: -DCMAKE_CUDA_ARCHITECTURES=90a-real.
if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90a-real 90-virtual)
endif()
enable_language(CUDA)

prony_plugin(cuda ${cuda_sources})
target_compile_features(prony_cuda PRIVATE cuda_std_17)
# --fmad=false is -ffp-contract=off for the device: the same bits as the reference kernels.
# -Wpedantic is left out for what nvcc itself generates.
target_compile_options(prony_cuda PRIVATE --fmad=false
  "-Xcompiler=-Wall,-Wextra,-Wshadow,-Wconversion,-Wdouble-promotion,-Wformat=2,-ffp-contract=off"
  "-Xcompiler=-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
if(PRONY_WERROR)
  target_compile_options(prony_cuda PRIVATE --Werror=all-warnings -Xcompiler=-Werror)
endif()
set_target_properties(prony_cuda PROPERTIES CUDA_RUNTIME_LIBRARY Static
  CUDA_VISIBILITY_PRESET hidden)
