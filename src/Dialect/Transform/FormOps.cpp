//===- FormOps.cpp - transform.dmx.normalize, check, define_form ----------===//
#include "dmxc/Dialect/Transform/Forms.h"
#include "loops/Nest.h"

#include "mlir/Dialect/Transform/IR/TransformOps.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::transform;
using affine::AffineForOp;
using Failure = DiagnosedSilenceableFailure;
using mlir::transform::NamedSequenceOp;
using mlir::transform::TransformOpInterface;
using mlir::transform::TransformState;

//===----------------------------------------------------------------------===//
// The type of handles
//===----------------------------------------------------------------------===//

LogicalResult mlir::transform::DmxFormType::verify(function_ref<InFlightDiagnostic()> emitError, StringRef form) {
  Result<Form> found = findForm(form, nullptr);
  if (!found)
    return emitError() << found.error().message
                       << "; a form of the script's own is checked by transform.dmx.check [schedule-form]";
  return success();
}

/// Why some nest in an op has not all of these properties; "" where all have.
static std::string problemIn(Operation *op, unsigned properties) {
  for (AffineForOp root : nestsIn(op))
    if (Finding finding = lacking(root, properties); finding.at)
      return "of the nest " + placeOf(root) + ": " + finding.why;
  return "";
}

DiagnosedSilenceableFailure mlir::transform::DmxFormType::checkPayload(Location place,
                                                                       ArrayRef<Operation *> payload) const {
  Result<Form> form = findForm(getForm(), nullptr);
  for (Operation *op : payload)
    if (std::string why = problemIn(op, form->properties); !why.empty())
      return emitSilenceableFailure(place)
             << "the handle is to what has " << getForm() << ", which is not there " << why << " [schedule-form]";
  return Failure::success();
}

//===----------------------------------------------------------------------===//
// Sequences of a form of the script's own
//===----------------------------------------------------------------------===//

static NamedSequenceOp sequenceOf(DefineFormOp form, FlatSymbolRefAttr name) {
  return SymbolTable::lookupNearestSymbolFrom<NamedSequenceOp>(form, name);
}

/// Runs a sequence on one op.
static Failure runOn(NamedSequenceOp sequence, Operation *payload, TransformState &state) {
  auto scope = state.make_region_scope(sequence.getBody());
  Block &body = sequence.getBody().front();
  if (failed(state.mapBlockArguments(body.getArgument(0), {payload})))
    return Failure::definiteFailure();
  for (Operation &op : body.without_terminator())
    if (Failure result = state.applyTransform(cast<TransformOpInterface>(op)); !result.succeeded())
      return result;
  return Failure::success();
}

/// Whether the sequence that checks a form holds; what it says is taken back.
static Failure holds(DefineFormOp form, Operation *payload, TransformState &state, std::string &why) {
  Failure result = runOn(sequenceOf(form, form.getCheckerAttr()), payload, state);
  why.clear();
  if (result.isSilenceableFailure()) {
    const std::string message = result.getMessage();
    why = StringRef(message).split('\n').first.split(" [schedule-").first.str(); // the label is of another failure
    (void)result.silence();
    return Failure::success();
  }
  return result;
}

LogicalResult DefineFormOp::verify() {
  for (auto [name, what] : {std::pair(getCheckerAttr(), "check"), {getFixerAttr(), "reach"}}) {
    NamedSequenceOp sequence = sequenceOf(*this, name);
    if (!sequence)
      return emitOpError("has no sequence @") << name.getValue() << " to " << what << " it [schedule-form]";
    if (sequence.getBody().empty() || sequence.getBody().getNumArguments() != 1 || !sequence.getResultTypes().empty() ||
        !sequence.getArgAttr(0, mlir::transform::TransformDialect::kArgReadOnlyAttrName))
      return emitOpError("'")
             << what << "' is a sequence that takes one argument, (%n: !transform.any_op {transform.readonly}), and "
             << "returns nothing; @" << name.getValue() << " is another one [schedule-form]";
  }
  Result<Form> whole = findForm(getSymName(), *this);
  return whole ? success() : LogicalResult(emitOpError(whole.error().message) << " [schedule-form]");
}

