# SimGrid as a transport: src/comm/simgrid/ → comm_simgrid.so beside the executable, which loads it for
# `prony simulate`. Without its headers it is left out; so it is under sanitizers, which cannot follow
# its actors' stacks.
find_path(PRONY_SIMGRID_INCLUDE simgrid/actor.h)
find_library(PRONY_SIMGRID_LIBRARY simgrid)
if(PRONY_SIMGRID_INCLUDE AND PRONY_SIMGRID_LIBRARY AND NOT CMAKE_CROSSCOMPILING
    AND NOT PRONY_SANITIZE)
  prony_plugin(simgrid ${PROJECT_SOURCE_DIR}/src/comm/simgrid/simgrid_transport.c)
  target_include_directories(prony_simgrid SYSTEM PRIVATE ${PRONY_SIMGRID_INCLUDE})
  target_link_libraries(prony_simgrid PRIVATE ${PRONY_SIMGRID_LIBRARY})
  target_compile_options(prony_simgrid PRIVATE -include base/banned.h)
  set_target_properties(prony_simgrid PROPERTIES OUTPUT_NAME comm_simgrid)
else()
  message(STATUS "SimGrid plugin left out: not found (Debian: libsimgrid-dev), or a build with sanitizers")
  file(REMOVE ${PROJECT_BINARY_DIR}/comm_simgrid.so)
endif()
