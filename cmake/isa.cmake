# Kernels of the CPU: a source called *_isa.c is compiled once for each ISA of this machine, a row of
# base/machine/isa.def, and the best that the CPU has is chosen at run time. The source sees the ISA's name as
# PRONY_ISA, and that of the machine's first row as PRONY_ISA_LEAST.
# A source called *_KIND_isa.c is compiled for the rows of its kind in extension.def as well.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS src/base/machine/isa.def
  src/base/machine/extension.def)

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

# prony_isa(TARGET ISA LEVEL LEAST SOURCES FLAGS): a module of sources for one of them.
function(prony_isa target isa level least sources flags)
  add_library(${target} OBJECT ${sources})
  target_compile_definitions(${target} PRIVATE PRONY_ISA=${isa} PRONY_ISA_LEVEL=${level}
    PRONY_ISA_LEAST=${least})
  # Without optimisation gcc's intrinsics are macros, which do not convert as cleanly as its functions.
  target_compile_options(${target} PRIVATE -include base/banned.h ${flags} -fno-math-errno
    ${checks} $<$<CONFIG:Debug>:-Wno-sign-conversion>)
endfunction()

# prony_isas(NAME FOLDER [scalar]): the module prony_NAME_ISA of the folder's sources, for each ISA; with
# `scalar` for plain C as well. Their names are the list NAME_isas.
function(prony_isas name folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*_isa.c)
  file(STRINGS src/base/machine/isa.def rows REGEX "^ISA_ROW.* ${CMAKE_SYSTEM_PROCESSOR},")
  list(TRANSFORM rows REPLACE "^ISA_ROW\\([A-Z0-9]+, ([a-z0-9]+), [a-z0-9_]+, \"(.*)\"\\)$" "\\1 \\2")
  set(isas "")
  foreach(row IN LISTS ARGN rows)
    separate_arguments(flags UNIX_COMMAND "${row}")
    list(POP_FRONT flags isa)
    if(NOT isas)
      set(least ${isa})
    endif()
    prony_isa(prony_${name}_${isa} ${isa} ${isa} ${least} "${sources}" "${flags}")
    list(APPEND isas prony_${name}_${isa})
  endforeach()
  file(STRINGS src/base/machine/extension.def rows
    REGEX "^EXTENSION_ROW.* ${CMAKE_SYSTEM_PROCESSOR},")
  list(TRANSFORM rows REPLACE
    "^EXTENSION_ROW\\([A-Z0-9_]+, ([a-z0-9]+), ([a-z0-9]+), ([A-Z0-9]+), [a-z0-9_]+, \"([^\"]*)\".*$"
    "\\1 \\2 \\3 \\4")
  foreach(row IN LISTS rows)
    separate_arguments(flags UNIX_COMMAND "${row}")
    list(POP_FRONT flags isa kind level)
    set(own ${sources})
    list(FILTER own INCLUDE REGEX "_${kind}_isa.c$")
    if(own)
      string(TOLOWER ${level} level)
      prony_isa(prony_${name}_${isa} ${isa} ${level} ${least} "${own}" "${flags}")
      list(APPEND isas prony_${name}_${isa})
    endif()
  endforeach()
  set(modules ${modules} ${isas} PARENT_SCOPE)
  set(${name}_isas ${isas} PARENT_SCOPE)
endfunction()
