# The guide: src/guide/*.c, which loads libmicrohttpd when it serves, and its page, src/guide/ui, which
# esbuild bundles and which is embedded as the table `guide_files`. Makes the target prony_guide, or says
# what is missing; then guide_absent.c stands in for it.

find_path(MICROHTTPD_INCLUDE microhttpd.h)
find_program(NPM npm)
set(ui ${PROJECT_SOURCE_DIR}/src/guide/ui)

if(NOT MICROHTTPD_INCLUDE)
  message(STATUS "guide left out: microhttpd.h not found (Debian: libmicrohttpd-dev)")
  return()
endif()
if(NOT NPM)
  message(STATUS "guide left out: npm, which builds its page, not found (Debian: npm)")
  return()
endif()

# What package-lock.json names is fetched once and lies beside it, for all builds of this tree.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ui}/package-lock.json)
if(${ui}/package-lock.json IS_NEWER_THAN ${ui}/node_modules/.package-lock.json)
  message(STATUS "fetching what the guide's page is built with (npm ci)")
  execute_process(COMMAND ${NPM} ci --no-audit --no-fund --loglevel=error
    WORKING_DIRECTORY ${ui} RESULT_VARIABLE npm_failed)
  if(npm_failed)
    file(REMOVE_RECURSE ${ui}/node_modules)
    message(STATUS "guide left out: npm ci failed; its packages need the network once")
    return()
  endif()
  file(TOUCH ${ui}/node_modules/.package-lock.json)
endif()

prony_module(guide)
target_include_directories(prony_guide PRIVATE ${MICROHTTPD_INCLUDE})

file(GLOB_RECURSE page_sources CONFIGURE_DEPENDS ${ui}/*.ts ${ui}/*.css)
list(FILTER page_sources EXCLUDE REGEX /node_modules/)
set(page ${PROJECT_BINARY_DIR}/guide/main.js)
add_custom_command(OUTPUT ${page}
  COMMAND ${ui}/node_modules/.bin/esbuild ${ui}/main.ts --bundle --minify --target=es2020
    --log-level=warning --outfile=${page}
  DEPENDS ${page_sources} ${ui}/package-lock.json
  COMMENT "Bundling the guide's page" VERBATIM)
# Beside it as most browsers take it, a third of the size; -n leaves out the time, which would change.
add_custom_command(OUTPUT ${page}.gz COMMAND gzip -9 -n -k -f ${page} DEPENDS ${page}
  COMMENT "Compressing the guide's page" VERBATIM)
file(GLOB page_files CONFIGURE_DEPENDS ${ui}/*.html ${ui}/*.css ${ui}/*.svg)
prony_embed(prony_guide guide_files ${page} ${page}.gz ${page_files})
