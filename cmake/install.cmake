# make install PREFIX=…: everything under one folder that can be moved: the executable finds its
# plugins in ../lib/prony and its peers in ../share/prony/peers. What the executable says of itself,
# its manual page and the shells' completion, is written when it is installed.

configure_file(cmake/prony.pc.in prony.pc @ONLY)
install(TARGETS prony RUNTIME DESTINATION bin)
install(TARGETS prony_shared LIBRARY DESTINATION lib)
install(TARGETS prony_static ARCHIVE DESTINATION lib)
if(plugins)
  install(TARGETS ${plugins} LIBRARY DESTINATION lib/prony)
endif()
install(TARGETS prony_preload prony_inject LIBRARY DESTINATION lib/prony)
install(FILES include/prony.h include/prony_settings.def DESTINATION include)
install(FILES ${PROJECT_BINARY_DIR}/prony.pc DESTINATION lib/pkgconfig)
install(DIRECTORY peers DESTINATION share/prony USE_SOURCE_PERMISSIONS
  PATTERN __pycache__ EXCLUDE)
install(DIRECTORY docs examples DESTINATION share/doc/prony)

set(pages ${PROJECT_BINARY_DIR}/pages)
install(CODE "
  file(MAKE_DIRECTORY ${pages})
  foreach(page \"manual;prony.1\" \"completion bash;prony\" \"completion fish;prony.fish\"
      \"completion zsh;_prony\")
    list(GET page 0 words)
    list(GET page 1 name)
    separate_arguments(words)
    execute_process(COMMAND $<TARGET_FILE:prony> \${words} OUTPUT_FILE ${pages}/\${name}
      COMMAND_ERROR_IS_FATAL ANY)
  endforeach()")
install(FILES ${pages}/prony.1 DESTINATION share/man/man1)
install(FILES ${pages}/prony DESTINATION share/bash-completion/completions)
install(FILES ${pages}/prony.fish DESTINATION share/fish/vendor_completions.d)
install(FILES ${pages}/_prony DESTINATION share/zsh/site-functions)
