//===- GemmProduct.cpp - a product as tensor cores compute it -----------------===//

#include "GemmProduct.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include <cstring>

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

/// Elements of which a tensor map's strides are multiples: 16 bytes.
static constexpr int64_t kUnit = 8, kElementBytes = 2;
static constexpr size_t kMostMapAxes = 5;

GemmProduct::GemmProduct(const RegionBody &body, llvm::function_ref<bool(unsigned)> constant)
    : MatrixProduct(cast<dmir::MatMulOp>(body.root)) {
  if (!isHalf())
    why = "its operands are no floats of 16 bits";
  else if (!lhs || !rhs)
    why = std::string("its ") + (lhs ? "right" : "left") + " operand is no view of memory";
  else if (unclear)
    why = "whether a batch axis is broadcast is known at run time only";
  else if (!k.known() || k.is(0) || m.is(0) || n.is(0) || batch.is(0))
    why = k.known() ? "it has no elements" : "the number of its terms is open";
  if (!why.empty())
    return;
  joinRows();
  why = placeAll(body, constant);
}

bool GemmProduct::isHalf() const {
  bool same = lhsElement == rhsElement && (lhsElement.isBF16() || lhsElement.isF16());
  return same && (element.isF32() || element == lhsElement);
}

std::string GemmProduct::placeAll(const RegionBody &body, llvm::function_ref<bool(unsigned)> constant) {
  auto last = [](const StridedView &view, size_t i) { return view.strides[view.strides.size() - i]; };
  std::string left = place(this->left, *lhs, m, lhsRow, last(*lhs, 1), lhsBatch, "left");
  if (!left.empty())
    return left;
  packsRight = mayPack(body, constant);
  if (!packsRight)
    return place(right, *rhs, n, last(*rhs, 1), last(*rhs, 2), rhsBatch, "right");
  right = {rhs->buffer, n, k, true, Dim::ceilDiv(k, kUnit) * kUnit, 0, SmallVector<Dim>(batchDims.size(), 0)};
  return "";
}

bool GemmProduct::mayPack(const RegionBody &body, llvm::function_ref<bool(unsigned)> constant) const {
  auto isKnown = [](Dim size) { return size.known().has_value(); };
  bool oneMatrix = llvm::all_of(rhsBatch, [](Dim stride) { return stride.is(0); });
  return oneMatrix && isKnown(n) && isKnown(rhs->offset) && llvm::all_of(rhs->strides, isKnown) &&
         body.block->getArgument(rhs->buffer).hasOneUse() && lhs->buffer != rhs->buffer && constant(rhs->buffer);
}

static bool isMultiple(Dim size) { return size.contentAndPrimitive().first % kUnit == 0; }

std::string GemmProduct::place(GemmOperand &operand, const StridedView &view, Dim rows, Dim rowStride, Dim kStride,
                               ArrayRef<Dim> batch, const char *which) {
  std::string its = std::string("of its ") + which + " operand ";
  operand.buffer = view.buffer;
  operand.rows = rows, operand.k = k;
  operand.offset = view.offset;
  operand.strides.assign(batch.begin(), batch.end());
  operand.isKMajor = kStride.is(1) || k.is(1);
  if (!operand.isKMajor && !rowStride.is(1) && !rows.is(1))
    return its + "neither terms nor rows are neighbours in memory";
  Dim inner = operand.isKMajor ? k : rows;
  operand.pitch = operand.isKMajor ? rowStride : kStride;
  if ((operand.isKMajor ? rows : k).is(1)) // one row, however far the next one would be
    operand.pitch = Dim::ceilDiv(inner, kUnit) * kUnit;
  SmallVector<Dim> steps{operand.pitch};
  for (unsigned axis : mapAxes(operand))
    steps.push_back(operand.strides[axis]);
  if (steps.size() + 1 > kMostMapAxes)
    return its + "more than three batch axes are no multiples of each other";
  for (Dim step : steps)
    if (!isMultiple(step) || step.is(0) || !step.neverNegative())
      return its + "rows are " + (step * kElementBytes).str() + " bytes apart, no multiple of 16";
  if (!isMultiple(operand.offset))
    return its + "the first element is " + (operand.offset * kElementBytes).str() +
           " bytes into its buffer, no multiple of 16";
  return "";
}

SmallVector<unsigned> GemmProduct::mapAxes(const GemmOperand &operand) const {
  SmallVector<unsigned> axes;
  for (unsigned axis = batchDims.size(); axis-- > 0 && !joined;)
    if (!operand.strides[axis].is(0) && !batchDims[axis].is(1))
      axes.push_back(axis);
  return axes;
}

GemmSizes GemmProduct::nominalSizes(Block *block) const {
  return {nominal(block, batch), nominal(block, m), nominal(block, n), nominal(block, k)};
}

Dim GemmProduct::tiles(const GemmTile &tile) const {
  return batch * Dim::ceilDiv(m, tile.rows) * Dim::ceilDiv(n, tile.columns);
}

TensorMap GemmProduct::map(const GemmOperand &operand, int64_t rows) const {
  constexpr int64_t span = dmx::cuda::kTileRowElements;
  TensorMap map;
  map.buffer = operand.buffer;
  map.type = lhsElement.isBF16() ? "bf16" : "f16";
  map.sizes = {operand.k, operand.rows};
  map.box = {span, rows};
  if (!operand.isKMajor) {
    std::swap(map.sizes[0], map.sizes[1]);
    map.box[1] = span;
  }
  map.strides = {operand.pitch * kElementBytes};
  for (unsigned axis : mapAxes(operand)) {
    map.sizes.push_back(batchDims[axis]);
    map.strides.push_back(operand.strides[axis] * kElementBytes);
    map.box.push_back(1);
  }
  map.offset = operand.offset * kElementBytes;
  return map;
}

DictionaryAttr GemmProduct::packedForm(MLIRContext *context) const {
  Builder b(context);
  NamedAttrList form;
  auto number = [&](StringRef name, Dim value) { form.set(name, b.getI64IntegerAttr(value.valueOr(0))); };
  form.set("form", b.getStringAttr("columns16"));
  number("k", k);
  number("n", n);
  number("offset", rhs->offset);
  number("stride_k", rhs->strides[rhs->strides.size() - 2]);
  number("stride_n", rhs->strides.back());
  number("pitch", right.pitch);
  number("size", right.pitch * n * kElementBytes);
  return form.getDictionary(context);
}

void dmxc::cuda::packGemm(DictionaryAttr form, const char *constant, char *out) {
  auto number = [&](StringRef name) { return form.getAs<IntegerAttr>(name).getInt(); };
  int64_t k = number("k"), n = number("n"), pitch = number("pitch");
  const char *first = constant + number("offset") * kElementBytes;
  int64_t strideK = number("stride_k") * kElementBytes, strideN = number("stride_n") * kElementBytes;
  for (int64_t column = 0; column < n; ++column) {
    char *to = out + column * pitch * kElementBytes;
    const char *from = first + column * strideN;
    for (int64_t i = 0; i < k; ++i)
      std::memcpy(to + i * kElementBytes, from + i * strideK, kElementBytes);
    std::memset(to + k * kElementBytes, 0, (pitch - k) * kElementBytes);
  }
}
