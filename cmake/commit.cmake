# Writes commit.h, which says which commit is being built: empty outside git, with a "+" when files
# were changed since. Run at every build, because only git knows; the file is touched only when that
# changes, and only record/version.c reads it.
#
#   cmake -DSOURCE=… -DOUTPUT=… -P commit.cmake

find_package(Git QUIET)
set(commit "")
if(Git_FOUND AND EXISTS "${SOURCE}/.git")
  execute_process(COMMAND ${GIT_EXECUTABLE} --no-optional-locks describe --always --exclude=*
    --abbrev=10 --dirty=+ WORKING_DIRECTORY "${SOURCE}"
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
set(text "#define PRONY_COMMIT \"${commit}\"\n")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" before)
endif()
if(NOT "${text}" STREQUAL "${before}")
  file(WRITE "${OUTPUT}" "${text}")
endif()
