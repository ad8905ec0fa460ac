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
    : Contraction(Contraction::of(body.root)), why(whyNot()) {
  if (!why.empty())
    return;
  joinRows();
  mayLackTerms = termsMayLack(body.block);
  placeAll(body, constant);
}

std::string GemmProduct::whyNot() const {
  if (!isHalf())
    return "its operands are no floats of 16 bits";
  if (!lhs || !rhs)
    return std::string("its ") + (lhs ? "right" : "left") + " operand is no view of memory";
  if (unclear)
    return "whether a batch axis is broadcast is known at run time only";
  if (k.is(0) || m.is(0) || n.is(0) || batch.is(0))
    return "it has no elements";
  if (windows && llvm::any_of(windows->axes, [](const Windows::Axis &axis) { return !axis.taps.isStatic(); }))
    return "the sizes of its windows are known at run time only";
  return "";
}

/// Whether a run may have no terms though it has elements, which are 0 then: no tensor map has an axis of none.
bool GemmProduct::termsMayLack(Block *block) const {
  auto boundsOf = [&](std::string_view symbol) {
    auto bounds = dmir::symbolBounds(block->getParentOp(), StringRef(symbol.data(), symbol.size()));
    return Dim::Bounds{bounds.min, bounds.max};
  };
  return !k.known() && k.bounds(boundsOf).min < 1 && !Dim::divideExactly(batch * m * n, k);
}

bool GemmProduct::isHalf() const {
  bool same = lhsElement == rhsElement && (lhsElement.isBF16() || lhsElement.isF16());
  return same && (element.isF32() || element == lhsElement);
}

void GemmProduct::placeAll(const RegionBody &body, llvm::function_ref<bool(unsigned)> constant) {
  place({lhs->buffer, m, k, lhsRow, windows ? Dim(1) : lhs->strides.back(), lhs->offset, lhsBatch}, left);
  packsRight = mayPack(body, constant);
  if (packsRight)
    place({rhs->buffer, n, k, Dim::ceilDiv(k, kUnit) * kUnit, 1, 0, SmallVector<Dim>(batchDims.size(), 0)}, right);
  else
    place(rightOperand(), right);
}

GemmOperand GemmProduct::rightOperand() const {
  GemmOperand operand{rhs->buffer, n, k, 0, 0, rhs->offset, rhsBatch};
  if (!windows) {
    operand.rowStride = rhs->strides.back();
    operand.kStride = rhs->strides[rhs->strides.size() - 2];
  } else if (windows->areImage()) {
    operand.rowStride = windows->axes.back().apart;
    operand.kStride = windows->channelsApart;
  } else {
    operand.windows = &*windows;
  }
  return operand;
}

bool GemmProduct::mayPack(const RegionBody &body, llvm::function_ref<bool(unsigned)> constant) const {
  auto isKnown = [](Dim size) { return size.known().has_value(); };
  bool oneMatrix = llvm::all_of(rhsBatch, [](Dim stride) { return stride.is(0); });
  return !windows && oneMatrix && isKnown(n) && isKnown(k) && isKnown(rhs->offset) &&
         llvm::all_of(rhs->strides, isKnown) && body.block->getArgument(rhs->buffer).hasOneUse() &&
         lhs->buffer != rhs->buffer && constant(rhs->buffer);
}

Dim GemmOperand::pitch() const {
  Dim inner = hasKSideBySide() ? k : rows, outer = hasKSideBySide() ? rows : k;
  return outer.is(1) ? Dim::ceilDiv(inner, kUnit) * kUnit : hasKSideBySide() ? rowStride : kStride;
}

void GemmProduct::place(GemmOperand operand, GemmOperand &placed) const {
  operand.byThreads = whyNoMap(operand);
  operand.isKMajor = !operand.byThreads.empty() || operand.hasKSideBySide();
  placed = std::move(operand);
}

std::string GemmProduct::whyNoMap(const GemmOperand &operand) const {
  if (operand.windows)
    return "windows of an image that overlap, have gaps or reach beyond it";
  if (mayLackTerms)
    return "it may have no terms in a run";
  auto isMultiple = [](Dim size) { return size.contentAndPrimitive().first % kUnit == 0; };
  if (!operand.hasKSideBySide() && !operand.rowStride.is(1) && !operand.rows.is(1))
    return "neither its terms nor its rows are neighbours in memory";
  SmallVector<Dim> steps{operand.pitch()};
  for (unsigned axis : mapAxes(operand))
    steps.push_back(operand.strides[axis]);
  if (steps.size() + 1 > kMostMapAxes)
    return "it has more than three batch axes";
  for (Dim step : steps)
    if (!isMultiple(step) || step.is(0) || !step.neverNegative())
      return "its rows are " + (step * kElementBytes).str() + " bytes apart, no multiple of 16";
  if (!isMultiple(operand.offset))
    return "it begins " + (operand.offset * kElementBytes).str() + " bytes into its buffer, no multiple of 16";
  return "";
}

