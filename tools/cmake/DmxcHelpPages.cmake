# dmxc_install_help(TARGET PROGRAM COMPONENT): installs the man page and the completion for shells of a program, which it writes itself
# as soon as TARGET is linked (src/Tools/Help.cpp): they are there wherever the program is.
function(dmxc_install_help target program component)
  if(CMAKE_CROSSCOMPILING OR DMXC_SANITIZE) # which nobody installs
    return()
  endif()
  set(folder ${CMAKE_BINARY_DIR}/help)
  file(MAKE_DIRECTORY ${folder})
  get_filename_component(name ${program} NAME)
  add_custom_command(TARGET ${target} POST_BUILD
    COMMAND ${program} --help=man > ${folder}/${name}.1
    COMMAND ${program} --help=bash > ${folder}/${name}
    COMMAND ${program} --help=zsh > ${folder}/_${name}
    COMMAND ${program} --help=fish > ${folder}/${name}.fish)
  foreach(page "${name}.1:${CMAKE_INSTALL_MANDIR}/man1" "${name}:${CMAKE_INSTALL_DATADIR}/bash-completion/completions"
               "_${name}:${CMAKE_INSTALL_DATADIR}/zsh/site-functions" "${name}.fish:${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
    string(REPLACE ":" ";" page ${page})
    list(GET page 0 file)
    list(GET page 1 destination)
    install(FILES ${folder}/${file} DESTINATION ${destination} COMPONENT ${component} OPTIONAL)
  endforeach()
endfunction()

# dmxc_install_program(NAME COMPONENT): installs a program with these.
function(dmxc_install_program name component)
  dmxc_begin_component(${component} ${name})
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT ${component})
  dmxc_install_help(${name} ${name} ${component})
  dmxc_end_component()
endfunction()
