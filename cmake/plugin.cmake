# Plugins: backends that are shared objects beside the executable, which loads them with dlopen. Each
# carries its own copy of what it uses of base/ and core/ and exports one symbol, prony_plugin.

# A static library, so that a plugin takes of base/ and core/ only what it uses.
add_library(prony_ground STATIC EXCLUDE_FROM_ALL
  $<TARGET_OBJECTS:prony_base> $<TARGET_OBJECTS:prony_core>)
target_link_libraries(prony_ground PUBLIC Threads::Threads ${CMAKE_DL_LIBS} m)
set(plugins "") # the targets, for `program`

# prony_plugin(NAME SOURCES…): the target prony_NAME, which makes prony_NAME.so.
macro(prony_plugin name)
  add_library(prony_${name} MODULE ${ARGN})
  target_link_libraries(prony_${name} PRIVATE prony_ground)
  target_link_options(prony_${name} PRIVATE
    -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/plugin.map)
  if(NOT PRONY_SANITIZE) # a sanitizer's functions come from the executable
    target_link_options(prony_${name} PRIVATE -Wl,--no-undefined)
  endif()
  set_target_properties(prony_${name} PROPERTIES PREFIX "" C_VISIBILITY_PRESET hidden
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/plugin.map)
  list(APPEND plugins prony_${name})
endmacro()

# prony_backend(NAME): the backend in src/backend/NAME/*.c.
macro(prony_backend name)
  file(GLOB backend_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/${name}/*.c)
  prony_plugin(${name} ${backend_sources})
  target_compile_options(prony_${name} PRIVATE -include base/banned.h)
endmacro()
