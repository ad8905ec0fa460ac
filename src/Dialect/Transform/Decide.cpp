//===- Decide.cpp - transform.dmx.decide ----------------------------------===//
#include "dmxc/Dialect/Transform/Transform.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::transform;

LogicalResult DecideOp::verify() {
  if (getDecisions().empty() && getKnobs().empty())
    return emitOpError("decides nothing; give it {name = value}, or 'with name = %parameter' [schedule-refused]");
  if (getKnobs().size() != getParams().size())
    return emitOpError("has another number of names than of parameters");
  llvm::StringSet<> names;
  for (NamedAttribute entry : getDecisions())
    names.insert(entry.getName());
  for (StringRef name : getKnobs().getAsValueRange<StringAttr>())
    if (!names.insert(name).second)
      return emitOpError("'") << name << "' is decided twice [schedule-refused]";
  return success();
}

DiagnosedSilenceableFailure DecideOp::apply(mlir::transform::TransformRewriter &, mlir::transform::TransformResults &,
                                            mlir::transform::TransformState &state) {
  auto *extension = state.getExtension<ScheduleExtension>();
  if (!extension)
    return emitDefiniteFailure() << "there are no targets here that could be asked; give the script to dmxc --schedule";
  NamedAttrList decided(getDecisions());
  for (auto [name, knob] : llvm::zip_equal(getKnobs().getAsRange<StringAttr>(), getParams())) {
    ArrayRef<Attribute> values = state.getParams(knob);
    if (values.size() != 1)
      return emitSilenceableError() << "'" << name.getValue() << "' gets " << values.size()
                                    << " values, expected 1 [schedule-refused]";
    decided.set(name, domainValue(values.front()));
  }
  for (Operation *op : state.getPayloadOps(getTarget())) {
    bool ofRegion = isProduct(op) && op->getParentOfType<dmir::RegionOp>();
    if (!isa<dmir::RegionOp>(op) && !ofRegion)
      return emitSilenceableError() << "'" << op->getName()
                                    << "' is no region and no product of one, and has no decisions; match with kind = "
                                    << "\"region\" or \"product\" [schedule-refused]";
    if (Status s = extension->host.decide(op, decided.getDictionary(getContext()), *this); !s)
      return emitSilenceableError() << s.error().message << " [schedule-refused]";
  }
  return DiagnosedSilenceableFailure::success();
}

void DecideOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  mlir::transform::onlyReadsHandle(getTargetMutable(), effects);
  mlir::transform::onlyReadsHandle(getParamsMutable(), effects);
  mlir::transform::modifiesPayload(effects);
}
