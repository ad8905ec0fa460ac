//===- AffineExtDialect.cpp - the tile type and its ops -------------------===//
#include "targets/corsair/dialect/AffineExt/AffineExt.h"

#include "dmxc/Dialect/DMIR/BlockFp.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::affine_ext;

#include "targets/corsair/dialect/AffineExt/AffineExtDialect.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "targets/corsair/dialect/AffineExt/AffineExtTypes.cpp.inc"
#define GET_OP_CLASSES
#include "targets/corsair/dialect/AffineExt/AffineExtOps.cpp.inc"

void AffineExtDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "targets/corsair/dialect/AffineExt/AffineExtTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "targets/corsair/dialect/AffineExt/AffineExtOps.cpp.inc"
      >();
}

//===--- the type ---------------------------------------------------------------===//

Type VecExtType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape;
  Type element;
  SMLoc where;
  if (parser.parseLess())
    return {};
  where = parser.getCurrentLocation();
  if (parser.parseDimensionList(shape, /*allowDynamic=*/false) || parser.parseType(element) || parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(where); }, parser.getContext(), shape, element);
}

void VecExtType::print(AsmPrinter &printer) const {
  printer << "<";
  for (int64_t dim : getShape())
    printer << dim << "x";
  printer << getElementType() << ">";
}

static bool isOfTiles(Type element) {
  return element && (element.isIntOrFloat() || isa<dmir::BlockFpType, VecExtType>(element));
}

LogicalResult VecExtType::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<int64_t> shape, Type element) {
  if (shape.empty() || llvm::any_of(shape, [](int64_t dim) { return dim < 1 || dim > INT32_MAX; }))
    return emitError() << "a tile has one dimension or more, each positive";
  if (!isOfTiles(element))
    return emitError() << "a tile's elements are integers, floats, block_fp or tiles, not " << element;
  return success();
}

MemRefType affine_ext::gridOf(MemRefType buffer) {
  Type element = buffer.getElementType();
  if (auto one = dyn_cast<VecExtType>(element))
    element = one.getElementType();
  SmallVector<int64_t> grid;
  for (int64_t size : buffer.getShape())
    grid.push_back((size + 63) / 64);
  auto tile = VecExtType::get(buffer.getContext(), SmallVector<int64_t>(buffer.getRank(), 64), element);
  return MemRefType::get(grid, tile, MemRefLayoutAttrInterface(), buffer.getMemorySpace());
}

//===--- ops ----------------------------------------------------------------------===//

ParseResult LoadOp::parse(OpAsmParser &parser, OperationState &state) {
  OpAsmParser::UnresolvedOperand memref;
  AffineMapAttr map;
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  Type memrefType, resultType;
  Type index = parser.getBuilder().getIndexType();
  NamedAttrList attributes;
  if (parser.parseOperand(memref) ||
      parser.parseAffineMapOfSSAIds(operands, map, "map", attributes, OpAsmParser::Delimiter::Square) ||
      parser.parseOptionalAttrDict(state.attributes) || parser.parseColonType(memrefType) || parser.parseComma() ||
      parser.parseType(resultType) || parser.resolveOperand(memref, memrefType, state.operands) ||
      parser.resolveOperands(operands, index, state.operands))
    return failure();
  state.addAttribute(getMapAttrName(state.name), map);
  state.addTypes(resultType);
  return success();
}

void LoadOp::print(OpAsmPrinter &printer) {
  printer << " " << getMemref() << "[";
  printer.printAffineMapOfSSAIds(getMapAttr(), getMapOperands());
  printer << "]";
  printer.printOptionalAttrDict((*this)->getAttrs(), {getMapAttrName()});
  printer << " : " << getMemref().getType() << ", " << getType();
}

