# libprony, shared and static: the engine without bench, store and guide, behind include/prony.h.
# Both export prony_* and nothing else, so that names inside cannot meet those of a program that
# uses it: the static library is one object whose other symbols are local.

set(library_objects "")
list(TRANSFORM simd_isas REPLACE "^prony_" "" OUTPUT_VARIABLE kernels)
foreach(module base core nn data comm backend_cpu ref_f64 ${kernels} train library)
  list(APPEND library_objects $<TARGET_OBJECTS:prony_${module}>)
endforeach()
set(library_archives "")
if(TARGET prony_onnx)
  list(APPEND library_objects $<TARGET_OBJECTS:prony_onnx> $<TARGET_OBJECTS:prony_messages>)
  list(APPEND library_archives ${PROTOBUF_C_LIBRARY})
endif()

add_library(prony_shared SHARED ${library_objects})
target_link_libraries(prony_shared PRIVATE ${library_archives} Threads::Threads ${CMAKE_DL_LIBS} m)
target_link_options(prony_shared PRIVATE
  -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/library.map)
if(NOT PRONY_SANITIZE) # a sanitizer's functions come from the executable
  target_link_options(prony_shared PRIVATE -Wl,--no-undefined)
endif()
set_target_properties(prony_shared PROPERTIES OUTPUT_NAME prony VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR} LINKER_LANGUAGE C
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/library.map)

set(library_object ${PROJECT_BINARY_DIR}/libprony.o)
add_custom_command(OUTPUT ${library_object}
  COMMAND ${CMAKE_LINKER} -r -o ${library_object} ${library_objects} ${library_archives}
  COMMAND ${CMAKE_OBJCOPY} --wildcard "--keep-global-symbol=prony_*" ${library_object}
  DEPENDS ${library_objects} COMMAND_EXPAND_LISTS VERBATIM
  COMMENT "Linking libprony.o")
add_library(prony_static STATIC ${library_object})
set_target_properties(prony_static PROPERTIES OUTPUT_NAME prony LINKER_LANGUAGE C)
