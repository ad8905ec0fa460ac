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

Value MatmulProduct::rowsOf(dmir::MatMulOp op) {
  auto rounding = op.getLhs().getDefiningOp<dmir::RoundBlocksOp>();
  return rounding ? rounding.getInput() : op.getLhs();
}

MatmulProduct::MatmulProduct(dmir::MatMulOp matmul, bool heavyEpilogue, Kind kind)
    : Contraction(matmul, stridedView(rowsOf(matmul), {}, kind == Kind::Nested),
                  stridedView(matmul.getRhs(), {}, kind == Kind::Nested)),
      heavyEpilogue(heavyEpilogue) {
  bool nested = kind == Kind::Nested;
  auto inMemory = [&](const StridedView &view) { return elementOf(op->getBlock()->getArgument(view.buffer)); };
  runPairs = nested && element.isF32() && lhsElement.isBF16() && rhsElement.isBF16();
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
  if (auto rounding = matmul.getLhs().getDefiningOp<dmir::RoundBlocksOp>()) {
    bytes = blocks && blocks->multipliesBytes(static_cast<int64_t>(rounding.getBlock()));
    if (!bytes) // computed as it is written
      lhs.reset();
  }
  if (direct() && !nested)
    joinRows();
}

MatmulProduct::MatmulProduct(dmir::GroupedMatMulOp matmul, bool heavyEpilogue)
    : Contraction(matmul), heavyEpilogue(heavyEpilogue), grouped(true), mayGroup(false) {
  if (!rhs)
    blocks = matchBlockWeights(matmul.getRhs());
  if (blocks && (!blocks->grouped() || !blocks->findBuffers()))
    blocks.reset();
}

bool MatmulProduct::hasConstantShape() const {
  return (!grouped || batch.valueOr(0) > 0) && n.valueOr(0) > 0 && k.valueOr(0) > 0 && rhs->offset.isStatic() &&
         llvm::all_of(rhs->strides, [](Dim stride) { return stride.isStatic(); });
}

DictionaryAttr MatmulProduct::packedForm() const {
  Builder b(op->getContext());
  NamedAttrList form;
  auto number = [&](StringRef name, int64_t value) { form.set(name, b.getI64IntegerAttr(value)); };
  ArrayRef<Dim> strides = rhs->strides;
  form.set("form", b.getStringAttr(fours()   ? "quads16"
                                   : pairs() ? "pairs16"
                                   : runs    ? StringRef(kRunsForm)
                                             : panelForm(weights)));
  number("k", *k.known());
  number("n", *n.known());
  number("offset", *rhs->offset.known());
  number("stride_k", *strides[strides.size() - 2].known());
  number("stride_n", *strides.back().known());
  if (runs)
    writeRuns(*runs, form, op->getContext());
  const int64_t elementBytes = rhsElement.getIntOrFloatBitWidth() / 8;
  int64_t bytes = weights != WeightFormat::Kept ? roundedPanelBytes(weights, *k.known(), *n.known())
                  : runs                        ? runs->bytes(*n.known(), elementBytes)
                  : fours()                     ? panel16Bytes(foursOf(*k.known()), *n.known(), 4)
                  : pairs()                     ? panel16Bytes(pairsOf(*k.known()), *n.known(), 4)
                                                : panel16Bytes(*k.known(), *n.known(), elementBytes);
  if (grouped) {
    number("count", *batch.known());
    number("stride", *strides[0].known());
    bytes *= *batch.known();
  }
  number("size", bytes);
  return form.getDictionary(op->getContext());
}

ConstantMatrix MatmulProduct::rightMatrix(const std::byte *data) const {
  const int64_t bytes = rhsElement.getIntOrFloatBitWidth() / 8;
  ArrayRef<Dim> strides = rhs->strides;
  return {data + *rhs->offset.known() * bytes,
          *k.known(),
          *n.known(),
          *strides[strides.size() - 2].known(),
          *strides.back().known(),
          bytes,
          mlir::isa<FloatType>(rhsElement)};
}

/// As many as the widest tile of any level has.
int64_t MatmulProduct::runColumns() const { return m.known() && *m.known() <= 2 ? 64 : 32; }

/// Elements of a packed matrix: of blocks, words.
int64_t MatmulProduct::packedElements() const {
  return blocks ? blocks16Bytes(blocks->format, blocks->k, blocks->n) / 4 : panel16Bytes(*k.known(), *n.known(), 1);
}

GemmKernel MatmulProduct::kernel() const {
  MLIRContext *context = op->getContext();
  GemmKernel kernel;
  static_cast<ContractionSizes &>(kernel) = *this;
  static_cast<ProductTypes &>(kernel) = ProductTypes(lhsElement, rhsElement, element);
  kernel.grouped = grouped;
  kernel.packedB = packedRhs;
  kernel.adjacentB = rhs && rhs->strides.back().is(1);
  kernel.apartA =
      lhs && lhs->strides.back().is(1) && !sharesSets(lhsRow.valueOr(0) * lhsElement.getIntOrFloatBitWidth() / 8);
  kernel.alongDepth =
      lhs && rhs && !kernel.adjacentB && lhs->strides.back().is(1) && rhs->strides[rhs->strides.size() - 2].is(1);
  kernel.roundsB = roundsRhs;
  kernel.runPairs = runPairs;
  kernel.units = units;
  kernel.runs = runs;
  kernel.micro = micro;
  if (weights != WeightFormat::Kept)
    kernel.bType = weights == WeightFormat::BF16 ? Type(BFloat16Type::get(context)) : IntegerType::get(context, 8);
  if (fours()) {
    kernel.fours = true;
    kernel.bType = kernel.accType;
    kernel.lastFour = (*k.known() - 1) % 4 + 1;
    kernel.k = foursOf(*k.known());
  }
  if (pairs()) {
    kernel.pairs = true;
    kernel.adjacentA = lhs->strides.back().is(1) || k.is(1);
    kernel.bType = IntegerType::get(context, 32);
  }
  if (blocks) {
    kernel.blocks = blocks->format;
    kernel.bytes = bytes;
    kernel.bType = IntegerType::get(context, 32);
  }
  kernel.heavyEpilogue = heavyEpilogue;
  return kernel;
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
  GemmMatrix result;
  if (!blocks) {
    result = matrix(b, *rhs, rhsBatch, rhs->strides[rhs->strides.size() - 2]);
  } else {
    result.base = b.buffer(blocks->values);
    result.scales = b.buffer(blocks->scales);
    result.zeros = blocks->zeros ? b.buffer(*blocks->zeros) : Value();
  }
  if (packedRhs)
    result.offset = nullptr;
  if (packedRhs && grouped)
    result.offset = [this, &b](Value group) { return b.mulC(group, packedElements()); };
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
