# How a target is built, and targets that live outside the tree: -DDMXC_EXTRA_TARGETS=DIR[;DIR..].
#
# DIR mirrors the tree. For each target T of it there are
#   DIR/targets/T           the compiler's half; its README.md's first heading is the summary in --print-targets
#   DIR/runtime/devices/T   the runtime's half
#   DIR/schemas/T           what both share: dmxc_format(T ...)
# Includers write targets/T/<header>, schemas/T/<header>, runtime/devices/T/<header>.

# dmxc_find_targets(DIRS): the targets below them: sets DMXC_EXTRA_NAMES, and of each DMXC_ROOT_<T> and what
# dmxc_describe_target does.
function(dmxc_find_targets)
  set(names)
  foreach(root IN LISTS ARGN)
    get_filename_component(root ${root} ABSOLUTE)
    if(NOT IS_DIRECTORY ${root})
      message(FATAL_ERROR "DMXC_EXTRA_TARGETS: there is no folder '${root}'")
    endif()
    file(GLOB found RELATIVE ${root}/targets CONFIGURE_DEPENDS ${root}/targets/*/CMakeLists.txt)
    if(NOT found)
      message(FATAL_ERROR "DMXC_EXTRA_TARGETS: '${root}' has no targets/NAME/CMakeLists.txt; CONTRIBUTING.md, "
                          "'A target', says what belongs there")
    endif()
    foreach(file IN LISTS found)
      get_filename_component(name ${file} DIRECTORY)
      if(NOT name MATCHES "^[a-z][a-z0-9_]*$")
        message(FATAL_ERROR "DMXC_EXTRA_TARGETS: '${root}/targets/${name}': the name of a target is lower-case letters, "
                            "digits and '_'")
      endif()
      if(name IN_LIST DMXC_TARGETS OR name IN_LIST DMXC_DEVICES OR name IN_LIST names)
        message(FATAL_ERROR "DMXC_EXTRA_TARGETS: '${root}': the name '${name}' is taken by another target of this build")
      endif()
      foreach(file targets/${name}/README.md runtime/devices/${name}/CMakeLists.txt)
        if(NOT EXISTS ${root}/${file})
          message(FATAL_ERROR "DMXC_EXTRA_TARGETS: '${root}': the target '${name}' has no ${file}")
        endif()
      endforeach()
      list(APPEND names ${name})
      set(DMXC_ROOT_${name} ${root} PARENT_SCOPE)
      dmxc_describe_target(${name} ${root})
      foreach(what SUMMARY PASSES HELP)
        set(DMXC_${what}_${name} "${DMXC_${what}_${name}}" PARENT_SCOPE)
      endforeach()
    endforeach()
  endforeach()
  set(DMXC_EXTRA_NAMES "${names}" PARENT_SCOPE)
endfunction()

# dmxc_extra_rooms(KIND): the folders of targets outside the tree below KIND, where they have one.
function(dmxc_extra_rooms kind)
  set(tree ${DMXC_INCLUDE_DIRS})
  foreach(name IN LISTS DMXC_EXTRA_NAMES)
    set(root ${DMXC_ROOT_${name}})
    # A room below it finds its target's headers and what is generated beside them.
    set(DMXC_INCLUDE_DIRS ${tree} ${root} ${CMAKE_BINARY_DIR})
    if(EXISTS ${root}/${kind}/${name}/CMakeLists.txt)
      add_subdirectory(${root}/${kind}/${name} ${CMAKE_BINARY_DIR}/${kind}/${name})
    endif()
  endforeach()
endfunction()

# dmxc_dialect(TARGET FILE): a dialect of the target's own, of FILE.td in this folder: FILE.h.inc, FILE.cpp.inc and
# FILEDialect.*.inc, by the CMake target dmxcFILEIncGen.
function(dmxc_dialect target file)
  include_directories(${DMXC_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
  set(LLVM_TARGET_DEFINITIONS ${file}.td)
  mlir_tablegen(${file}.h.inc -gen-op-decls)
  mlir_tablegen(${file}.cpp.inc -gen-op-defs)
  mlir_tablegen(${file}Dialect.h.inc -gen-dialect-decls -dialect=${target})
  mlir_tablegen(${file}Dialect.cpp.inc -gen-dialect-defs -dialect=${target})
  add_public_tablegen_target(dmxc${file}IncGen)
endfunction()

# dmxc_format(TARGET [SOURCES..] [VIEW SOURCES..] [LIBS ..]): what compiler and runtime share: with sources, the library
# dmx<T>Format, which becomes part of libdmxrt; and what tools show of it. C++20 and its standard library; the view may use
# nlohmann/json.
function(dmxc_format target)
  cmake_parse_arguments(ARG "" "" "VIEW;LIBS" ${ARGN})
  dmxc_capitalise(${target} name)
  if(ARG_UNPARSED_ARGUMENTS)
    add_library(dmx${name}Format STATIC ${ARG_UNPARSED_ARGUMENTS})
    target_link_libraries(dmx${name}Format PUBLIC ${ARG_LIBS})
    list(APPEND ARG_LIBS dmx${name}Format)
  endif()
  if(ARG_VIEW)
    add_library(dmx${name}View STATIC ${ARG_VIEW})
    target_link_libraries(dmx${name}View PUBLIC ${ARG_LIBS} PRIVATE nlohmann_json::nlohmann_json)
  endif()
  foreach(library dmx${name}Format dmx${name}View)
    if(TARGET ${library})
      target_include_directories(${library} PUBLIC ${DMXRT_INCLUDE_DIRS} ${DMXC_ROOT_${target}})
      dmxc_runtime_code(${library})
    endif()
  endforeach()
endfunction()

# dmxrt_device(TARGET SOURCES.. [SMALL SOURCES..] [LIBS ..]): the target's device. SMALL: what is not hot. LIBS: what it shares with
# the compiler and no other device needs, beside dmx<T>Format; both become part of the runtime.
function(dmxrt_device target)
  cmake_parse_arguments(ARG "" "" "SMALL;LIBS" ${ARGN})
  dmxc_capitalise(${target} name)
  if(TARGET dmx${name}Format)
    list(APPEND ARG_LIBS dmx${name}Format)
  endif()
  add_library(dmxrtDevice${name} OBJECT ${ARG_UNPARSED_ARGUMENTS} ${ARG_SMALL})
  target_include_directories(dmxrtDevice${name} PRIVATE ${DMXC_ROOT_${target}})
  dmxrt_runtime_objects(dmxrtDevice${name})
  target_link_libraries(dmxrtDevice${name} PRIVATE ${ARG_LIBS})
  set_target_properties(dmxrtDevice${name} PROPERTIES DMXRT_LIBS "${ARG_LIBS}")
  if(ARG_SMALL)
    set_source_files_properties(${ARG_SMALL} PROPERTIES COMPILE_OPTIONS "${DMXC_SMALL}")
  endif()
endfunction()

# dmxrt_device_part(TARGET PART ..): a part of the target's device that it opens where it needs it, as dmxrt_device has it: libraries of
# its own, libdmxrt-TARGET-PART, and a function const DeviceKind &<target><Part>Device(). The device gets
#   Result<const DeviceKind *> <target>Part(std::string_view part);
function(dmxrt_device_part target part)
  dmxrt_device(${target}-${part} ${ARGN})
  set_property(GLOBAL APPEND PROPERTY DMXRT_PARTS_${target} ${part})
endfunction()

function(dmxc_runtime_code library)
  target_compile_options(${library} PRIVATE ${DMXC_COMPACT})
  set_target_properties(${library} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# Flags of the runtime's own code, devices included: its classes have no type information.
function(dmxrt_runtime_objects library)
  target_include_directories(${library} PRIVATE ${DMXRT_INCLUDE_DIRS})
  dmxc_runtime_code(${library})
  if(NOT DMXC_SANITIZE) # the undefined-behaviour sanitizer checks types by it
    target_compile_options(${library} PRIVATE -fno-rtti)
  endif()
endfunction()

# dmxrt_device_objects(VARIABLE DEVICES..): the objects of devices and of what they share with the compiler.
function(dmxrt_device_objects result)
  set(objects)
  foreach(target IN LISTS ARGN)
    dmxc_capitalise(${target} name)
    get_target_property(libraries dmxrtDevice${name} DMXRT_LIBS)
    foreach(library dmxrtDevice${name} ${libraries})
      list(APPEND objects $<TARGET_OBJECTS:${library}>)
    endforeach()
  endforeach()
  set(${result} ${objects} PARENT_SCOPE)
endfunction()
