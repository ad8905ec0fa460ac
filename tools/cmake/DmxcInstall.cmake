# What cmake --install copies, a component at a time. All targets that plain `cmake --install BUILD` copies are built by `installable`.

# dmxc_begin_component(COMPONENT [EXCLUDE_FROM_ALL] TARGETS...): the install rules up to dmxc_end_component() are those of COMPONENT ("": of
# none). Where one of TARGETS was not built they are left out with a line that says so; asked for by its name such a component is an error.
# EXCLUDE_FROM_ALL: they are rules of that kind, which plain --install does not follow.
function(dmxc_begin_component component)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "EXCLUDE_FROM_ALL" "" "")
  set(targets)
  set(files)
  foreach(target IN LISTS ARG_UNPARSED_ARGUMENTS)
    get_target_property(type ${target} TYPE)
    if(NOT type STREQUAL "INTERFACE_LIBRARY") # which has no file
      list(APPEND targets ${target})
      string(APPEND files " \"$<TARGET_FILE:${target}>\"")
    endif()
  endforeach()
  set(what "the component ${component}")
  if(component STREQUAL "")
    set(component Unspecified) # as CMake calls it
    list(JOIN targets " " what)
  endif()
  set(wanted "dmxc_component STREQUAL \"${component}\"")
  if(NOT ARG_EXCLUDE_FROM_ALL)
    set_property(GLOBAL APPEND PROPERTY DMXC_INSTALLABLE ${targets})
    string(APPEND wanted " OR NOT dmxc_component")
  endif()
  list(JOIN targets " " targets)
  # No rule is of a component that is called "left out".
  install(CODE "set(dmxc_component \"\${CMAKE_INSTALL_COMPONENT}\")
foreach(file${files})
  if((${wanted}) AND NOT EXISTS \"\${file}\")
    set(dmxc_left_out \"${what}, since '\${file}' was not built; to have it: cmake --build ${CMAKE_BINARY_DIR} --target ${targets}\")
    if(dmxc_component)
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
