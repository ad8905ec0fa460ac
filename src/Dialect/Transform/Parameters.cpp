//===- Parameters.cpp - transform.dmx.param and transform.dmx.dim ---------===//
#include "dmxc/Dialect/Transform/Transform.h"

#include "mlir/Dialect/Transform/IR/TransformTypes.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::transform;

//===----------------------------------------------------------------------===//
// param
//===----------------------------------------------------------------------===//

LogicalResult ParamOp::verify() {
  StringRef form = getForm();
  size_t bounds = getBounds().size();
  bool good = form == "one_of"    ? getValues() && bounds == 0
              : form == "range"   ? bounds == 2 || bounds == 3
              : form == "divides" ? bounds == 1
                                  : false;
  if (!good || static_cast<size_t>(llvm::count(getBounds(), kOperand)) != getOperation()->getNumOperands())
    return emitOpError("is one_of [...], range L to H step S, or divides N");
  if (getName().empty() || getName().contains('=') || getName().contains('\0'))
    return emitOpError("has no name that '--set NAME=VALUE' could give");
  ArrayAttr values = getValues().value_or(ArrayAttr());
  if (!values)
    return success();
  if (values.empty())
    return emitOpError("'") << getName() << "' has no values";
  for (Attribute value : values)
    if (!isa<IntegerAttr, StringAttr>(value))
      return emitOpError("'") << getName() << "' has the value " << value
                              << "; values are numbers, texts, true and false";
  return success();
}

/// The values that the parameter has in this run of the script, or why there are none.
static Result<Domain> domainOf(ParamOp op, mlir::transform::TransformState &state) {
  if (op.getValues())
    return Domain::oneOf(op.getValues()->getValue());
  SmallVector<int64_t> bounds;
  auto operand = op.getOperands_().begin();
  for (int64_t bound : op.getBounds()) {
    if (bound != ParamOp::kOperand) {
      bounds.push_back(bound);
      continue;
    }
    ArrayRef<Attribute> values = state.getParams(*operand++);
    auto number = values.size() == 1 ? dyn_cast<IntegerAttr>(domainValue(values.front())) : IntegerAttr();
    if (!number || !number.getType().isInteger(64))
      return modelError("'" + op.getName().str() + "' rests on a parameter that is not one number");
    bounds.push_back(number.getInt());
  }
  if (op.getForm() == "divides") {
    if (bounds[0] < 1 || bounds[0] > Domain::kLargestDivided)
      return modelError("'" + op.getName().str() + "' is to divide " + std::to_string(bounds[0]) +
                        "; give a number from 1 to " + std::to_string(Domain::kLargestDivided));
    return Domain::divisorsOf(op.getContext(), bounds[0]);
  }
  int64_t step = bounds.size() == 3 ? bounds[2] : 1;
  if (step < 1)
    return modelError("'" + op.getName().str() + "' has steps of " + std::to_string(step) + "; give 1 or more");
  Domain domain = Domain::range(op.getContext(), bounds[0], bounds[1], step);
  if (domain.count() == 0)
    return modelError("'" + op.getName().str() + "' has no values: its range is " + std::to_string(bounds[0]) + " to " +
                      std::to_string(bounds[1]));
  return domain;
}

DiagnosedSilenceableFailure ParamOp::apply(mlir::transform::TransformRewriter &,
                                           mlir::transform::TransformResults &results,
                                           mlir::transform::TransformState &state) {
  auto *extension = state.getExtension<ScheduleExtension>();
  if (!extension)
    return emitDefiniteFailure() << "nothing here gives parameters values; give the script to dmxc --schedule";
  Result<Domain> domain = domainOf(*this, state);
  if (!domain)
    return emitSilenceableError() << domain.error().message << " [schedule-refused]";
  Attribute preferred = getPreferred() ? domainValue(*getPreferred()) : Attribute();
  Result<Attribute> value = extension->host.parameter(*this, *domain, preferred);
  if (!value) {
    if (value.error().kind == ErrorKind::Constraint) // an enumeration has seen enough
      return emitDefiniteFailure() << value.error().message;
    return emitSilenceableError() << value.error().message << " [schedule-refused]";
  }
  results.setParams(cast<OpResult>(getValue()), {*value});
  return DiagnosedSilenceableFailure::success();
}

void ParamOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  mlir::transform::onlyReadsHandle(getOperands_Mutable(), effects);
  mlir::transform::producesHandle(getOperation()->getOpResults(), effects);
}

//===----------------------------------------------------------------------===//
// dim
//===----------------------------------------------------------------------===//

LogicalResult DimOp::verify() { return success(); }

DiagnosedSilenceableFailure DimOp::apply(mlir::transform::TransformRewriter &,
                                         mlir::transform::TransformResults &results,
                                         mlir::transform::TransformState &state) {
  SmallVector<Operation *> ops = llvm::to_vector(state.getPayloadOps(getTarget()));
  if (ops.size() != 1)
    return emitSilenceableError() << "'dmx.dim' is of one op, the handle has " << ops.size()
                                  << "; choose one with nth [schedule-match]";
  auto refuse = [&](const std::string &text) { return emitSilenceableError() << text << " [schedule-match]"; };
  std::string node = "'" + dmir::nodeName(ops[0]) + "'";
  ValueRange values = getOfOperand() ? ValueRange(ops[0]->getOperands()) : ValueRange(ops[0]->getResults());
  int64_t index = getOfOperand() ? getOfOperandAttr().getInt() : 0;
  if (index < 0 || index >= static_cast<int64_t>(values.size()))
    return refuse(node + " has " + std::to_string(values.size()) + " operands, so none is number " +
                  std::to_string(index));
  auto type = dyn_cast<RankedTensorType>(values[index].getType());
  int64_t rank = type ? type.getRank() : 0, asked = getDimAttr().getInt(), dim = asked < 0 ? asked + rank : asked;
  if (dim < 0 || dim >= rank)
    return refuse(node + " has " + std::to_string(rank) + " dims there, so none is number " + std::to_string(asked));
  if (type.isDynamicDim(dim))
    return refuse("dim " + std::to_string(asked) + " of " + node + " is open; fix it with --dim");
  results.setParams(cast<OpResult>(getExtent()), {Builder(getContext()).getI64IntegerAttr(type.getDimSize(dim))});
  return DiagnosedSilenceableFailure::success();
}

void DimOp::getEffects(SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  mlir::transform::onlyReadsHandle(getTargetMutable(), effects);
  mlir::transform::producesHandle(getOperation()->getOpResults(), effects);
  mlir::transform::onlyReadsPayload(effects);
}
