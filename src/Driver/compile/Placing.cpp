//===- Placing.cpp - nodes that a compile places otherwise ----------------===//
#include "../reports/Placement.h"

#include "dmxc/Driver/Compilation.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace dmxc::driver {

/// The nearest names to a glob, else the first ones: "did you mean 'enc/MatMul' or 'enc/MatMul_1'?"
static std::string adviceOn(const std::string &glob, std::vector<std::string> names) {
  constexpr size_t kMost = 3;
  std::vector<std::string> near;
  for (std::string name = nearestName(glob, names); !name.empty() && near.size() < kMost;
       name = nearestName(glob, names)) {
    near.push_back("'" + name + "'");
    llvm::erase(names, name);
  }
  if (!near.empty())
    return "did you mean " + llvm::join(near, " or ") + "?";
  std::vector<std::string> first(names.begin(), names.begin() + static_cast<ptrdiff_t>(std::min(names.size(), kMost)));
  return "its nodes have names like '" + llvm::join(first, "', '") + "'; --placement-report - prints those of all";
}

bool Compilation::checkPlaces(const std::set<std::string> &nodes) {
  bool good = true;
  for (const PlaceRule &rule : options.place) {
    if (llvm::any_of(nodes, [&](const std::string &node) { return rule.matches(node); }))
      continue;
    good = false;
    Diagnostic wrong;
    wrong.id = "place";
    wrong.kind = ErrorKind::Usage;
    wrong.file = options.model;
    wrong.text = "--place " + rule.glob + "=" + rule.target + " matches no node of the model";
    if (!nodes.empty())
      wrong.help(adviceOn(rule.glob, {nodes.begin(), nodes.end()}));
    diagnostics.report(std::move(wrong));
  }
  return good;
}

//===----------------------------------------------------------------------===//
// Nodes that do not fit
//===----------------------------------------------------------------------===//

bool Compilation::mayPlanAgain() const {
  return unplanned && placed && llvm::any_of(placed->shares, [&](const PlacedShare &share) {
           const TargetBackend *target = phaseCtx.target(share.target);
           return target && !target->runsOnHost() && !share.nodes.empty();
         });
}

bool Compilation::moveMisfits(const TargetBackend &target, const Error &error) {
  if (error.kind != ErrorKind::Constraint || error.nodes.empty() || !mayPlanAgain())
    return false;
  const auto share = llvm::find_if(placed->shares, [&](const auto &each) { return each.target == target.name(); });
  if (share == placed->shares.end())
    return false;
  auto move = [&](StringRef node) {
    movedNodes |= phaseCtx.misfits.try_emplace({share->target, node.str()}, error.reason).second;
  };
  for (const std::string &node : error.nodes)
    if (share->nodes.contains(node))
      move(node);
  if (!movedNodes) // nodes of a text without names
    for (const auto &node : share->nodes)
      move(node.getKey());
  return movedNodes;
}

bool Compilation::planAgain(const Stop &last) {
  theModule = unplanned->clone();
  for (const Stop &stop : stops(phaseCtx)) {
    if (phaseIndex(stop.name) < phaseIndex("partition"))
      continue;
    if (!runTo(stop))
      return false;
    if (stop.name == last.name)
      return true;
  }
  return true;
}

} // namespace dmxc::driver
