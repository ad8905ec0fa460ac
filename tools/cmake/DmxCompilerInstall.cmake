# Installs what a target outside the tree is built with: cmake --install BUILD --component compiler --prefix P. Headers and .td
# files, static libraries, the CMake package DmxCompiler, and the runtime with its devices.

include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/DmxCompiler)

# dmxc_collect(RESULT TARGETS..): these libraries and those of ours that they link.
function(dmxc_collect result)
  set(todo ${ARGN})
  set(all)
  while(todo)
    list(POP_FRONT todo library)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" library "${library}")
    if(NOT TARGET ${library} OR library IN_LIST all OR library STREQUAL dmxrt)
      continue()
    endif()
    get_target_property(imported ${library} IMPORTED)
    if(imported)
      continue()
    endif()
    list(APPEND all ${library})
    get_target_property(linked ${library} INTERFACE_LINK_LIBRARIES)
    if(linked)
      list(APPEND todo ${linked})
    endif()
  endwhile()
  set(${result} ${all} PARENT_SCOPE)
endfunction()

dmxc_collect(libraries dmxcCompare dmxcDriver dmxcTools dmxcTargetCommon dmxcQueueCode dmxQueuesView)
foreach(library IN LISTS libraries)
  get_target_property(folders ${library} INTERFACE_INCLUDE_DIRECTORIES)
  set(places)
  foreach(folder IN LISTS folders)
    if(folder MATCHES "^(${CMAKE_SOURCE_DIR}|${CMAKE_BINARY_DIR})(/|$)")
      list(APPEND places $<BUILD_INTERFACE:${folder}>)
    elseif(folder)
      list(APPEND places ${folder})
    endif()
  endforeach()
  list(APPEND places $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/dmxc-rooms>)
  set_target_properties(${library} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${places}")
endforeach()
dmxc_begin_component(compiler EXCLUDE_FROM_ALL ${libraries})
install(TARGETS ${libraries} EXPORT DmxCompilerTargets COMPONENT compiler
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/dmxc EXCLUDE_FROM_ALL)
install(EXPORT DmxCompilerTargets DESTINATION ${package} COMPONENT compiler EXCLUDE_FROM_ALL)

# Public headers, and those that a device or a target's code generator includes, in the rooms that they are in here.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/dmxc ${CMAKE_BINARY_DIR}/include/dmxc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT compiler EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.h" PATTERN "*.td" PATTERN "*.inc" PATTERN CMakeFiles EXCLUDE)
foreach(room runtime schemas targets/common)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/${room}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dmxc-rooms/${room}
    COMPONENT compiler EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.h" PATTERN golden EXCLUDE)
endforeach()

# The programs are the tree's, linked with another registry.
foreach(program dmxc dmx-run dmx-inspect dmx-opt)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/tools/${program}/ DESTINATION ${CMAKE_INSTALL_DATADIR}/dmxc/${program}
    COMPONENT compiler EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.cpp" PATTERN "*.h")
endforeach()
install(FILES ${CMAKE_BINARY_DIR}/tools/dmx-opt/Transforms.inc DESTINATION ${CMAKE_INSTALL_DATADIR}/dmxc/dmx-opt
  COMPONENT compiler EXCLUDE_FROM_ALL)

set(DMXC_DESCRIPTIONS "")
foreach(target IN LISTS DMXC_TARGETS)
  foreach(what SUMMARY PASSES HELP)
    string(APPEND DMXC_DESCRIPTIONS "set(DMXC_${what}_${target} [==[${DMXC_${what}_${target}}]==])\n")
  endforeach()
endforeach()
configure_package_config_file(
  ${CMAKE_SOURCE_DIR}/tools/cmake/DmxCompilerConfig.cmake.in ${CMAKE_BINARY_DIR}/DmxCompilerConfig.cmake
  INSTALL_DESTINATION ${package} PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_DATADIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/DmxCompilerConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY ExactVersion)
install(FILES ${CMAKE_BINARY_DIR}/DmxCompilerConfig.cmake ${CMAKE_BINARY_DIR}/DmxCompilerConfigVersion.cmake
  ${CMAKE_SOURCE_DIR}/tools/cmake/DmxcBuild.cmake ${CMAKE_SOURCE_DIR}/tools/cmake/DmxcMLIR.cmake
  ${CMAKE_SOURCE_DIR}/tools/cmake/DmxcRegistry.cmake ${CMAKE_SOURCE_DIR}/tools/cmake/DmxcTargets.cmake
  DESTINATION ${package} COMPONENT compiler EXCLUDE_FROM_ALL)
install(PROGRAMS ${CMAKE_SOURCE_DIR}/tools/cmake/compile_cached.sh DESTINATION ${package} COMPONENT compiler EXCLUDE_FROM_ALL)
set(components runtime)
foreach(device IN LISTS DMXC_DEVICES)
  list(APPEND components device-${device})
endforeach()
install(CODE "foreach(component ${components})
  execute_process(COMMAND \"${CMAKE_COMMAND}\" --install \"${CMAKE_BINARY_DIR}\"
    --prefix \"\${CMAKE_INSTALL_PREFIX}\" --component \${component} COMMAND_ERROR_IS_FATAL ANY)
endforeach()" COMPONENT compiler EXCLUDE_FROM_ALL)
dmxc_end_component()
