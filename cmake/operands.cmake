# Writes core/operands.h from core/ops.def: the place of every operand of every op, so that a kernel
# says call->data[AT_dense_w], not call->data[1]. Inputs are counted first, then outputs. An output
# that updates an input in place ends in _out. Operands behind a list (`x...`) have no fixed place.

set(ops ${PROJECT_SOURCE_DIR}/src/core/ops.def)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ops})

# operands_names(TEXT OUT): the names in one side of a row, a list behind the first `...` cut off.
function(operands_names text out)
  string(REGEX REPLACE "[.][.][.].*" "" text "${text}")
  string(REGEX REPLACE "\\[[^]]*\\]|:[a-z0-9]+|[?]" "" text "${text}")
  string(REGEX MATCHALL "[a-z_0-9]+" names "${text}")
  set(${out} "${names}" PARENT_SCOPE)
endfunction()

# operands_row(KIND INPUTS OUTPUTS OUT): the enumerators of an op.
function(operands_row kind inputs outputs out)
  set(text "")
  set(place 0)
  operands_names("${inputs}" inputs_names)
  foreach(name IN LISTS inputs_names)
    string(APPEND text "    AT_${kind}_${name} = ${place},\n")
    math(EXPR place "${place} + 1")
  endforeach()
  operands_names("${outputs}" outputs_names)
  if(inputs MATCHES "[.][.][.]")
    set(outputs_names "")
  endif()
  foreach(name IN LISTS outputs_names)
    if(name IN_LIST inputs_names)
      string(APPEND name _out)
    endif()
    string(APPEND text "    AT_${kind}_${name} = ${place},\n")
    math(EXPR place "${place} + 1")
  endforeach()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# Comments and line ends go; what is left are the rows. A list would take brackets and semicolons amiss.
file(READ ${ops} text)
string(REGEX REPLACE "/[*]([^*]|[*][^/])*[*]/" "" text "${text}")
string(REGEX REPLACE "[ \n]+" " " text "${text}")
string(REPLACE "\" \"" "" text "${text}")
set(rows "")
set(row "OP[(]([a-z_0-9]+), ?\"([^\"]*)\", ?\"([^\"]*)\"")
while(text MATCHES "${row}")
  string(FIND "${text}" "${CMAKE_MATCH_0}" at)
  string(LENGTH "${CMAKE_MATCH_0}" length)
  operands_row("${CMAKE_MATCH_1}" "${CMAKE_MATCH_2}" "${CMAKE_MATCH_3}" enumerators)
  string(APPEND rows "${enumerators}")
  math(EXPR at "${at} + ${length}")
  string(SUBSTRING "${text}" ${at} -1 text)
endwhile()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/core/operands.h CONTENT
  "/* Made from core/ops.def by cmake/operands.cmake. */
#ifndef PRONY_CORE_OPERANDS_H
#define PRONY_CORE_OPERANDS_H

enum {
@rows@};

#endif
" @ONLY)
