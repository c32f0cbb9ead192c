# The CUDA plugin: src/backend/cuda/*.cu → prony_cuda.so beside the executable, which loads it with
# dlopen. It carries the CUDA runtime and its own copy of base/ and core/, and exports one symbol.

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
# Ampere and Hopper as machine code; what is newer compiles the PTX when it loads it.
set(CMAKE_CUDA_ARCHITECTURES 80-real 90a-real 90-virtual)
enable_language(CUDA)

# A static library, so that the plugin takes of base/ and core/ only what it uses.
add_library(prony_ground STATIC $<TARGET_OBJECTS:prony_base> $<TARGET_OBJECTS:prony_core>)
target_link_libraries(prony_ground PUBLIC Threads::Threads ${CMAKE_DL_LIBS} m)

add_library(prony_cuda MODULE ${cuda_sources})
target_link_libraries(prony_cuda PRIVATE prony_ground)
target_compile_features(prony_cuda PRIVATE cuda_std_17)
# --fmad=false is -ffp-contract=off for the device: the same bits as the reference kernels.
# -Wpedantic is left out for what nvcc itself generates.
target_compile_options(prony_cuda PRIVATE --fmad=false
  "-Xcompiler=-Wall,-Wextra,-Wshadow,-Wconversion,-Wdouble-promotion,-Wformat=2,-ffp-contract=off"
  "-Xcompiler=-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
if(PRONY_WERROR)
  target_compile_options(prony_cuda PRIVATE --Werror=all-warnings -Xcompiler=-Werror)
endif()
target_link_options(prony_cuda PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/plugin.map
  -Wl,--no-undefined)
set_target_properties(prony_cuda PROPERTIES PREFIX "" CUDA_RUNTIME_LIBRARY Static
  CUDA_VISIBILITY_PRESET hidden LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/plugin.map)
