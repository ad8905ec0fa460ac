# The example target from a copy outside the checkout: with the installed compiler (about two minutes of processor time; where
# what it is built with has changed), and
# in a build of the tree, whose refusals and runtime are tried every time.
if(NOT DMXC_SANITIZE)
  set(example_test ${DMXC_SYSTEM_PYTHON} ${CMAKE_CURRENT_LIST_DIR}/test.py ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  add_test(NAME example-target.configure COMMAND ${example_test} configure)
  dmxc_frontend_test(example-target.package onnx ${CMAKE_SOURCE_DIR}/tests/long.sh --changed
    tests/example-target,tools/cmake,include/dmxc/Target ${example_test} package)
  dmxc_frontend_test(example-target.tree onnx ${CMAKE_SOURCE_DIR}/tests/long.sh ${example_test} tree)
  set_tests_properties(example-target.configure example-target.package example-target.tree PROPERTIES
    LABELS example-target PROCESSORS 2 TIMEOUT 3600 SKIP_RETURN_CODE 77)
endif()
