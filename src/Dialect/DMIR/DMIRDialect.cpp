//===- DMIRDialect.cpp - registration and shared helpers ------------------===//
#include "Infer.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/DataFiles.h"
#include "dmxc/Dialect/DMIR/Kernels.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Dialect/DMIR/Names.h"
#include "dmxc/Dialect/DMIR/masks/Where.h"
#include "dmxc/Support/Visible.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
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

static void nameConstant(ConstantOp op, OpAsmSetValueNameFn setName) {
  setName(op.getResult(), valueName(nodeName(op.getLoc()), "constant"));
}

static void nameRegion(RegionOp op, OpAsmSetValueNameFn setName) {
  if (!op.getResults().empty())
    setName(op.getResults().front(), valueName(nodeName(op.getLoc()), "region"));
}

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
  addOperations<MaskOp, ExternOp>();
  addInterfaces<DataFiles, KernelSet>();
  ConstantOp::attachInterface<NamesResults<ConstantOp, nameConstant>>(*getContext());
  RegionOp::attachInterface<NamesResults<RegionOp, nameRegion>>(*getContext());
}

Operation *DMIRDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  auto typed = dyn_cast<TypedAttr>(value);
  if (!typed || typed.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, typed);
}

RankedTensorType logicalType(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return layoutOf(type) ? tensorOf(dimsOf(type), tensor.getElementType()) : tensor;
}

std::string nodeName(Location loc) {
  if (auto name = dyn_cast<NameLoc>(loc))
    return visible(name.getName().getValue());
  if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      if (std::string name = nodeName(part); !name.empty())
        return name;
  if (auto call = dyn_cast<CallSiteLoc>(loc))
    return nodeName(call.getCallee());
  return "";
}

void collectNodes(Location loc, llvm::SetVector<StringAttr> &nodes) {
  if (auto name = dyn_cast<NameLoc>(loc))
    nodes.insert(StringAttr::get(loc.getContext(), nodeName(loc)));
  else if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      collectNodes(part, nodes);
}

std::string nodeName(Operation *op) {
  std::string name = nodeName(op->getLoc());
  return name.empty() ? op->getName().getStringRef().str() : name;
}

std::string valueName(StringRef text, StringRef otherwise) {
  constexpr size_t kLongest = 64; // of a path in a deep model; a line has several of them
  std::string out;
  for (char c : text.ltrim("/._ ").take_front(kLongest))
    if (llvm::isAlnum(c))
      out += c;
    else if (!out.empty() && out.back() != '_')
      out += '_';
  while (!out.empty() && out.back() == '_')
    out.pop_back();
  if (out.empty())
    return otherwise.str();
  return llvm::isDigit(out.front()) ? (otherwise + "_" + out).str() : out;
}

} // namespace dmxc::dmir
