//===- BlockWeights.cpp - right operands of few bits with a scale a block -===//

#include "BlockWeights.h"

#include "GemmTile.h"
#include "targets/common/element/StridedView.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/Model.h"
#include "dmxc/Support/ElementAt.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/TypeUtilities.h"

#include <cstring>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Which products have them
//===----------------------------------------------------------------------===//

static dmir::DequantizeOp sourceOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto found = dyn_cast<dmir::DequantizeOp>(op))
      return found;
    if (!mlir::isa<dmir::TransposeOp, dmir::ReshapeOp, dmir::SliceOp>(op))
      break;
    value = op->getOperand(0);
  }
  return {};
}

/// The element strides of the last two dims of a static tensor in row-major memory, 0 for dims of 1.
static std::array<int64_t, 2> stridesOf(Value matrix) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(matrix.getType()).getShape().take_back(2);
  return {shape[0] == 1 ? 0 : shape[1], shape[1] == 1 ? 0 : 1};
}

static GemmBlocks formatOf(dmir::DequantizeOp op) {
  GemmBlocks format;
  format.bits = op.getBits();
  format.block = op.getBlock();
  format.isSigned = !getElementTypeOrSelf(op.getInput().getType()).isUnsignedInteger();
  format.zero = op.getZero();
  format.scaleType = getElementTypeOrSelf(op.getScale().getType());
  if (Value zeros = op.getZeroPoints())
    format.zeroType = mlir::isa<FloatType>(getElementTypeOrSelf(zeros.getType()))
                          ? format.scaleType
                          : Type(IntegerType::get(op.getContext(), 8));
  return format;
}

/// Whether a view of what is dequantized is the matrices as they lie there, or each turned round.
static bool isWhole(Value rhs, const BlockWeights &found) {
  std::optional<StridedView> view = stridedView(rhs, found.op.getResult());
  SmallVector<Dim> dims = dmir::dimsOf(rhs);
  const size_t rank = found.op.getType().getRank();
  if (!view || dims.size() != rank || !view->offset.is(0))
    return false;
  ArrayRef<Dim> size(dims), stride(view->strides);
  bool groups = rank == 2 || (size[0].is(found.groups) && (found.groups == 1 || stride[0].is(found.k * found.n)));
  size = size.take_back(2), stride = stride.take_back(2);
  return groups && size[0].is(found.k) && size[1].is(found.n) && stride[0].is(found.strideK) &&
         stride[1].is(found.strideN);
}

std::optional<BlockWeights> dmxc::cpu::matchBlockWeights(Value rhs) {
  BlockWeights found;
  found.op = sourceOf(rhs);
  const int64_t rank = found.op ? found.op.getType().getRank() : 0;
  if ((rank != 2 && rank != 3) || !found.op.getType().hasStaticShape() || found.op.getType().getElementType().isF64())
    return std::nullopt;
  ArrayRef<int64_t> shape = found.op.getType().getShape().take_back(2);
  const int64_t axis = static_cast<int64_t>(found.op.getAxis()) - (rank - 2), other = 1 - axis;
  if (axis < 0)
    return std::nullopt;
  found.groups = rank == 3 ? found.op.getType().getDimSize(0) : 1;
  found.format = formatOf(found.op);
  found.k = shape[axis], found.n = shape[other];
  found.strideK = axis == 0 ? shape[1] : 1, found.strideN = axis == 0 ? 1 : shape[1];
  bool wholeBytes = shape[1] * found.format.bits % 8 == 0;
  constexpr int64_t mostZero = 1 << 16; // a difference is exact in f32
  if (found.format.zero > mostZero || found.format.zero < -mostZero)
    return std::nullopt;
  bool wholeWords = found.format.block >= found.k || found.format.block % found.format.perWord() == 0;
  if (found.k == 0 || found.n == 0 || found.groups == 0 || !wholeBytes || !wholeWords || !isWhole(rhs, found))
    return std::nullopt;
  // A scale for each group: they may not share one.
  if (rank == 3 && typeOf(found.op.getScale()).getDimSize(0) != found.groups)
    return std::nullopt;
  std::array<int64_t, 2> strides = stridesOf(found.op.getScale());
  found.blockStrideK = strides[axis], found.blockStrideN = strides[other];
  if (found.format.zeroType && found.format.zeroType.isInteger(8))
    found.zeroRowBytes = cast<RankedTensorType>(found.op.getZeroPoints().getType()).getShape().back();
  return found;
}

