# The kernels of the CPU: a source of backend/cpu/simd called *_isa.c is compiled once for each ISA of
# this machine, a row of base/isa.def, and the best that the CPU has is chosen at run time. The source
# sees the ISA's name as PRONY_ISA, and that of the machine's first row as PRONY_ISA_LEAST.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS src/base/isa.def)

# What is unrolled that much compiles for minutes with checks of each operation, or with counters for
# the fuzzer: addresses and threads are checked in kernels, the rest in the reference's. Addresses are
# checked by calls: with the checks in place one file takes clang minutes, so 11 s.
set(checks "")
if(PRONY_SANITIZE MATCHES "fuzzer")
  list(APPEND checks -fno-sanitize=undefined,fuzzer-no-link)
elseif(PRONY_SANITIZE MATCHES "undefined")
  list(APPEND checks -fno-sanitize=undefined)
endif()
if(PRONY_SANITIZE MATCHES "address" AND CMAKE_C_COMPILER_ID MATCHES "Clang")
  list(APPEND checks -fsanitize-address-outline-instrumentation)
endif()

function(prony_isas)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS src/backend/cpu/simd/*_isa.c)
  file(STRINGS src/base/isa.def rows REGEX "^ISA_ROW.* ${CMAKE_SYSTEM_PROCESSOR},")
  set(least "")
  foreach(row IN LISTS rows)
    string(REGEX REPLACE "^ISA_ROW\\([A-Z0-9]+, ([a-z0-9]+), [a-z0-9_]+, \"(.*)\"\\)$" "\\1;\\2" row "${row}")
    list(POP_FRONT row isa)
    separate_arguments(flags UNIX_COMMAND "${row}")
    if(NOT least)
      set(least ${isa})
    endif()
    add_library(prony_${isa} OBJECT ${sources})
    target_compile_definitions(prony_${isa} PRIVATE PRONY_ISA=${isa} PRONY_ISA_LEAST=${least})
    # Without optimisation gcc's intrinsics are macros, which do not convert as cleanly as its functions.
    target_compile_options(prony_${isa} PRIVATE -include base/banned.h ${flags} -fno-math-errno
      ${checks} $<$<CONFIG:Debug>:-Wno-sign-conversion>)
    list(APPEND modules prony_${isa})
    list(APPEND isas ${isa})
  endforeach()
  set(modules ${modules} PARENT_SCOPE)
  set(isas ${isas} PARENT_SCOPE) # for cmake/library.cmake
endfunction()
