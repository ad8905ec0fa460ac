# The registries of targets and frontends, generated from DMXC_TARGETS and DMXC_FRONTENDS: core code names neither.
#
# A target folder T gives a library dmxcTarget<T> with
#   Result<std::unique_ptr<TargetBackend>> create<T>Target(const TargetOptions &);
# and a README.md whose first heading is the summary in --print-targets. With a file passes/Passes.td it also has
#   void register<T>Passes(mlir::DialectRegistry &);
# and with a file Help.cpp
#   TargetHelp help<T>Target();
# A frontend folder F gives dmxcFrontend<F> with
#   const Frontend &<f>Frontend();
# A code format's folder schemas/T with a View.h gives dmx<T>View with the functions of include/dmxc/Tools/CodeView.h
# in namespace dmx::<t>: describeCode, printCode, compareCode.

function(dmxc_capitalise text result)
  string(SUBSTRING ${text} 0 1 first)
  string(SUBSTRING ${text} 1 -1 rest)
  string(TOUPPER ${first} first)
  set(${result} ${first}${rest} PARENT_SCOPE)
endfunction()

# dmxc_write_registry(FILE): writes FILE and sets DMXC_REGISTRY_LIBS to the libraries it needs.
function(dmxc_write_registry file)
  set(declarations "")
  set(targets "")
  set(helps "")
  set(frontends "")
  set(libraries "")
  foreach(target IN LISTS DMXC_TARGETS)
    dmxc_capitalise(${target} name)
    set(summary "")
    if(EXISTS ${CMAKE_SOURCE_DIR}/targets/${target}/README.md)
      file(STRINGS ${CMAKE_SOURCE_DIR}/targets/${target}/README.md summary LIMIT_COUNT 1 REGEX "^# ")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/targets/${target}/README.md)
      string(REGEX REPLACE "^# +" "" summary "${summary}")
      string(REPLACE "\\;" ";" summary "${summary}") # file(STRINGS) gives an element of a list
      string(REPLACE "\"" "'" summary "${summary}")
    endif()
    string(APPEND declarations "Result<std::unique_ptr<TargetBackend>> create${name}Target(const TargetOptions &);\n")
    set(passes "")
    if(EXISTS ${CMAKE_SOURCE_DIR}/targets/${target}/passes/Passes.td)
      string(APPEND declarations "void register${name}Passes(mlir::DialectRegistry &);\n")
      set(passes ", register${name}Passes")
    endif()
    if(EXISTS ${CMAKE_SOURCE_DIR}/targets/${target}/Help.cpp)
      string(APPEND declarations "TargetHelp help${name}Target();\n")
      string(APPEND helps "{\"${target}\", help${name}Target()}, ")
    endif()
    string(APPEND targets "  {\"${target}\", \"${summary}\", create${name}Target${passes}},\n")
    list(APPEND libraries dmxcTarget${name})
  endforeach()
  foreach(frontend IN LISTS DMXC_FRONTENDS)
    dmxc_capitalise(${frontend} name)
    string(APPEND declarations "const Frontend &${frontend}Frontend();\n")
    string(APPEND frontends "&${frontend}Frontend(), ")
    list(APPEND libraries dmxcFrontend${name})
  endforeach()
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT [[
// Generated from DMXC_TARGETS and DMXC_FRONTENDS by tools/cmake/DmxcRegistry.cmake.
#include "dmxc/Driver/Registry.h"
#include "dmxc/Target/TargetHelp.h"

#include <map>

namespace dmxc {
@declarations@
llvm::ArrayRef<TargetInfo> registeredTargets() {
  static const std::vector<TargetInfo> all = {
@targets@  };
  return all;
}

const TargetHelp &helpOf(const std::string &target) {
  static const TargetHelp none;
  static const std::map<std::string, TargetHelp> all = {@helps@};
  auto found = all.find(target);
  return found == all.end() ? none : found->second;
}

llvm::ArrayRef<const Frontend *> registeredFrontends() {
  static const std::vector<const Frontend *> all = {@frontends@};
  return all;
}
} // namespace dmxc
]])
  set(DMXC_REGISTRY_LIBS ${libraries} PARENT_SCOPE)
endfunction()

# dmxc_write_code_viewers(FILE): writes FILE and sets DMXC_CODE_VIEWER_LIBS to the libraries it needs.
function(dmxc_write_code_viewers file)
  set(includes "")
  set(viewers "")
  set(libraries "")
  file(GLOB headers RELATIVE ${CMAKE_SOURCE_DIR}/schemas CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/schemas/*/View.h)
  foreach(header IN LISTS headers)
    get_filename_component(target ${header} DIRECTORY)
    dmxc_capitalise(${target} name)
    if(NOT TARGET dmx${name}View)
      continue()
    endif()
    string(APPEND includes "#include \"schemas/${header}\"\n")
    string(APPEND viewers "    {\"${target}\", dmx::${target}::describeCode, dmx::${target}::printCode, "
                          "dmx::${target}::compareCode},\n")
    list(APPEND libraries dmx${name}View)
  endforeach()
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT [[
// Generated from the folders under schemas/ by tools/cmake/DmxcRegistry.cmake.
#include "dmxc/Tools/CodeView.h"
@includes@
#include <vector>

std::span<const dmxc::tools::CodeViewer> dmxc::tools::codeViewers() {
  static const std::vector<CodeViewer> all = {
@viewers@  };
  return all;
}
]])
  set(DMXC_CODE_VIEWER_LIBS ${libraries} PARENT_SCOPE)
endfunction()
