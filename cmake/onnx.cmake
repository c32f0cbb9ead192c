# ONNX, where protobuf-c is found: src/nn/formats/onnx/ and the messages that protoc-c makes of its
# onnx.proto. The library is linked statically, so that a program built here runs where it is missing.
# Makes the targets prony_onnx and prony_messages and the variable PROTOBUF_C_LIBRARY, or says what is
# missing; then nn/formats/onnx_absent.c stands in for it.

find_path(PROTOBUF_C_INCLUDE protobuf-c/protobuf-c.h)
find_library(PROTOBUF_C_LIBRARY NAMES libprotobuf-c.a)
find_program(PROTOC_C protoc-c)
if(NOT PROTOBUF_C_INCLUDE OR NOT PROTOBUF_C_LIBRARY OR NOT PROTOC_C)
  message(STATUS
    "ONNX left out: protobuf-c not found (Debian: libprotobuf-c-dev protobuf-c-compiler)")
  return()
endif()

set(folder ${PROJECT_SOURCE_DIR}/src/nn/formats/onnx)
set(messages ${PROJECT_BINARY_DIR}/onnx)
file(MAKE_DIRECTORY ${messages})
add_custom_command(OUTPUT ${messages}/onnx.pb-c.c ${messages}/onnx.pb-c.h
  COMMAND ${PROTOC_C} --proto_path=${folder} --c_out=${messages} ${folder}/onnx.proto
  DEPENDS ${folder}/onnx.proto COMMENT "Making C of onnx.proto" VERBATIM)
add_library(prony_messages OBJECT ${messages}/onnx.pb-c.c)
target_include_directories(prony_messages PUBLIC ${messages} ${PROTOBUF_C_INCLUDE})
target_compile_options(prony_messages PRIVATE -w) # generated

file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.c)
add_library(prony_onnx OBJECT ${sources})
add_dependencies(prony_onnx prony_messages)
target_include_directories(prony_onnx PRIVATE ${messages} ${PROTOBUF_C_INCLUDE})
target_compile_options(prony_onnx PRIVATE -include nn/formats/onnx/messages.h)