LogicalResult LoadOp::verify() {
  auto memref = cast<MemRefType>(getMemref().getType());
  VecExtType result = getType();
  if (result.getElementType() != memref.getElementType() || result.getRank() != memref.getRank())
    return emitOpError("C1: ") << result << " is no array of the tiles of " << memref;
  if (static_cast<int64_t>(getMap().getNumResults()) != memref.getRank() ||
      getMap().getNumInputs() != getMapOperands().size())
    return emitOpError("C2: needs one index for each of the ") << memref.getRank() << " dimensions";
  for (auto [have, want] : llvm::zip(memref.getShape(), result.getShape()))
    if (!ShapedType::isDynamic(have) && want > have)
      return emitOpError("C3: ") << result << " is larger than " << memref;
  Region *scope = affine::getAffineScope(*this);
  for (auto [i, operand] : llvm::enumerate(getMapOperands()))
    if (i < getMap().getNumDims() ? !affine::isValidDim(operand, scope) : !affine::isValidSymbol(operand, scope))
      return emitOpError("C2: index operand ") << i << " is no affine dimension or symbol";
  return success();
}

LogicalResult MatMulOp::verify() {
  VecExtType lhs = getLhs().getType(), rhs = getRhs().getType(), result = getType();
  auto isLine = [](VecExtType type, int64_t along) {
    for (int64_t i = 0; i < type.getRank(); ++i)
      if (i != type.getRank() - along && type.getShape()[i] != 1)
        return false;
    return type.isNested() && type.getRank() >= 2;
  };
  if (!isLine(lhs, 1) || !isLine(rhs, 2) || lhs.getShape().back() != rhs.getShape()[rhs.getRank() - 2])
    return emitOpError("C1: needs 1xK tiles and Kx1 tiles, got ") << lhs << " and " << rhs;
  auto a = cast<VecExtType>(lhs.getElementType()), b = cast<VecExtType>(rhs.getElementType());
  auto left = dyn_cast<dmir::BlockFpType>(a.getElementType()), right = dyn_cast<dmir::BlockFpType>(b.getElementType());
  bool fits = left && right && a.getRank() == 2 && b.getRank() == 2 && left.hasBlocks() && right.hasBlocks() &&
              !left.getColumns() && right.getColumns() && a.getShape()[1] == b.getShape()[0] &&
              left.getBlock() == right.getBlock() && left.getFormat().precision == right.getFormat().precision;
  if (!fits)
    return emitOpError("C2: tiles of block_fp R and C of equal p, block and depth are needed, got ")
           << a << " and " << b;
  if (result.getRank() != 2 || result.getShape()[0] != a.getShape()[0] || result.getShape()[1] != b.getShape()[1] ||
      !dmir::isBfp32(result.getElementType()))
    return emitOpError("C3: the result is a tile of BFP32_1, ") << a.getShape()[0] << " x " << b.getShape()[1];
  if (getRows() && (*getRows() < 1 || static_cast<int64_t>(*getRows()) > a.getShape()[0]))
    return emitOpError("C4: rows is 1 to ") << a.getShape()[0] << ", not " << static_cast<int64_t>(*getRows());
  return success();
}

LogicalResult CastOp::verify() {
  VecExtType from = getInput().getType(), to = getType();
  bool alike = from.getShape() == to.getShape() && from.isNested() == to.isNested();
  if (alike && from.isNested()) {
    auto a = cast<VecExtType>(from.getElementType()), b = cast<VecExtType>(to.getElementType());
    alike = a.getShape() == b.getShape() && !a.isNested() && !b.isNested();
  }
  if (!alike)
    return emitOpError("C1: one tile becomes one of the same shape, not ") << from << " " << to;
  return success();
}

LogicalResult TilesOp::verify() {
  auto from = cast<MemRefType>(getBuffer().getType());
  if (from.getRank() < 1 || from.getRank() > 2 || !from.hasStaticShape() || !isOfTiles(from.getElementType()) ||
      gridOf(from) != getType())
    return emitOpError("C1: ") << getType() << " is not the grid of " << from;
  return success();
}
