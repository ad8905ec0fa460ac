# What cmake --install copies, a component at a time. All targets that plain `cmake --install BUILD` copies are built by `installable`.

# dmxc_begin_component(COMPONENT TARGETS...): the install rules up to dmxc_end_component() are those of COMPONENT ("": of none). Where
# one of TARGETS was not built they are left out with a line that says so, and an error where the component was asked for by name.
function(dmxc_begin_component component)
  set_property(GLOBAL APPEND PROPERTY DMXC_INSTALLABLE ${ARGN})
  set(files)
  foreach(target IN LISTS ARGN)
    string(APPEND files " \"$<TARGET_FILE:${target}>\"")
  endforeach()
  list(JOIN ARGN " " targets)
  if(component STREQUAL "")
    set(component Unspecified) # as CMake calls it
    set(what "${targets}")
  else()
    set(what "the component ${component}")
  endif()
  # No rule is of a component that is called so.
  install(CODE "set(dmxc_component \"\${CMAKE_INSTALL_COMPONENT}\")
foreach(file${files})
  if(NOT EXISTS \"\${file}\" AND (NOT dmxc_component OR dmxc_component STREQUAL \"${component}\"))
    set(dmxc_left_out \"${what}, since '\${file}' was not built; to have it: cmake --build ${CMAKE_BINARY_DIR} --target ${targets}\")
    if(dmxc_component STREQUAL \"${component}\")
      message(FATAL_ERROR \"Cannot install \${dmxc_left_out}\")
    endif()
    message(STATUS \"Left out: \${dmxc_left_out}\")
    set(CMAKE_INSTALL_COMPONENT \"left out\")
    break()
  endif()
endforeach()" ALL_COMPONENTS)
endfunction()

function(dmxc_end_component)
  install(CODE "set(CMAKE_INSTALL_COMPONENT \"\${dmxc_component}\")" ALL_COMPONENTS)
endfunction()

# dmxc_add_installable(): the target, of all components that were begun.
function(dmxc_add_installable)
  get_property(targets GLOBAL PROPERTY DMXC_INSTALLABLE)
  add_custom_target(installable)
  add_dependencies(installable ${targets})
endfunction()
