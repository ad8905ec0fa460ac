//===- DeviceTasks.cpp - rules of a device's tasks ------------------------===//
#include "dmxc/Dialect/DLIR/DLIR.h"

#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace dmxc::dlir;

#define GET_OP_CLASSES
#include "dmxc/Dialect/DLIR/DLIRDeviceOps.cpp.inc"

MemoryKind dmxc::dlir::memoryOf(Value buffer) { return buffer.getDefiningOp<MemoryOp>().getKind(); }

/// Loop counters, registers and the quad's number.
static bool isIndexSource(Value index) {
  if (auto argument = dyn_cast<BlockArgument>(index))
    return isa<LoopOp, ScheduledGraphOp>(argument.getOwner()->getParentOp());
  return index.getDefiningOp<RegisterOp>() != nullptr;
}

/// What all tasks keep: they stand in a group, and their maps fit.
template <typename OpTy> static LogicalResult verifyTask(OpTy op) {
  if (!op->template getParentOfType<TaskGroupOp>())
    return op.emitOpError("stands in no group of a queue");
  if (op.getPlaces().size() != op.getBuffers().size())
    return op.emitOpError("needs a place for each buffer");
  if (!llvm::all_of(op.getBuffers(), [](Value buffer) { return buffer.getDefiningOp<MemoryOp>(); }) ||
      (op.getConfig() && !op.getConfig().template getDefiningOp<DmaConfigOp>()))
    return op.emitOpError("has a buffer or descriptor that the program does not declare");
  if (!llvm::all_of(op.getIndices(), isIndexSource))
    return op.emitOpError("has a place that is not of loop counters, registers and the quad's number");
  auto fits = [&](Attribute attribute, unsigned results) {
    AffineMap map = cast<AffineMapAttr>(attribute).getValue();
    return map.getNumResults() == results && map.getNumDims() == op.getIndices().size() && !map.getNumSymbols();
  };
  for (Attribute place : op.getPlaces())
    if (!fits(place, 1))
      return op.emitOpError("needs one expression for a place");
  for (NamedAttribute named : op->getAttrs())
    if (isa<AffineMapAttr>(named.getValue()) &&
        !fits(named.getValue(), std::is_same_v<OpTy, DmaCopyOp> && named.getName() == "rows" ? 2 : 1))
      return op.emitOpError("has the wrong number of expressions in '") << named.getName().getValue() << "'";
  return success();
}

LogicalResult DmaCopyOp::verify() {
  if (failed(verifyTask(*this)))
    return failure();
  auto [from, to] = getEndpoints().split('2');
  std::optional<MemoryKind> source = symbolizeMemoryKind(from), target = symbolizeMemoryKind(to);
  if (!source || !target)
    return emitOpError("C1: ") << getEndpoints() << " names no two memories";
  if (!canMove(*source, *target)) {
    std::string legal;
    for (unsigned kind = 0; kind <= getMaxEnumValForMemoryKind(); ++kind)
      if (canMove(*source, static_cast<MemoryKind>(kind)))
        legal += (legal.empty() ? "" : ", ") + stringifyMemoryKind(static_cast<MemoryKind>(kind)).str();
    return emitOpError("C1: the device does not move from ")
           << from << " to " << to << "; from " << from << " go " << (legal.empty() ? "no copies" : legal);
  }
  if (getBuffers().size() != 2 || memoryOf(getBuffers()[0]) != *source || memoryOf(getBuffers()[1]) != *target)
    return emitOpError("C2: its buffers do not lie in ") << from << " and " << to;
  if (!getConfig())
    return emitOpError("C3: needs a descriptor");
  if (getCores() && *target != MemoryKind::WB)
    return emitOpError("C4: only copies to WB name cores");
  if (getQuads() && (*target != MemoryKind::GM || (*source != MemoryKind::DDR && *source != MemoryKind::GM)))
    return emitOpError("C4: only copies from DDR or GM to GM reach other quads");
  return success();
}

