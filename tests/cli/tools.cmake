# Command lines of dmx-run and dmx-inspect: exit codes, messages, files written.
find_program(DMXC_SYSTEM_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(NOT DMXC_SYSTEM_PYTHON)
  message(STATUS "cli.tools tests are skipped: /usr/bin/python3 was not found")
  return()
endif()
set(endings "npy pb")
if(NOT "onnx" IN_LIST DMXC_FRONTENDS)
  set(endings npy)
endif()
set(cases help usage files run color benchmark inspect)
if("corsair" IN_LIST DMXC_DEVICES)
  list(APPEND cases device device_page device_damage)
endif()
foreach(case IN LISTS cases)
  add_test(NAME cli.tools.${case} COMMAND ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/tools_test.py
    --bin ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} --golden ${CMAKE_SOURCE_DIR}/schemas/golden/format-1.0.bundle
    --device-kernels ${CMAKE_SOURCE_DIR}/tests/unit/Tools/device_kernels.txt --endings "${endings}" ${case})
endforeach()

add_test(NAME cli.help COMMAND ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/help_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR})
if(NOT DMXC_SANITIZE)
  add_test(NAME cli.packages COMMAND ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/packages_test.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}
    ${CMAKE_LIBRARY_OUTPUT_DIRECTORY} ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
endif()

if(DMXC_SIGNATURES)
  foreach(case keys usage sign refuse python)
    add_test(NAME cli.sign.${case} COMMAND ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/sign_test.py
      --bin ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} --golden ${CMAKE_SOURCE_DIR}/schemas/golden/format-1.0.bundle
      --source ${CMAKE_SOURCE_DIR} --library $<TARGET_FILE:dmxrt_shared> ${case})
  endforeach()
  if(DMXC_SANITIZE) # python is not built with them
    set_tests_properties(cli.sign.python PROPERTIES DISABLED ON)
  endif()
endif()

if(NOT DMXC_SANITIZE)
  add_test(NAME cli.install COMMAND ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/install_test.py)
  add_test(NAME cli.build-progress COMMAND ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/build_progress_test.py)
  add_test(NAME cli.compile-cached
    COMMAND ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/compile_cached_test.py ${CMAKE_SOURCE_DIR}/tools/cmake/compile_cached.sh)
  set_tests_properties(cli.compile-cached PROPERTIES SKIP_RETURN_CODE 77)
endif()
