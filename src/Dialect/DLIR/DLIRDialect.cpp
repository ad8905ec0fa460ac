//===- DLIRDialect.cpp - registration of DLIR -----------------------------===//
#include "dmxc/Dialect/DLIR/DLIR.h"

#include "Names.h"
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dmxc/Dialect/DLIR/DLIRDialect.cpp.inc"
#include "dmxc/Dialect/DLIR/DLIREnums.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dmxc/Dialect/DLIR/DLIRInterfaces.cpp.inc"
#include "dmxc/Dialect/DLIR/DLIRTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dmxc/Dialect/DLIR/DLIROps.cpp.inc"

namespace dmxc::dlir {

void DLIRDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dmxc/Dialect/DLIR/DLIRTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dmxc/Dialect/DLIR/DLIROps.cpp.inc"
      >();
  addDeviceOps();
  nameValues(*getContext());
}

Dim BufferOp::getOffsetDim() { return dmir::dimOfAttr(getUnitAttr(), 1) * static_cast<int64_t>(getOffset()); }
Dim BufferOp::getSizeDim() { return dmir::dimOfAttr(getUnitAttr(), 1) * static_cast<int64_t>(getSize()); }

/// C3: what a bundle can say of a buffer, and of a constant the values that fill it.
static LogicalResult verifyContent(BufferOp buffer) {
  auto tensor = dyn_cast<RankedTensorType>(buffer.getTensor());
  std::optional<dmir::HostForm> host = dmir::hostFormOf(buffer.getTensor()); // none of open dims
  if (!tensor || (!host && (tensor.hasStaticShape() || !dmir::dtypeOf(tensor.getElementType()))))
    return buffer.emitOpError("C3: '") << buffer.getName()
                                       << "' is of no type that a bundle has: " << buffer.getTensor();
  auto unit = dyn_cast_or_null<dmir::DimsAttr>(buffer.getUnitAttr());
  if (buffer.getUnitAttr() && (!unit || unit.getDims().size() != 1))
    return buffer.emitOpError("C3: 'unit' of '") << buffer.getName() << "' must be #dmir.dims of one";
  TypedAttr data = buffer.getDataAttr();
  if ((buffer.getKind() == BufferKind::constant) != static_cast<bool>(data))
    return buffer.emitOpError("C3: a constant, and nothing else, has 'data', unlike '") << buffer.getName() << "'";
  if (!data)
    return success();
  if (data.getType() != tensor || !host)
    return buffer.emitOpError("C3: the 'data' of '") << buffer.getName() << "' is no constant of the type " << tensor;
  DictionaryAttr form = buffer.getFormAttr();
  auto size = form ? form.getAs<IntegerAttr>("size") : IntegerAttr();
  if (form && (!form.getAs<StringAttr>("form") || !size || size.getValue() != static_cast<int64_t>(buffer.getSize())))
    return buffer.emitOpError("C3: the 'form' of '")
           << buffer.getName() << "' must be {form = TEXT, size = " << buffer.getSize() << ", ...}";
  if (uint64_t bytes = dtypeBytes(host->dtype, elementCount(host->shape)); !form && buffer.getSize() != bytes)
    return buffer.emitOpError("C3: 'size' of '") << buffer.getName() << "' must be " << bytes << ", as its type takes";
  return success();
}

LogicalResult BufferOp::verify() {
  if (static_cast<int64_t>(getSize()) < 0 || static_cast<int64_t>(getOffset()) < 0)
    return emitOpError("has a negative size or offset");
  if (failed(verifyContent(*this)))
    return failure();
  if (getKind() == BufferKind::arena && getOffset() % 64)
    return emitOpError("C1: arena offset ") << getOffset() << " is not a multiple of 64";
  if ((getKind() == BufferKind::alias) != static_cast<bool>(getBase()))
    return emitOpError("C2: an alias, and nothing else, names a base");
  if (!getBase())
    return success();
  auto base = getBase().getDefiningOp<BufferOp>();
  if (!base || base.getKind() == BufferKind::alias || base.getUnitAttr() != getUnitAttr() ||
      getOffset() > base.getSize() || getSize() > base.getSize() - getOffset())
    return emitOpError("C2: an alias must lie inside a buffer that is no alias itself");
  return success();
}

SmallVector<Value> IfOp::reads() {
  SmallVector<Value> all{getCondition()};
  llvm::append_range(all, getInputs());
  return all;
}

SmallVector<Value> WhileOp::reads() {
  SmallVector<Value> all;
  for (Value limit : {getTripCount(), getCondition()})
    if (limit)
      all.push_back(limit);
  llvm::append_range(all, getCarried());
  llvm::append_range(all, getInputs());
  return all;
}

ByteRange byteRange(BufferOp buffer) {
  int64_t offset = 0;
  int64_t size = buffer.getSize();
  if (buffer.getKind() == BufferKind::alias) {
    offset = buffer.getOffset();
    buffer = buffer.getBase().getDefiningOp<BufferOp>();
  }
  if (buffer.getKind() == BufferKind::arena)
    offset += buffer.getOffset();
  int64_t index = buffer.getIndex();
  if (buffer.getKind() == BufferKind::constant || buffer.getKind() == BufferKind::result) // each is its own space
    index = reinterpret_cast<intptr_t>(buffer.getOperation());
  return {buffer.getKind(), index, offset, offset + size};
}

} // namespace dmxc::dlir
