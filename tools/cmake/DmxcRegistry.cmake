# The registries of targets, front ends, viewers and devices, generated from lists: core code names none of them.
#   DMXC_TARGETS    folders targets/T; DMXC_FRONTENDS folders frontends/F; DMXC_DEVICES folders runtime/devices/T
#
# A target folder T gives a library dmxcTarget<T> with
#   Result<std::unique_ptr<TargetBackend>> create<T>Target(const TargetOptions &);
# and a README.md whose first heading is the summary in --print-targets. With a file passes/Passes.td it also has
#   void register<T>Passes(mlir::DialectRegistry &);
# with a file passes/Stages.cpp
#   llvm::ArrayRef<TargetStage> stages<T>Target();
# and with a file Help.cpp
#   TargetHelp help<T>Target();
# and in schedules/ files that scripts of users include as "T/NAME.mlir".
# A frontend folder F gives dmxcFrontend<F> with
#   const Frontend &<f>Frontend();
# A device's folder T gives, in namespace dmxrt,
#   const DeviceKind &<t>Device();
# A code format's folder schemas/T may give dmx<T>View with the functions of include/dmxc/Tools/CodeView.h in namespace
# dmx::<t>: describeCode, printCode, compareCode.

function(dmxc_capitalise text result)
  string(SUBSTRING ${text} 0 1 first)
  string(SUBSTRING ${text} 1 -1 rest)
  string(TOUPPER ${first} first)
  set(${result} ${first}${rest} PARENT_SCOPE)
endfunction()

# dmxc_describe_target(TARGET ROOT): sets what the registry says of it, as its folder ROOT/targets/TARGET has it.
function(dmxc_describe_target target root)
  set(folder ${root}/targets/${target})
  set(summary "")
  if(EXISTS ${folder}/README.md)
    file(STRINGS ${folder}/README.md summary LIMIT_COUNT 1 REGEX "^# ")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${folder}/README.md)
    string(REGEX REPLACE "^# +" "" summary "${summary}")
    string(REPLACE "\\;" ";" summary "${summary}") # file(STRINGS) gives an element of a list
    string(REPLACE "\"" "'" summary "${summary}")
  endif()
  set(DMXC_SUMMARY_${target} "${summary}" PARENT_SCOPE)
  foreach(part PASSES:passes/Passes.td STAGES:passes/Stages.cpp HELP:Help.cpp)
    string(REPLACE ":" ";" part ${part})
    list(GET part 0 what)
    list(GET part 1 file)
    set(has OFF)
    if(EXISTS ${folder}/${file})
      set(has ON)
    endif()
    set(DMXC_${what}_${target} ${has} PARENT_SCOPE)
  endforeach()
  # Schedules that scripts include as "TARGET/NAME.mlir".
  if(EXISTS ${folder}/schedules AND DMXC_BUILD_COMPILER)
    file(GLOB schedules CONFIGURE_DEPENDS ${folder}/schedules/*.mlir)
    file(COPY ${schedules} DESTINATION ${CMAKE_BINARY_DIR}/share/dmxc/schedules/${target})
    install(FILES ${schedules} DESTINATION share/dmxc/schedules/${target} COMPONENT dmxc)
  endif()
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
    string(APPEND declarations "Result<std::unique_ptr<TargetBackend>> create${name}Target(const TargetOptions &);\n")
    set(passes nullptr)
    if(DMXC_PASSES_${target})
      string(APPEND declarations "void register${name}Passes(mlir::DialectRegistry &);\n")
      set(passes register${name}Passes)
    endif()
    set(stages nullptr)
    if(DMXC_STAGES_${target})
      string(APPEND declarations "llvm::ArrayRef<TargetStage> stages${name}Target();\n")
      set(stages stages${name}Target)
    endif()
    if(DMXC_HELP_${target})
      string(APPEND declarations "TargetHelp help${name}Target();\n")
      string(APPEND helps "{\"${target}\", help${name}Target()}, ")
    endif()
    string(APPEND targets "  {\"${target}\", \"${DMXC_SUMMARY_${target}}\", create${name}Target, ${passes}, ${stages}},\n")
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
  set(declarations "")
  set(viewers "")
  set(libraries "")
  foreach(device IN LISTS DMXC_DEVICES)
    dmxc_capitalise(${device} name)
    if(NOT TARGET dmx${name}View)
      continue()
    endif()
    string(APPEND declarations "
namespace dmx::${device} {
Text describeCode(Bytes code, std::string_view kernel, bool full, std::string &error);
Text printCode(Bytes code, std::string_view kernel, std::string &error);
Text compareCode(Bytes a, Bytes b, std::string &error);
}")
    string(APPEND viewers "    {\"${device}\", dmx::${device}::describeCode, dmx::${device}::printCode, "
                          "dmx::${device}::compareCode},\n")
    list(APPEND libraries dmx${name}View)
  endforeach()
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT [[
// Generated from DMXC_DEVICES by tools/cmake/DmxcRegistry.cmake.
#include "dmxc/Tools/CodeView.h"

#include <vector>

using Text = std::optional<std::string>;
using Bytes = std::span<const std::byte>;
@declarations@

std::span<const dmxc::tools::CodeViewer> dmxc::tools::codeViewers() {
  static const std::vector<CodeViewer> all = {
@viewers@  };
  return all;
}
]])
  set(DMXC_CODE_VIEWER_LIBS ${libraries} PARENT_SCOPE)
endfunction()

# dmxrt_write_registry(FILE DEVICES.. [WHERE_LINKED DEVICES..] [OPENS]): writes FILE, a runtime's list of devices: the first ones, of the
# further ones those whose libdmxrt-X.a a program is linked with, and with OPENS all that are libdmxrt-X.so beside it.
function(dmxrt_write_registry file)
  cmake_parse_arguments(ARG "OPENS" "" "WHERE_LINKED" ${ARGN})
  set(declarations "")
  set(devices "")
  set(weak "")
  set(linked "")
  foreach(device IN LISTS ARG_UNPARSED_ARGUMENTS)
    string(APPEND declarations "const DeviceKind &${device}Device();\n")
    string(APPEND devices "&${device}Device(), ")
  endforeach()
  foreach(device IN LISTS ARG_WHERE_LINKED)
    string(APPEND weak "extern \"C\" [[gnu::weak, gnu::visibility(\"default\")]] const dmxrt::DeviceLibrary dmxrt_device_${device};\n")
    string(APPEND linked "    if (&dmxrt_device_${device})\n      out.push_back(&dmxrt_device_${device}.kind());\n")
  endforeach()
  set(opener nullptr)
  if(ARG_OPENS)
    set(opener openDevice)
  endif()
  file(CONFIGURE OUTPUT ${file} @ONLY CONTENT [[
// Generated by tools/cmake/DmxcRegistry.cmake.
#include "runtime/devices/DeviceLibrary.h"

@weak@
namespace dmxrt {
@declarations@
std::span<const DeviceKind *const> deviceKinds() {
  static const std::vector<const DeviceKind *> all = [] {
    std::vector<const DeviceKind *> out = {@devices@};
@linked@    return out;
  }();
  return all;
}

DeviceOpener deviceOpener() { return @opener@; }
} // namespace dmxrt
]])
endfunction()