Failure DefineFormOp::apply(mlir::transform::TransformRewriter &, mlir::transform::TransformResults &,
                            TransformState &) {
  return emitDefiniteFailure() << "defines a form beside the sequences, and is no step of one [schedule-form]";
}

void DefineFormOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &) {}

//===----------------------------------------------------------------------===//
// normalize and check
//===----------------------------------------------------------------------===//

/// A form's name in a script, looked up before it runs.
static LogicalResult verifyForm(Operation *op, StringRef name) {
  Result<Form> form = findForm(name, op);
  return form ? success() : LogicalResult(op->emitOpError(form.error().message) << " [schedule-form]");
}

LogicalResult NormalizeOp::verify() { return verifyForm(*this, getForm()); }
LogicalResult CheckOp::verify() { return verifyForm(*this, getForm()); }

/// Brings a form of the script's own about.
static Failure reach(NormalizeOp op, DefineFormOp form, Operation *payload, TransformState &state) {
  std::string why, name = form.getSymName().str(), place = placeOf(payload);
  if (Failure failed = holds(form, payload, state, why); !failed.succeeded())
    return failed;
  const bool isThere = why.empty();
  if (!isThere) {
    if (Failure failed = runOn(sequenceOf(form, form.getFixerAttr()), payload, state); !failed.succeeded())
      return failed;
    if (Failure failed = holds(form, payload, state, why); !failed.succeeded())
      return failed;
    if (!why.empty())
      return emitDefiniteFailure(op.getLoc()) << "@" << form.getFixer() << " promised " << name << " of " << place
                                              << ", and is at fault: " << why << " [schedule-postcondition]";
  }
  emitRemark(op.getLoc()) << "'dmx.normalize': " << name << " of " << place
                          << (isThere ? ": nothing to be done" : ": @" + form.getFixer().str() + " ran") << kLogMark;
  return Failure::success();
}

Failure NormalizeOp::apply(mlir::transform::TransformRewriter &rewriter, mlir::transform::TransformResults &,
                           TransformState &state) {
  Result<Form> form = findForm(getForm(), *this);
  for (Operation *op : llvm::to_vector(state.getPayloadOps(getTarget()))) {
    SmallVector<AffineForOp> roots = nestsIn(op);
    for (AffineForOp root : roots) {
      AffineForOp before = root;
      if (!form->properties)
        break;
      if (Failure failed = require(*this, rewriter, root, getForm(), 0); !failed.succeeded())
        return failed;
      if (before == op)
        op = root;
    }
    for (DefineFormOp own : form->own)
      if (Failure failed = reach(*this, own, op, state); !failed.succeeded())
        return failed;
  }
  return Failure::success();
}

void NormalizeOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  mlir::transform::onlyReadsHandle(getTargetMutable(), effects);
  mlir::transform::modifiesPayload(effects);
}

Failure CheckOp::apply(mlir::transform::TransformRewriter &, mlir::transform::TransformResults &,
                       TransformState &state) {
  Result<Form> form = findForm(getForm(), *this);
  for (Operation *op : llvm::to_vector(state.getPayloadOps(getTarget()))) {
    std::string why = problemIn(op, form->properties);
    for (DefineFormOp own : form->own)
      if (why.empty()) {
        if (Failure failed = holds(own, op, state, why); !failed.succeeded())
          return failed;
        if (!why.empty())
          why = "of " + placeOf(op) + ": " + why;
      }
    if (why.empty())
      continue;
    if (getEnsured())
      return emitDefiniteFailure() << "what came before promised " << getForm() << " " << why
                                   << " [schedule-postcondition]";
    return emitSilenceableError() << "'dmx.check' found no " << getForm() << " " << why << " [schedule-form]";
  }
  return Failure::success();
}

void CheckOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  mlir::transform::onlyReadsHandle(getTargetMutable(), effects);
  mlir::transform::onlyReadsPayload(effects);
}
