//===- GemmProduct.cpp - a product as tensor cores compute it -----------------===//

#include "GemmProduct.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"

#include "llvm/Support/MathExtras.h"

#include <cstring>
#include <numeric>

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

GemmProduct::GemmProduct(dmir::MatMulOp op, Block *block) : Contraction(op, /*throughCasts=*/true) {
  if (!rhs)
    why = "its right operand is no view of memory";
  else if (unclear)
    why = "whether a batch axis is broadcast is known at run time only";
  else if (Type inMemory = elementOf(block->getArgument(rhs->buffer)); !inMemory.isBF16())
    why = "its right operand is not in bf16";
  else
    lhsElement = rhsElement = inMemory;
  if (!why.empty())
    return;
  mayLackTerms = termsMayLack(block);
  place(rightOperand(), right);
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
  takeTaps(body, constant);
  if (taps)
    place({lhs->buffer, m, k, taps->pitch(), 1, 0, lhsBatch}, left);
  else
    place({lhs->buffer, m, k, lhsRow, windows ? Dim(1) : lhs->strides.back(), lhs->offset, lhsBatch}, left);
  packsRight = mayPack(body, constant);
  if (packsRight)
    place({rhs->buffer, n, k, Dim::ceilDiv(k, kUnit) * kUnit, 1, 0, SmallVector<Dim>(batchDims.size(), 0)}, right);
  else
    place(rightOperand(), right);
}

/// Constant weights are packed tap by tap, groups of few outputs as sets, where windows are copied by threads, or maps
/// read the channels of a set.
void GemmProduct::takeTaps(const RegionBody &body, llvm::function_ref<bool(unsigned)> constant) {
  if (!windows || joined || !body.block->getArgument(lhs->buffer).hasOneUse() || lhs->buffer == rhs->buffer ||
      !constant(lhs->buffer))
    return;
  std::optional<TapForm> form = TapForm::of(*this);
  const bool areImage = windows->areImage();
  if (!form || (areImage && form->together == 1))
    return;
  taps = form;
  m *= form->together;
  windows->channels = form->channelsOfSet();
  k = areImage ? windows->channels : Dim(form->pitch());
  lhsBatch = {0};
  if (batchDims.size() > 1) {
    batchDims[1] = Dim::floorDiv(batchDims[1], form->together);
    rhsBatch[1] = rhsBatch[1] * form->together;
    lhsBatch.push_back(m * form->pitch());
  }
  batch = dmir::product(batchDims);
}

void GemmProduct::keep(KeptSteps steps) {
  constexpr int64_t terms = dmx::cuda::kTileRowElements;
  place({rhs->buffer, steps.rows(), terms, terms, 1, 0, SmallVector<Dim>(batchDims.size(), 0)}, right);
  kept = std::move(steps);
}

void GemmProduct::look(ValueRange inputs) {
  if (!packsRight || right.buffer >= inputs.size() || !mayLeaveOut(op, /*exact=*/false))
    return;
  std::optional<Tensor> constant = dmir::constantTensor(inputs[right.buffer]);
  if (!constant || dtypeBits(constant->dtype()) != 8 * kElementBytes)
    return;
  if (const ConstantMatrix matrix = rightMatrix(constant->data()); matrix.mayBeSparse())
    held = std::make_shared<const NonZeros>(matrix);
}

