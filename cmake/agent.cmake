# The agents: shared objects that `prony profile -- COMMAND` puts into the program it watches. That for
# the CPU comes by LD_PRELOAD; CUDA's driver loads the other one into programs that use it. They are
# no plugins, so their names begin otherwise: the registry passes over them. They need libc only, and
# no sanitizer: they run in programs that have none. CUDA is not needed to build them.
function(prony_agent target name)
  add_library(${target} MODULE ${ARGN})
  target_compile_options(${target} PRIVATE -include base/banned.h -fno-sanitize=all)
  target_link_options(${target} PRIVATE -fno-sanitize=all -Wl,--no-undefined)
  target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(${target} PROPERTIES PREFIX lib OUTPUT_NAME ${name} C_VISIBILITY_PRESET hidden)
endfunction()

prony_agent(prony_preload prony_agent src/agent/agent_cpu.c src/agent/python_layout.c)
prony_agent(prony_inject prony_agent_cuda src/agent/agent_cuda.c src/agent/cupti_find.c
  src/agent/gpu_writer.c src/agent/python_layout.c)