std::string GemmProduct::threadCopies() const {
  std::string text = left.byThreads.empty() ? "" : "left: " + left.byThreads;
  if (!right.byThreads.empty())
    text += (text.empty() ? "right: " : "; right: ") + right.byThreads;
  return text;
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

void GemmProduct::copyByThreads(GemmOperand &operand) {
  if (operand.byThreads.empty())
    operand.byThreads = "it is asked for";
  operand.isKMajor = true;
}

std::vector<TensorMap> GemmProduct::maps(const GemmTile &tile) const {
  std::vector<TensorMap> all;
  for (auto [operand, rows] : {std::pair(&left, tile.rows), std::pair(&right, tile.columns)})
    if (operand->byThreads.empty())
      all.push_back(map(*operand, rows));
  return all;
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
  map.strides = {operand.pitch() * kElementBytes};
  for (unsigned axis : mapAxes(operand)) {
    map.sizes.push_back(batchDims[axis]);
    map.strides.push_back(operand.strides[axis] * kElementBytes);
    map.box.push_back(1);
  }
  map.offset = operand.offset * kElementBytes;
  return map;
}

namespace {

constexpr StringLiteral kPackedName = "columns16";

/// The same with all bytes of the packed columns.
struct PackedForm : PackedColumns {
  int64_t size;

  static void each(auto &form, auto &&visit) {
    visit("k", form.k), visit("n", form.n), visit("offset", form.offset), visit("stride_k", form.strideK);
    visit("stride_n", form.strideN), visit("pitch", form.pitch), visit("size", form.size);
  }
  /// Whether it takes elements of a constant of so many, and writes so many bytes.
  bool fits(int64_t elements, int64_t elementBytes, size_t bytes) const {
    constexpr int64_t most = int64_t{1} << 31, unitBytes = 16;
    for (int64_t value : {k, n, strideK, strideN, pitch})
      if (value < 0 || value >= most)
        return false;
    int64_t last = offset + std::max<int64_t>(k - 1, 0) * strideK + std::max<int64_t>(n - 1, 0) * strideN;
    return offset >= 0 && offset < most && last < elements && k <= pitch && pitch * elementBytes % unitBytes == 0 &&
           size == pitch * n * elementBytes && static_cast<size_t>(size) == bytes;
  }
};

} // namespace

DictionaryAttr dmxc::cuda::columnsForm(MLIRContext *context, const PackedColumns &columns, int64_t elementBytes) {
  const PackedForm packed{columns, columns.pitch * columns.n * elementBytes};
  Builder b(context);
  NamedAttrList form;
  form.set("form", b.getStringAttr(kPackedName));
  PackedForm::each(packed, [&](StringRef name, int64_t value) { form.set(name, b.getI64IntegerAttr(value)); });
  return form.getDictionary(context);
}

DictionaryAttr GemmProduct::packedForm(MLIRContext *context) const {
  const SmallVector<Dim> &strides = rhs->strides;
  return columnsForm(context,
                     {*k.known(), *n.known(), *rhs->offset.known(), *strides[strides.size() - 2].known(),
                      *strides.back().known(), *right.pitch().known()},
                     kElementBytes);
}

Status dmxc::cuda::packGemm(DictionaryAttr given, const Tensor &constant, std::span<std::byte> out) {
  auto name = given.getAs<StringAttr>("form");
  auto bytes = static_cast<int64_t>(dtypeBits(constant.dtype()) / 8);
  bool whole = name && name.getValue() == kPackedName && (bytes == 2 || bytes == 4);
  PackedForm form{};
  PackedForm::each(form, [&](StringRef key, int64_t &value) {
    auto number = given.getAs<IntegerAttr>(key);
    whole = whole && number && number.getType().isInteger(64);
    value = whole ? number.getInt() : 0;
  });
  if (!whole || !form.fits(constant.numElements(), bytes, out.size()))
    return modelError("a constant of " + std::to_string(constant.numElements()) +
                      " elements has a packed form of the cuda target that does not fit it; leave the form out of the "
                      "strategy and it is derived");
  const std::byte *first = constant.raw().data() + form.offset * bytes;
  // Some columns at a time: where the constant has them side by side they are read together.
  constexpr int64_t together = 32;
  std::fill(out.begin(), out.end(), std::byte{0});
  for (int64_t column = 0; column < form.n; column += together)
    for (int64_t i = 0; i < form.k; ++i)
      for (int64_t own = column; own < std::min(column + together, form.n); ++own)
        std::memcpy(out.data() + (own * form.pitch + i) * bytes,
                    first + (own * form.strideN + i * form.strideK) * bytes, bytes);
  return Status::ok();
}
