//===- DMIRDialect.cpp - registration and shared helpers ------------------===//
#include "dmxc/Dialect/DMIR/BlockFp.h"
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/DMIR.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dmxc/Dialect/DMIR/DMIRDialect.cpp.inc"
#include "dmxc/Dialect/DMIR/DMIREnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dmxc/Dialect/DMIR/DMIRAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dmxc/Dialect/DMIR/DMIRTypes.cpp.inc"
#define GET_OP_CLASSES
#include "dmxc/Dialect/DMIR/DMIROps.cpp.inc"

namespace dmxc::dmir {

void DMIRDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dmxc/Dialect/DMIR/DMIRAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dmxc/Dialect/DMIR/DMIRTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dmxc/Dialect/DMIR/DMIROps.cpp.inc"
      >();
}

Operation *DMIRDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  auto typed = dyn_cast<TypedAttr>(value);
  if (!typed || typed.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, typed);
}

std::optional<SmallVector<int64_t>> broadcastShapes(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  SmallVector<int64_t> result(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < result.size(); ++i) {
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    int64_t &out = result[result.size() - 1 - i];
    if (x == y || y == 1)
      out = x;
    else if (x == 1)
      out = y;
    else if (ShapedType::isDynamic(x) || ShapedType::isDynamic(y))
      out = ShapedType::isDynamic(x) ? y : x; // the static partner is > 1 and decides
    else
      return std::nullopt;
  }
  return result;
}

int64_t windowExtent(int64_t in, int64_t window, int64_t stride, int64_t dilation, int64_t low, int64_t high) {
  if (ShapedType::isDynamic(in) || ShapedType::isDynamic(window))
    return ShapedType::kDynamic;
  int64_t room = in + low + high - dilation * (window - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

RankedTensorType logicalType(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getEncoding() ? RankedTensorType::get(tensor.getShape(), tensor.getElementType()) : tensor;
}

std::string nodeName(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return name.getName().str();
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (std::string name = nodeName(part); !name.empty())
        return name;
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return nodeName(call.getCallee());
  return "";
}

std::string nodeName(Operation *op) {
  std::string name = nodeName(op->getLoc());
  return name.empty() ? op->getName().getStringRef().str() : name;
}

} // namespace dmxc::dmir
