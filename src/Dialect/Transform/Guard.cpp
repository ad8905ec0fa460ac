//===- Guard.cpp - transform.dmx.guard ------------------------------------===//
#include "dmxc/Dialect/Transform/Transform.h"

#include "mlir/Dialect/Transform/IR/TransformOps.h"
#include "mlir/IR/Verifier.h"

#include <map>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::transform;

void dmxc::transform::addGuards(Operation *script) {
  script->walk([](Operation *op) {
    OpBuilder b(op);
    if (auto annotate = dyn_cast<mlir::transform::AnnotateOp>(op))
      GuardOp::create(b, op->getLoc(), annotate.getTarget(), annotate.getParam(), annotate.getNameAttr());
    else if (auto alternatives = dyn_cast<mlir::transform::AlternativesOp>(op); alternatives && alternatives.getScope())
      GuardOp::create(b, op->getLoc(), alternatives.getScope(), Value(), StringAttr());
    else if (op->getName().getStringRef() == "transform.structured.match" && !op->hasAttr("dmx.may_be_none")) {
      b.setInsertionPointAfter(op);
      FoundOp::create(b, op->getLoc(), op->getResult(0), op->getOperand(0), op->getAttrOfType<ArrayAttr>("ops"));
    }
  });
}

//===----------------------------------------------------------------------===//
// include
//===----------------------------------------------------------------------===//

/// Who reads a script takes what it includes up; where one is left, nobody did.
DiagnosedSilenceableFailure IncludeOp::apply(mlir::transform::TransformRewriter &, mlir::transform::TransformResults &,
                                             mlir::transform::TransformState &) {
  return emitDefiniteFailure() << "stands beside sequences, not in one [schedule-include]";
}

void IncludeOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &) {}

//===----------------------------------------------------------------------===//
// guard
//===----------------------------------------------------------------------===//

/// Why an op would not be valid with an attribute; "" where it is. Changes nothing.
static std::string problemWith(Operation *op, StringRef name, Attribute value) {
  Attribute before = op->getAttr(name);
  op->setAttr(name, value);
  std::string problem;
  if (op->getAttr(name) != value) {
    problem = "it is of another kind";
  } else {
    ScopedDiagnosticHandler handler(op->getContext(), [&](mlir::Diagnostic &message) {
      if (problem.empty())
        problem = message.str();
      return success();
    });
    if (failed(verify(op, /*verifyRecursively=*/false)) && problem.empty())
      problem = "the op is invalid then";
  }
  if (before)
    op->setAttr(name, before);
  else
    op->removeAttr(name);
  return problem;
}

static std::string textOf(Attribute attr) {
  std::string text;
  llvm::raw_string_ostream(text) << attr;
  return text;
}

/// Why a script may not give an op this attribute; "" where it may.
static std::string refusal(Operation *op, StringRef name, Attribute value, const ScheduleHost *host) {
  std::string node = dmir::nodeName(op), kind = "'" + op->getName().getStringRef().str() + "'";
  node = node.empty() ? kind : "node '" + node + "' (" + kind + ")";
  bool isComputation = isa_and_nonnull<dmir::DMIRDialect>(op->getDialect()) && !isa<dmir::RegionOp>(op);
  if (op->getInherentAttr(name).has_value() && !isComputation)
    return "'" + name.str() + "' of " + node +
           " is not for annotations: transform.dmx.decide decides how a region is computed, --place by which target";
  if (name.contains('.') && op->getContext()->getLoadedDialect(name.split('.').first))
    return "'" + name.str() +
           "' is an attribute of the compiler's own; annotate with a name that has no dialect's before it";
  if (host && host->hasDecision(op, name))
    return "'" + name.str() + "' of " + node +
           " is a decision, which annotations do not make; write transform.dmx.decide";
  std::string problem = problemWith(op, name, value);
  return problem.empty() ? "" : node + " cannot have " + name.str() + " = " + textOf(value) + ": " + problem;
}