bool BlockWeights::findBuffers() {
  auto number = [](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    return argument ? std::optional<unsigned>(argument.getArgNumber()) : std::nullopt;
  };
  auto x = number(op.getInput()), scale = number(op.getScale());
  if (op.getZeroPoints())
    zeros = number(op.getZeroPoints());
  if (!x || !scale || (op.getZeroPoints() && !zeros))
    return false;
  values = *x, scales = *scale;
  return true;
}

bool dmxc::cpu::mayKeepInBlocks(Operation *op) {
  constexpr int64_t leastRow = 256; // angles of a rotation are read by rows, too, and shorter ones
  auto gather = dyn_cast<dmir::GatherOp>(op);
  auto type = typeOf(op->getOperand(gather ? 0 : 1));
  const int64_t rank = type.getRank();
  if (!type.hasStaticShape() || rank < 2)
    return false;
  const int64_t rows = type.getDimSize(rank - 2), columns = type.getDimSize(rank - 1);
  return !IsaLevel::nominal().caches.isNear(rows, columns) &&
         (!gather || (gather.getAxis() == 0 && columns >= leastRow));
}

std::optional<double> dmxc::cpu::errorOfConstant(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  while (Operation *op = value.getDefiningOp()) {
    if (auto rounded = op->getAttrOfType<DictionaryAttr>(dmir::kRoundedAttr))
      return dmir::roundedError(rounded);
    if (!mlir::isa<dmir::TransposeOp, dmir::ReshapeOp, dmir::SliceOp, dmir::RelayoutOp>(op))
      return std::nullopt;
    value = op->getOperand(0);
    argument = dyn_cast<BlockArgument>(value);
  }
  auto region = argument ? dyn_cast<dmir::RegionOp>(argument.getOwner()->getParentOp()) : dmir::RegionOp();
  return region ? errorOfConstant(region.getInputs()[argument.getArgNumber()]) : std::nullopt;
}

bool dmxc::cpu::mayMultiplyBytes(Operation *product) {
  auto weights = sourceOf(product->getOperand(1));
  return weights && elementOf(product->getOperand(0)).isF32() && errorOfConstant(weights.getInput()) &&
         formatOf(weights).bits == 8 && formatOf(weights).isSigned;
}

std::optional<OpFormats> dmxc::cpu::formatsOfBlocks(Operation *op) {
  bool isProduct = mlir::isa<dmir::MatMulOp, dmir::GroupedMatMulOp>(op);
  auto weights = isProduct ? sourceOf(op->getOperand(1)) : dyn_cast<dmir::DequantizeOp>(op);
  auto rows = weights ? weights.getInput().getDefiningOp<dmir::GatherOp>() : dmir::GatherOp();
  if (!weights || isProduct == bool(rows))
    return std::nullopt;
  std::optional<double> error = errorOfConstant(rows ? rows.getData() : weights.getInput());
  if (!error)
    return std::nullopt;
  std::string kept = (formatOf(weights).isSigned ? "s" : "u") + std::to_string(weights.getBits()) + ":" +
                     std::to_string(weights.getBlock());
  OpFormats formats{{kept}, std::string(dtypeName(*dmir::dtypeOf(elementOf(op->getResult(0)))))};
  formats.error = error;
  auto rounding = isProduct ? op->getOperand(0).getDefiningOp<dmir::RoundBlocksOp>() : dmir::RoundBlocksOp();
  if (isProduct)
    formats.operands.insert(formats.operands.begin(),
                            rounding ? "s8:" + std::to_string(rounding.getBlock()) : std::string("f32"));
  return formats;
}

//===----------------------------------------------------------------------===//
// Packed forms
//===----------------------------------------------------------------------===//

int64_t dmxc::cpu::blocks16Bytes(const GemmBlocks &format, int64_t k, int64_t n) {
  return panel16Bytes(ceilDivInt(k, format.perWord()), n, 4);
}

