# Build helpers every room uses: warnings, sanitizers, ccache, one library call.

find_program(DMXC_CCACHE ccache)
if(DMXC_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CURRENT_LIST_DIR}/compile_cached.sh ${DMXC_CCACHE} ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
  add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endif()

# What is not hot and becomes part of libdmxrt or of a device, which have budgets (tests/runtime/check_exports.cmake).
set(DMXC_SMALL $<$<NOT:$<CONFIG:Debug>>:$<IF:$<CXX_COMPILER_ID:Clang>,-Oz,-Os>>)
# Everything in libdmxrt: clang would write out every loop eight times, and what unwinding needs nowhere but at calls.
set(DMXC_COMPACT -ffunction-sections -fdata-sections $<$<CXX_COMPILER_ID:Clang>:-fno-unroll-loops>
  $<$<CXX_COMPILER_ID:Clang>:-fno-asynchronous-unwind-tables>)

# A product is rounded before it is added, everywhere: results do not depend on the compiler.
add_compile_options(-ffp-contract=off)
# clang sees libstdc++ 12's std::stable_sort call what C++17 deprecated.
add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-deprecated-declarations>)
add_compile_options(-Wall -Wextra -Wno-unused-parameter $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>)
if(DMXC_SANITIZE)
  add_compile_options(-fsanitize=${DMXC_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${DMXC_SANITIZE})
endif()

# Where public headers are: of the compiler, which include/ mirrors, and of the runtime and of schemas/.
set(DMXC_INCLUDE_DIRS ${CMAKE_SOURCE_DIR}/include ${CMAKE_BINARY_DIR}/include)
set(DMXRT_INCLUDE_DIRS ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)

# dmxc_library(NAME SOURCES... [LIBS libs...])
# A static library of one room. Public headers live in include/, which mirrors src/.
function(dmxc_library name)
  cmake_parse_arguments(ARG "" "" "LIBS;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PUBLIC ${DMXC_INCLUDE_DIRS})
  target_link_libraries(${name} PUBLIC ${ARG_LIBS})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()