template <typename OpTy> static LogicalResult verifyProduct(OpTy op, bool image) {
  if (failed(verifyTask(op)))
    return failure();
  size_t count = op.getBuffers().size();
  if (count < 3 || count > 4 || op.getConfig())
    return op.emitOpError("C1: has activations, weights, a result and perhaps a stash");
  MemoryKind first = memoryOf(op.getBuffers()[0]);
  if (!(first == MemoryKind::IB || (image && first == MemoryKind::GM)) ||
      memoryOf(op.getBuffers()[1]) != MemoryKind::WB || memoryOf(op.getBuffers()[2]) != MemoryKind::OB ||
      (count == 4 && memoryOf(op.getBuffers()[3]) != MemoryKind::ST))
    return op.emitOpError("C1: ") << (image ? "an image lies in GM or IB" : "activations lie in IB")
                                  << ", weights in WB, the result in OB, a stash in ST";
  int64_t imc = op.getNumImc(), mode = op.getPprMode();
  if (imc < 1 || mode < 0 || mode > 30 || imc > int64_t(1) << mode)
    return op.emitOpError("C2: 1 <= num_imc ") << imc << " <= 2^ppr_mode " << mode << " does not hold";
  if (op.getGroups() && static_cast<int64_t>(*op.getGroups()) < 1)
    return op.emitOpError("C3: groups is positive");
  if (op.getRows() && op.getRows()->isSingleConstant())
    if (int64_t rows = op.getRows()->getSingleConstantResult(); rows < 1 || rows > 64)
      return op.emitOpError("C4: rows is 1 to 64, not ") << rows;
  return success();
}

LogicalResult DeviceMatmulOp::verify() { return verifyProduct(*this, false); }
LogicalResult DeviceConvOp::verify() { return verifyProduct(*this, true); }

LogicalResult DeviceSimdOp::verify() {
  if (failed(verifyTask(*this)))
    return failure();
  for (Value buffer : getBuffers())
    if (!llvm::is_contained({MemoryKind::GM, MemoryKind::SIMD, MemoryKind::OB}, memoryOf(buffer)))
      return emitOpError("C1: operands lie in GM, SIMD or OB");
  size_t rank = getDims().size();
  if (rank < 1 || rank > 4 || getToStrides().size() != rank)
    return emitOpError("C2: has one to four dims and a step of each operand for each");
  const std::optional<StringRef> kinds[] = {getAKind(), getBKind(), getCKind()};
  const std::optional<ArrayRef<int64_t>> strides[] = {getAStrides(), getBStrides(), getCStrides()};
  for (size_t i = 0; i < 3; ++i) {
    bool there = getBuffers().size() > i + 1;
    if (kinds[i].has_value() != there || strides[i].has_value() != there)
      return emitOpError("C3: an operand that is there has kind and steps, another none");
    if (there && strides[i]->size() != rank)
      return emitOpError("C2: has one to four dims and a step of each operand for each");
  }
  return success();
}

LogicalResult DeviceReshapeOp::verify() {
  if (failed(verifyTask(*this)))
    return failure();
  bool transpose = getFunction() == "transpose", extract = getFunction() == "extract";
  if (!transpose && !extract && getFunction() != "insert")
    return emitOpError("C1: the function is extract, insert or transpose, not \"") << getFunction() << "\"";
  if (transpose ? !getRows() || !getColumns() || !getElement() || getConfig() || getRule() : !getConfig())
    return emitOpError("C2: extract and insert have a descriptor, transpose rows, columns and an element's bytes");
  StringRef rule = getRule().value_or("strided");
  if (!llvm::is_contained({"strided", "gather", "scatter", "window"}, rule) || (extract && rule == "scatter") ||
      (!extract && (rule == "gather" || rule == "window")))
    return emitOpError("C3: ") << getFunction() << " has no rule \"" << rule << "\"";
  if ((getBuffers().size() == 3) != (rule == "gather" || rule == "scatter"))
    return emitOpError("C3: indices come with gather and scatter only");
  return success();
}

LogicalResult CpuOp::verify() {
  auto program = (*this)->getParentOfType<DmmqOp>();
  if (!program || !isa_and_present<CpuFunctionOp>(program.lookupSymbol(getFunctionAttr())))
    return emitOpError("C1: there is no CPU function ") << getFunctionAttr();
  return verifyTask(*this);
}

LogicalResult SignalRemoteOp::verify() { return verifyTask(*this); }
LogicalResult WaitRemoteOp::verify() { return verifyTask(*this); }
LogicalResult SendOp::verify() { return verifyTask(*this); }
LogicalResult ReceiveOp::verify() { return verifyTask(*this); }
LogicalResult ResetOp::verify() { return verifyTask(*this); }
LogicalResult NopOp::verify() { return verifyTask(*this); }
