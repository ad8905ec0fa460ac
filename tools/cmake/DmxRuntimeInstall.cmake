# Installs libdmxrt so that find_package(DmxRuntime) and pkg-config find it: the component runtime, and for each device X but cpu, which
# is in libdmxrt, the component device-X, which find_package(DmxRuntime COMPONENTS X) and pkg-config's dmxrt-X find.

include(CMakePackageConfigHelpers)
set(DMXRT_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/DmxRuntime)

dmxc_begin_component(runtime dmxrt dmxrt_shared)
install(TARGETS dmxrt dmxrt_shared EXPORT DmxRuntimeTargets COMPONENT runtime
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${CMAKE_SOURCE_DIR}/include/dmx/dmx.h ${CMAKE_SOURCE_DIR}/include/dmx/dmx.hpp ${CMAKE_SOURCE_DIR}/include/dmx/dmx_kernel.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dmx COMPONENT runtime)
install(EXPORT DmxRuntimeTargets NAMESPACE DmxRuntime:: DESTINATION ${DMXRT_PACKAGE_DIR} COMPONENT runtime)

configure_package_config_file(
  ${CMAKE_SOURCE_DIR}/tools/cmake/DmxRuntimeConfig.cmake.in ${CMAKE_BINARY_DIR}/DmxRuntimeConfig.cmake
  INSTALL_DESTINATION ${DMXRT_PACKAGE_DIR} PATH_VARS CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/DmxRuntimeConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_BINARY_DIR}/DmxRuntimeConfig.cmake ${CMAKE_BINARY_DIR}/DmxRuntimeConfigVersion.cmake
  ${CMAKE_SOURCE_DIR}/tools/cmake/DmxcAddBundle.cmake
  DESTINATION ${DMXRT_PACKAGE_DIR} COMPONENT runtime)

set(DMXRT_PC_PRIVATE "")
if(DMXC_SIGNATURES)
  set(DMXRT_PC_PRIVATE " -lsodium")
endif()
# A .pc file finds its prefix from its own place, so the tree can be moved.
file(RELATIVE_PATH DMXRT_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_SOURCE_DIR}/tools/cmake/dmxrt.pc.in ${CMAKE_BINARY_DIR}/dmxrt.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/dmxrt.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT runtime)
dmxc_end_component()

foreach(device IN LISTS DMXC_DEVICES)
  if(NOT TARGET dmxrt_${device})
    continue()
  endif()
  set(component COMPONENT device-${device})
  get_property(parts GLOBAL PROPERTY DMXRT_PARTS_${device})
  list(TRANSFORM parts PREPEND ${device}-)
  set(libraries ${device} ${parts})
  list(TRANSFORM libraries PREPEND dmxrt_)
  set(shared ${libraries})
  list(TRANSFORM shared APPEND _shared)
  dmxc_begin_component(device-${device} ${libraries} ${shared})
  foreach(name IN LISTS device parts)
    install(TARGETS dmxrt_${name} EXPORT DmxRuntimeDevice-${device} ${component} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(TARGETS dmxrt_${name}_shared ${component} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
    set(DMXRT_DEVICE ${name})
    string(REPLACE - _ DMXRT_DEVICE_SYMBOL dmxrt_device_${name})
    configure_file(${CMAKE_SOURCE_DIR}/tools/cmake/dmxrt-device.pc.in ${CMAKE_BINARY_DIR}/dmxrt-${name}.pc @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/dmxrt-${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig ${component})
  endforeach()
  install(EXPORT DmxRuntimeDevice-${device} NAMESPACE DmxRuntime:: DESTINATION ${DMXRT_PACKAGE_DIR} ${component})
  dmxc_end_component()
endforeach()
