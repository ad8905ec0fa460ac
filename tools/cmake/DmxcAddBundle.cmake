# dmxc_add_bundle(NAME MODEL file.onnx [OUTPUT file.bundle] [TARGETS cpu:x86-64-v3...] [OPTIONS ...])
#
# Compiles a model when the bundle is missing or older than the model, its external data
# or any other file that dmxc read (it writes a depfile), or dmxc itself.
#   NAME     custom target that builds the bundle, part of ALL; its property
#            DMXC_BUNDLE is the bundle's full path
#   OUTPUT   default NAME.bundle in the current binary directory
#   OPTIONS  further arguments of dmxc
# dmxc is the target `dmxc` of this build, or ${DMXC_EXECUTABLE}, or the installed program.

function(_dmxc_find_compiler result)
  if(TARGET dmxc)
    set(${result} $<TARGET_FILE:dmxc> PARENT_SCOPE)
    return()
  endif()
  find_program(DMXC_EXECUTABLE dmxc HINTS "${DmxRuntime_BINDIR}" DOC "The model compiler dmxc")
  if(NOT DMXC_EXECUTABLE)
    message(FATAL_ERROR "dmxc_add_bundle: dmxc was not found; set DMXC_EXECUTABLE to its path")
  endif()
  set(${result} "${DMXC_EXECUTABLE}" PARENT_SCOPE)
endfunction()

function(dmxc_add_bundle name)
  cmake_parse_arguments(ARG "" "MODEL;OUTPUT" "TARGETS;OPTIONS" ${ARGN})
  if(NOT ARG_MODEL OR ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "dmxc_add_bundle(${name}): expected MODEL file [OUTPUT file] [TARGETS ...] [OPTIONS ...]")
  endif()
  get_filename_component(model "${ARG_MODEL}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
  if(NOT ARG_OUTPUT)
    set(ARG_OUTPUT ${name}.bundle)
  endif()
  get_filename_component(output "${ARG_OUTPUT}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
  _dmxc_find_compiler(compiler)
  set(targets)
  foreach(target IN LISTS ARG_TARGETS)
    list(APPEND targets -t ${target})
  endforeach()
  add_custom_command(OUTPUT "${output}"
    COMMAND ${compiler} "${model}" -o "${output}" ${targets} ${ARG_OPTIONS}
            -MD -MF "${output}.d" -MT "${output}"
    DEPENDS "${model}" ${compiler}
    DEPFILE "${output}.d"
    COMMENT "Compiling model ${ARG_MODEL}"
    COMMAND_EXPAND_LISTS VERBATIM)
  add_custom_target(${name} ALL DEPENDS "${output}")
  set_target_properties(${name} PROPERTIES DMXC_BUNDLE "${output}")
endfunction()