NamedAttrList dmxc::cpu::blockForms(const BlockWeights &weights, MLIRContext *context) {
  Builder b(context);
  NamedAttrList forms;
  auto add = [&](unsigned buffer, StringRef name, int64_t k, int64_t strideK, int64_t strideN, int64_t size,
                 Value operand, int64_t bits = 0) {
    NamedAttrList form;
    form.set("form", b.getStringAttr(name));
    auto number = [&](StringRef key, int64_t value) { form.set(key, b.getI64IntegerAttr(value)); };
    number("k", k), number("n", weights.n);
    number("stride_k", strideK), number("stride_n", strideN);
    number("size", size * weights.groups);
    if (weights.grouped()) {
      number("count", weights.groups);
      number("stride", cast<RankedTensorType>(operand.getType()).getNumElements() / weights.groups);
    }
    if (bits)
      number("bits", bits);
    else
      number("offset", 0);
    forms.set(std::to_string(buffer), form.getDictionary(context));
  };
  const GemmBlocks &format = weights.format;
  add(weights.values, "blocks16", weights.k, weights.strideK, weights.strideN,
      blocks16Bytes(format, weights.k, weights.n), weights.op.getInput(), format.bits);
  int64_t blocks = weights.blocks(), scaleBytes = format.scaleType.getIntOrFloatBitWidth() / 8;
  auto addPanels = [&](unsigned buffer, Value operand) {
    add(buffer, "panel16", blocks, weights.blockStrideK, weights.blockStrideN,
        panel16Bytes(blocks, weights.n, scaleBytes), operand);
  };
  addPanels(weights.scales, weights.op.getScale());
  if (!weights.zeros)
    return forms;
  if (format.zeroType == format.scaleType)
    addPanels(*weights.zeros, weights.op.getZeroPoints());
  else // rows of integers begin with a byte: strides count those, and elements along the last axis
    add(*weights.zeros, format.isSigned ? "sbytes16" : "bytes16", blocks,
        weights.alongRows() ? weights.blockStrideK : weights.zeroStride(),
        weights.alongRows() ? weights.zeroStride() : weights.blockStrideN, panel16Bytes(blocks, weights.n, 1),
        weights.op.getZeroPoints(), format.bits);
  return forms;
}

bool dmxc::cpu::isBlockForm(StringRef form) { return form == "blocks16" || form == "bytes16" || form == "sbytes16"; }

namespace {

/// A matrix of integers of few bits: element (row, col) is the (row*strideK + col*strideN)-th, and the bits of a form.
struct PackedMatrix {
  const std::byte *data;
  int64_t bits, k, n, strideK, strideN;

  PackedMatrix(DictionaryAttr form, const std::byte *data) : data(data) {
    auto number = [&](StringRef name) { return form.getAs<IntegerAttr>(name).getInt(); };
    bits = number("bits"), k = number("k"), n = number("n");
    strideK = number("stride_k"), strideN = number("stride_n");
  }
  uint32_t at(int64_t row, int64_t col) const {
    int64_t bit = (row * strideK + col * strideN) * bits;
    return uint32_t(data[bit / 8]) >> bit % 8 & ((1u << bits) - 1);
  }
};

void packWords(const PackedMatrix &m, std::span<std::byte> out) {
  const int64_t perWord = 32 / m.bits, words = ceilDivInt(m.k, perWord);
  for (int64_t n0 = 0; n0 < m.n; n0 += 16)
    for (int64_t col = n0; col < std::min(m.n, n0 + 16); ++col) {
      // Words of a column that lie together are copied as they are.
      bool together = m.strideK == 1 && col * m.strideN * m.bits % 8 == 0;
      for (int64_t word = 0; word < words; ++word) {
        uint32_t value = 0;
        int64_t row = word * perWord, end = std::min(m.k, row + perWord);
        if (together && end - row == perWord)
          std::memcpy(&value, m.data + (row + col * m.strideN) * m.bits / 8, 4);
        else
          for (int64_t i = row; i < end; ++i)
            value |= m.at(i, col) << (i - row) * m.bits;
        std::memcpy(out.data() + ((n0 / 16 * words + word) * 16 + col - n0) * 4, &value, 4);
      }
    }
}

} // namespace

static void packOne(const PackedMatrix &matrix, StringRef name, std::span<std::byte> out) {
  if (name == "blocks16")
    return packWords(matrix, out);
  const int unused = name == "sbytes16" ? 8 - matrix.bits : 0;
  for (int64_t col = 0; col < matrix.n; ++col)
    for (int64_t row = 0; row < matrix.k; ++row) {
      auto shifted = static_cast<int8_t>(matrix.at(row, col) << unused);
      out[(col / 16 * matrix.k + row) * 16 + col % 16] = std::byte(shifted >> unused);
    }
}

void dmxc::cpu::packBlockForm(DictionaryAttr form, std::span<const std::byte> constant, std::span<std::byte> out) {
  std::memset(out.data(), 0, out.size());
  auto number = [&](StringRef name, int64_t otherwise) {
    auto value = form.getAs<IntegerAttr>(name);
    return value ? value.getInt() : otherwise;
  };
  const int64_t count = number("count", 1), stride = number("stride", 0); // of elements that are bytes
  for (int64_t i = 0; i < count; ++i)
    packOne(PackedMatrix(form, constant.data() + i * stride), form.getAs<StringAttr>("form").getValue(),
            out.subspan(out.size() / count * i, out.size() / count));
}
