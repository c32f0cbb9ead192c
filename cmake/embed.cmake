# Puts files into the executable.
#
#   prony_embed(TARGET SYMBOL FILES…)    adds the table `SYMBOL` (see base/embed.h) to a target
#
# The table is a generated C file whose bytes the assembler takes from the files themselves
# (.incbin), which is as quick for a large page as for a small network. This file is also the script
# that writes it at build time, so that a file that changed is embedded anew.

if(CMAKE_SCRIPT_MODE_FILE)
  set(index 0)
  set(arrays "")
  set(rows "")
  foreach(file IN LISTS FILES)
    get_filename_component(name "${file}" NAME)
    file(SIZE "${file}" length)
    set(array "${SYMBOL}_${index}")
    string(APPEND arrays "extern const unsigned char ${array}[];\n"
      "__asm__(\".pushsection .rodata\\n.balign 16\\n.globl ${array}\\n.hidden ${array}\\n\"\n"
      "        \"${array}:\\n.incbin \\\"${file}\\\"\\n.byte 0\\n.popsection\");\n")
    string(APPEND rows "    {\"${name}\", ${array}, ${length}},\n")
    math(EXPR index "${index} + 1")
  endforeach()
  file(WRITE "${OUTPUT}"
    "#include \"base/embed.h\"\n\n${arrays}\n"
    "extern const struct embedded ${SYMBOL}[];\n"
    "const struct embedded ${SYMBOL}[] = {\n${rows}    {NULL, NULL, 0},\n};\n")
  return()
endif()

function(prony_embed target symbol)
  set(output ${CMAKE_BINARY_DIR}/embed/${symbol}.c)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DSYMBOL=${symbol}" "-DFILES=${ARGN}" "-DOUTPUT=${output}"
      -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding ${symbol}" VERBATIM)
  target_sources(${target} PRIVATE ${output})
endfunction()