DiagnosedSilenceableFailure GuardOp::apply(mlir::transform::TransformRewriter &, mlir::transform::TransformResults &,
                                           mlir::transform::TransformState &state) {
  auto *extension = state.getExtension<ScheduleExtension>();
  SmallVector<Operation *> ops = llvm::to_vector(state.getPayloadOps(getTarget()));
  if (!getName()) {
    if (llvm::any_of(ops, [](Operation *op) { return !op->getBlock(); }))
      return emitSilenceableError()
             << "'transform.alternatives' exchanges what it tries things on, and the handle has the "
                "model itself; give one of regions or ops [schedule-refused]";
    return DiagnosedSilenceableFailure::success();
  }
  SmallVector<Attribute> values(1, UnitAttr::get(getContext()));
  if (getParam())
    values = llvm::to_vector(state.getParams(getParam()));
  for (auto [i, op] : llvm::enumerate(ops)) {
    if (values.size() != 1 && i >= values.size())
      break; // which annotate says itself
    std::string why =
        refusal(op, *getName(), values.size() == 1 ? values[0] : values[i], extension ? &extension->host : nullptr);
    if (!why.empty())
      return emitSilenceableError() << why << " [schedule-refused]";
  }
  return DiagnosedSilenceableFailure::success();
}

void GuardOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  mlir::transform::onlyReadsHandle(getTargetMutable(), effects);
  mlir::transform::onlyReadsHandle(getParamMutable(), effects);
  mlir::transform::onlyReadsPayload(effects);
}

//===----------------------------------------------------------------------===//
// found
//===----------------------------------------------------------------------===//

/// "'affine.for' (4), 'dmir.cast' (2)": the ops below some, the commonest first.
static std::string opsBelow(ArrayRef<Operation *> roots, std::vector<std::string> &names) {
  std::map<std::string, int> counts;
  for (Operation *root : roots)
    root->walk([&](Operation *op) { ++counts[op->getName().getStringRef().str()]; });
  std::vector<std::pair<int, std::string>> rows;
  for (const auto &[name, count] : counts) {
    names.push_back(name);
    rows.emplace_back(-count, name);
  }
  llvm::sort(rows);
  constexpr size_t most = 8;
  std::string text;
  for (const auto &[count, name] : ArrayRef(rows).take_front(most))
    text += (text.empty() ? "'" : ", '") + name + "' (" + std::to_string(-count) + ")";
  return text + (rows.size() > most ? ", .." : "");
}

DiagnosedSilenceableFailure FoundOp::apply(mlir::transform::TransformRewriter &, mlir::transform::TransformResults &,
                                           mlir::transform::TransformState &state) {
  if (!state.getPayloadOps(getFound()).empty())
    return DiagnosedSilenceableFailure::success();
  std::vector<std::string> names;
  SmallVector<Operation *> roots = llvm::to_vector(state.getPayloadOps(getRoot()));
  std::string there = opsBelow(roots, names), sought, near;
  for (StringRef name : getOps().value_or(ArrayAttr::get(getContext(), {})).getAsValueRange<StringAttr>()) {
    sought += (sought.empty() ? "'" : ", '") + name.str() + "'";
    near += near.empty() ? nearName(name, names) : "";
  }
  auto failure = emitSilenceableError() << "'structured.match' found no op" << (sought.empty() ? "" : " " + sought)
                                        << near << " [schedule-match]";
  failure.attachNote() << (there.empty() ? "the handle that it looks in has no ops" : "there are " + there);
  failure.attachNote() << "give it {dmx.may_be_none} where it may find none";
  return failure;
}

void FoundOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  mlir::transform::onlyReadsHandle(getFoundMutable(), effects);
  mlir::transform::onlyReadsHandle(getRootMutable(), effects);
  mlir::transform::onlyReadsPayload(effects);
}
