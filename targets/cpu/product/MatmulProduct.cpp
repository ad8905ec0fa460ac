//===- MatmulProduct.cpp - a dmir.matmul as a product of matrices -------------===//

#include "MatmulProduct.h"

#include "targets/common/element/ElementExpr.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/IR/TypeUtilities.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

bool MatmulProduct::fours() const {
  return packedRhs && mayGroup && element.isInteger(32) && lhsElement.isUnsignedInteger(8) &&
         rhsElement.isSignlessInteger(8) && k.valueOr(0) > 0 && (lhs->strides.back().is(1) || k.is(1));
}

bool MatmulProduct::pairs() const {
  return packedRhs && mayGroup && rhs && element.isF32() && lhsElement.isBF16() && rhsElement.isBF16() &&
         k.valueOr(0) > 0;
}

/// Whether a view's numbers are rounded to bf16 on the way from memory, which then has f32.
static bool isRounded(Value value) {
  for (; Operation *op = value.getDefiningOp(); value = op->getOperand(0))
    if (auto cast = dyn_cast<dmir::CastOp>(op); cast && elementOf(cast.getInput()).isF32())
      return true;
  return false;
}

MatmulProduct::MatmulProduct(dmir::MatMulOp matmul, bool heavyEpilogue, Kind kind)
    : Contraction(matmul, kind == Kind::Nested), heavyEpilogue(heavyEpilogue) {
  bool nested = kind == Kind::Nested;
  auto inMemory = [&](const StridedView &view) { return elementOf(op->getBlock()->getArgument(view.buffer)); };
  if (nested && lhs)
    lhsElement = inMemory(*lhs), roundsLhs = isRounded(matmul.getLhs());
  if (nested && rhs)
    rhsElement = inMemory(*rhs), roundsRhs = isRounded(matmul.getRhs());
  if (!rhs && !nested && element == rhsElement && lhsElement == rhsElement)
    blocks = matchBlockWeights(matmul.getRhs());
  if (blocks && (blocks->grouped() || !blocks->findBuffers()))
    blocks.reset();
  if (blocks)
    rhsBatch.assign(batchDims.size(), 0);
  if (direct() && !nested)
    joinRows();
}

GemmSpec MatmulProduct::spec(MLIRContext *context) const {
  GemmSpec spec;
  spec.batch = batch.valueOr(kDynamic);
  spec.m = m.valueOr(kDynamic);
  spec.n = n.valueOr(kDynamic);
  spec.k = k.valueOr(kDynamic);
  bool isInt = mlir::isa<IntegerType>(element);
  auto memory = [&](Type type) { return isInt ? Type(IntegerType::get(context, type.getIntOrFloatBitWidth())) : type; };
  spec.aType = memory(lhsElement), spec.bType = memory(rhsElement);
  spec.aUnsigned = isUnsignedElement(lhsElement), spec.bUnsigned = isUnsignedElement(rhsElement);
  if (isInt)
    spec.accType = IntegerType::get(context, element.getIntOrFloatBitWidth() == 64 ? 64 : 32);
  else
    spec.accType = element.isF64() ? Type(Float64Type::get(context)) : Type(Float32Type::get(context));
  spec.packedB = packedRhs;
  spec.roundsB = roundsRhs;
  spec.units = units;
  if (weights != WeightFormat::Kept)
    spec.bType = weights == WeightFormat::BF16 ? Type(BFloat16Type::get(context)) : IntegerType::get(context, 8);
  if (fours()) {
    spec.fours = true;
    spec.bType = spec.accType;
    spec.lastFour = (spec.k - 1) % 4 + 1;
    spec.k = foursOf(spec.k);
  }
  if (pairs()) {
    spec.pairs = true;
    spec.adjacentA = lhs->strides.back().is(1) || k.is(1);
    spec.bType = IntegerType::get(context, 32);
  }
  if (blocks) {
    spec.blocks = blocks->format;
    spec.bType = IntegerType::get(context, 32);
  }
  spec.heavyEpilogue = heavyEpilogue;
  return spec;
}

Dim MatmulProduct::workItems(const GemmTiles &tiles) const {
  GemmSpec s = spec(op->getContext());
  if (s.batch >= 0 && s.m >= 0 && s.n >= 0)
    return gemmWorkItems(s, tiles);
  // Static rows are in balanced tiles, dynamic ones in whole blocks.
  Dim blocks =
      s.m >= 0 ? Dim::ceilDiv(Dim::ceilDiv(m, tiles.rows), tiles.tilesPerBlock) : Dim::ceilDiv(m, tiles.rowsPerBlock());
  return batch * blocks * Dim::ceilDiv(n, tiles.columns());
}

/// Element offset of a batch item of an operand.
static Value batchOffset(CpuBuilder &b, ArrayRef<Dim> batchDims, Value batch, ArrayRef<Dim> strides, Dim base) {
  Value offset = b.idx(base), rest = batch;
  for (size_t axis = batchDims.size(); axis-- > 0;) {
    Value dim = b.idx(batchDims[axis]);
    Value at = axis ? b.rem(rest, dim) : rest;
    rest = axis ? b.floorDiv(rest, dim) : rest;
    offset = b.add(offset, b.mulC(at, strides[axis]));
  }
  return offset;
}

GemmMatrix MatmulProduct::right(CpuBuilder &b) const {
  if (!blocks)
    return matrix(b, *rhs, rhsBatch, rhs->strides[rhs->strides.size() - 2]);
  GemmMatrix result;
  result.base = b.buffer(blocks->values);
  result.scales = b.buffer(blocks->scales);
  result.zeros = blocks->zeros ? b.buffer(*blocks->zeros) : Value();
  return result;
}

GemmMatrix MatmulProduct::matrix(CpuBuilder &b, const StridedView &view, ArrayRef<Dim> batch, Dim rowStride) const {
  GemmMatrix result;
  result.base = b.buffer(view.buffer);
  result.rowStride = b.idx(rowStride);
  result.colStride = b.idx(view.strides.back());
  result.offset = [this, &b, batch, offset = view.offset](Value item) {
    return joined ? b.idx(offset) : batchOffset(b, batchDims, item, batch, offset);
  };
  return result;
}