ConstantMatrix GemmProduct::rightMatrix(const std::byte *data) const {
  ArrayRef<Dim> strides = rhs->strides;
  return {data + *rhs->offset.known() * kElementBytes,
          *k.known(),
          *n.known(),
          *strides[strides.size() - 2].known(),
          *strides.back().known(),
          kElementBytes,
          /*isFloat=*/true};
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

/// As tiles go where no text says otherwise (Pipeline::raster): down some rows of them, then on to the next column.
static int64_t columnOfTile(int64_t number, int64_t rows, int64_t columns) {
  const int64_t first = number / (columns * kRaster) * kRaster, height = std::min(rows - first, kRaster);
  return number % (columns * kRaster) / height;
}

/// Block after block takes the next tile, and then each the one as many further on; of very many tiles about.
static GemmSizes::Steps stepsOfBlocks(const KeptSteps &kept, const GemmSizes &sizes, const GemmTile &tile,
                                      int64_t blocks) {
  constexpr int64_t most = 1 << 16;
  const int64_t rows = llvm::divideCeil(std::max<int64_t>(sizes.m, 1), tile.rows),
                columns = llvm::divideCeil(sizes.n, tile.columns), matrix = rows * columns;
  const bool pays = kept.pay(sizes.k);
  const int64_t whole = llvm::divideCeil(sizes.k, dmx::cuda::kTileRowElements);
  std::vector<int64_t> ofColumn;
  for (int64_t column = 0; column < columns; ++column)
    ofColumn.push_back(pays ? kept.stepsOf(column) : whole);
  const double all = static_cast<double>(rows * sizes.batch) * std::accumulate(ofColumn.begin(), ofColumn.end(), 0.0);
  if (sizes.batch > most / matrix)
    return {all / static_cast<double>(blocks), all};
  std::vector<int64_t> ofBlock(static_cast<size_t>(blocks));
  for (int64_t number = 0; number < sizes.batch * matrix; ++number)
    ofBlock[static_cast<size_t>(number % blocks)] +=
        ofColumn[static_cast<size_t>(columnOfTile(number % matrix, rows, columns))];
  return {static_cast<double>(*llvm::max_element(ofBlock)), all};
}

GemmSizes GemmProduct::nominalSizes(Block *block) const {
  GemmSizes sizes{nominal(block, batch), nominal(block, m), nominal(block, n), nominal(block, k)};
  if (held)
    sizes.keptSteps = [held = held, sizes](const GemmTile &tile, int64_t blocks) {
      return stepsOfBlocks(KeptSteps(*held, tile.columns), sizes, tile, blocks);
    };
  return sizes;
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
  bool fits(int64_t elements, int64_t elementBytes, size_t bytes, bool areSteps) const {
    constexpr int64_t most = int64_t{1} << 31, unitBytes = 16;
    for (int64_t value : {k, n, strideK, strideN, pitch})
      if (value < 0 || value >= most)
        return false;
    int64_t last = offset + std::max<int64_t>(k - 1, 0) * strideK + std::max<int64_t>(n - 1, 0) * strideN;
    return offset >= 0 && offset < most && last < elements && pitch * elementBytes % unitBytes == 0 &&
           (areSteps || (k <= pitch && size == pitch * n * elementBytes)) && static_cast<size_t>(size) == bytes;
  }
};

} // namespace

/// A form of that name.
static NamedAttrList formOf(MLIRContext *context, StringRef kind, const PackedForm &packed) {
  Builder b(context);
  NamedAttrList form;
  form.set("form", b.getStringAttr(kind));
  PackedForm::each(packed, [&](StringRef name, int64_t value) { form.set(name, b.getI64IntegerAttr(value)); });
  return form;
}

DictionaryAttr dmxc::cuda::columnsForm(MLIRContext *context, const PackedColumns &columns, int64_t elementBytes) {
  return formOf(context, kPackedName, {columns, columns.pitch * columns.n * elementBytes}).getDictionary(context);
}

DictionaryAttr GemmProduct::packedForm(MLIRContext *context) const {
  const SmallVector<Dim> &strides = rhs->strides;
  const PackedColumns columns{*k.known(),
                              *n.known(),
                              *rhs->offset.known(),
                              *strides[strides.size() - 2].known(),
                              *strides.back().known(),
                              *right.pitch().known()};
  if (!kept)
    return columnsForm(context, columns, kElementBytes);
  NamedAttrList form = formOf(context, KeptSteps::kForm, {columns, kept->bytes()});
  kept->write(form, context);
  return form.getDictionary(context);
}

Status dmxc::cuda::packGemm(DictionaryAttr given, const Tensor &constant, std::span<std::byte> out) {
  if (TapForm::is(given))
    return TapForm::pack(given, constant, out);
  auto name = given.getAs<StringAttr>("form");
  auto bytes = static_cast<int64_t>(dtypeBits(constant.dtype()) / 8);
  const bool areSteps = name && name.getValue() == KeptSteps::kForm;
  bool whole = name && ((areSteps && bytes == kElementBytes) ||
                        (name.getValue() == kPackedName && (bytes == kElementBytes || bytes == 2 * kElementBytes)));
  PackedForm form{};
  PackedForm::each(form, [&](StringRef key, int64_t &value) {
    auto number = given.getAs<IntegerAttr>(key);
    whole = whole && number && number.getType().isInteger(64);
    value = whole ? number.getInt() : 0;
  });
  whole = whole && form.fits(constant.numElements(), bytes, out.size(), areSteps);
  if (whole && areSteps) {
    Result<KeptSteps> kept = KeptSteps::of(given, form.k, form.n);
    if (!kept || kept->bytes() == form.size)
      return kept ? kept->pack({constant.raw().data() + form.offset * kElementBytes, form.k, form.n, form.strideK,
                                form.strideN, kElementBytes, /*isFloat=*/true},
                               out)
                  : Status(kept.takeError());
  }
  if (!whole || areSteps)
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
