# Finds LLVM/MLIR 22 and declares how a room that uses them is built.
# Everything links the shared libMLIR/libLLVM; one precompiled header of MLIR's core, of the dialects that kernels are written in and
# of DMIR keeps a clean build short.

find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
set(LLVM_LINK_LLVM_DYLIB ON)
include(TableGen)
include(AddLLVM)
include(AddMLIR)

if(NOT TARGET dmxcMLIRDeps) # an installed compiler brings it
  add_library(dmxcMLIRDeps INTERFACE)
  target_include_directories(dmxcMLIRDeps SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
  target_link_libraries(dmxcMLIRDeps INTERFACE MLIR LLVM)
endif()

# A compiled-once header set; rooms reuse it through dmxc_mlir_library.
file(WRITE ${CMAKE_BINARY_DIR}/pch_anchor.cpp "// Anchor of the shared precompiled header.\n")
add_library(dmxcPCH OBJECT ${CMAKE_BINARY_DIR}/pch_anchor.cpp)
target_link_libraries(dmxcPCH PUBLIC dmxcMLIRDeps)
target_include_directories(dmxcPCH PRIVATE ${DMXC_INCLUDE_DIRS})
target_precompile_headers(dmxcPCH PRIVATE
  <algorithm> <cstdint> <functional> <map> <memory> <optional> <string> <string_view> <vector>
  <mlir/IR/Builders.h> <mlir/IR/BuiltinOps.h> <mlir/IR/BuiltinTypes.h> <mlir/IR/BuiltinAttributes.h>
  <mlir/IR/Dialect.h> <mlir/IR/OpDefinition.h> <mlir/IR/OpImplementation.h> <mlir/IR/DialectResourceBlobManager.h>
  <mlir/IR/Matchers.h> <mlir/IR/PatternMatch.h> <mlir/Interfaces/InferTypeOpInterface.h>
  <mlir/Interfaces/SideEffectInterfaces.h> <mlir/Dialect/Func/IR/FuncOps.h> <mlir/Pass/Pass.h>
  <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/Math/IR/Math.h> <mlir/Dialect/SCF/IR/SCF.h> <mlir/Dialect/Vector/IR/VectorOps.h>
  <mlir/Dialect/MemRef/IR/MemRef.h> <mlir/Dialect/LLVMIR/LLVMDialect.h>
  <dmxc/Dialect/DMIR/DMIR.h>)

# dmxc_mlir_executable(NAME SOURCES... [LIBS ...]): a program that uses MLIR. It is compiled as position-independent code
# like the libraries, for gcc takes a precompiled header only with the same setting (-fPIC against -fPIE).
function(dmxc_mlir_executable name)
  cmake_parse_arguments(ARG "" "" "LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC)
  target_precompile_headers(${name} REUSE_FROM dmxcPCH)
endfunction()

# dmxc_mlir_library(NAME SOURCES... [LIBS ...] [DEPENDS ...]): a room that uses MLIR.
function(dmxc_mlir_library name)
  cmake_parse_arguments(ARG "" "" "LIBS;DEPENDS" ${ARGN})
  dmxc_library(${name} ${ARG_UNPARSED_ARGUMENTS} LIBS dmxcMLIRDeps ${ARG_LIBS} DEPENDS ${ARG_DEPENDS})
  target_precompile_headers(${name} REUSE_FROM dmxcPCH)
  target_compile_options(${name} PRIVATE -Wno-comment $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endfunction()
