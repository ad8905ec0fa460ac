# dmxc_install_program(NAME COMPONENT): installs a program with its man page and completion for shells, which it writes itself as soon as
# it is linked (src/Tools/Help.cpp): they are there wherever the program is.
function(dmxc_install_program name component)
  dmxc_begin_component(${component} ${name})
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component})
  if(CMAKE_CROSSCOMPILING)
    dmxc_end_component()
    return()
  endif()
  set(folder ${CMAKE_BINARY_DIR}/help)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(TARGET ${name} POST_BUILD
    COMMAND ${name} --help=man > ${folder}/${name}.1
    COMMAND ${name} --help=bash > ${folder}/${name}
    COMMAND ${name} --help=zsh > ${folder}/_${name}
    COMMAND ${name} --help=fish > ${folder}/${name}.fish)
  install(FILES ${folder}/${name}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT ${component} OPTIONAL)
  install(FILES ${folder}/${name} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT ${component} OPTIONAL)
  install(FILES ${folder}/_${name} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT ${component} OPTIONAL)
  install(FILES ${folder}/${name}.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT ${component} OPTIONAL)
  dmxc_end_component()
endfunction()
