# The CUDA plugin: src/backend/cuda/ → prony_cuda.so beside the executable, which loads it with
# dlopen. It carries the CUDA runtime and its own copy of base/ and core/, and exports one symbol.

# Is there a GPU? On Windows' Linux it is /dev/dxg. A run of nvcc takes minutes, so without a GPU the
# plugin is built only for those who ask (`make cuda`): for another machine, or to see it compile.
set(cuda_wanted ${PRONY_CUDA})
if(PRONY_CUDA STREQUAL AUTO)
  set(cuda_wanted OFF)
  if(EXISTS /dev/nvidiactl OR EXISTS /dev/dxg)
    set(cuda_wanted ON)
  else()
    message(STATUS "CUDA plugin left out: no NVIDIA GPU here (`make cuda` builds it all the same)")
  endif()
endif()

# One that an earlier configuration of this build left behind must not be loaded.
if(NOT cuda_wanted)
  file(REMOVE ${PROJECT_BINARY_DIR}/prony_cuda.so)
endif()
file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/cuda/*.cu)
if(NOT cuda_wanted OR NOT cuda_sources)
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
# AUTO builds for the GPU that is there, which takes a third of the time: machine code of its
# generation, Hopper's with the instructions that only it has (90a). ON builds for all: Ampere and Hopper
# as machine code, and PTX that newer ones compile when they load it. -DCMAKE_CUDA_ARCHITECTURES=90a-real
# names one by hand.
function(cuda_architectures out)
  set(${out} 80-real 90a-real 90-virtual PARENT_SCOPE)
  if(NOT PRONY_CUDA STREQUAL AUTO)
    return()
  endif()
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
    OUTPUT_VARIABLE found ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  string(REPLACE "\n" ";" found "${found}")
  list(REMOVE_DUPLICATES found)
  if(found STREQUAL "9.0")
    set(${out} 90a-real PARENT_SCOPE)
  elseif(found MATCHES "^8[.][0-9]$")
    set(${out} 80-real PARENT_SCOPE)
  endif()
endfunction()
if(NOT CMAKE_CUDA_ARCHITECTURES)
  cuda_architectures(CMAKE_CUDA_ARCHITECTURES)
endif()
enable_language(CUDA)

prony_plugin(cuda ${cuda_sources})
target_compile_features(prony_cuda PRIVATE cuda_std_17)
# --fmad=false is -ffp-contract=off for the device: the same bits as the reference kernels.
# -Wpedantic is left out for what nvcc itself generates. The runtime of C++ is inside: a copied plugin
# needs libc and the driver, as the program does.
target_compile_options(prony_cuda PRIVATE --fmad=false
  "-Xcompiler=-Wall,-Wextra,-Wshadow,-Wconversion,-Wdouble-promotion,-Wformat=2,-ffp-contract=off"
  "-Xcompiler=-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
target_link_options(prony_cuda PRIVATE -static-libstdc++ -static-libgcc)
if(PRONY_WERROR)
  target_compile_options(prony_cuda PRIVATE --Werror=all-warnings -Xcompiler=-Werror)
endif()
set_target_properties(prony_cuda PROPERTIES CUDA_RUNTIME_LIBRARY Static
  CUDA_VISIBILITY_PRESET hidden)
