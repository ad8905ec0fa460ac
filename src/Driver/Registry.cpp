//===- Registry.cpp - look-ups in the generated registries ----------------===//
#include "dmxc/Driver/Registry.h"

namespace dmxc {

const Frontend *findFrontend(llvm::StringRef name) {
  for (const Frontend *frontend : registeredFrontends())
    if (name == frontend->name)
      return frontend;
  return nullptr;
}

const TargetInfo *findTarget(llvm::StringRef name) {
  for (const TargetInfo &target : registeredTargets())
    if (name == target.name)
      return &target;
  return nullptr;
}

std::vector<std::string> frontendNames() {
  std::vector<std::string> names;
  for (const Frontend *frontend : registeredFrontends())
    names.push_back(frontend->name);
  return names;
}

std::vector<std::string> targetNames() {
  std::vector<std::string> names;
  for (const TargetInfo &target : registeredTargets())
    names.push_back(target.name);
  return names;
}

} // namespace dmxc
