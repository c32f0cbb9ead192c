# The agent: a shared object that `prony profile -- COMMAND` puts into the program it watches
# (LD_PRELOAD). It is no plugin, so its name begins otherwise: the registry passes over it. It needs
# libc only, and no sanitizer: it runs in programs that have none.
add_library(prony_preload MODULE src/agent/agent_cpu.c src/agent/python_layout.c)
target_compile_options(prony_preload PRIVATE -include base/banned.h -fno-sanitize=all)
target_link_options(prony_preload PRIVATE -fno-sanitize=all -Wl,--no-undefined)
target_link_libraries(prony_preload PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(prony_preload PROPERTIES PREFIX lib OUTPUT_NAME prony_agent C_VISIBILITY_PRESET hidden)
