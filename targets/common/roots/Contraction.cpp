//===- Contraction.cpp - matmul and conv as products of matrices --------------===//

#include "Contraction.h"

#include "dmxc/Dialect/DMIR/Dims.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

Contraction Contraction::of(Operation *op) {
  if (auto conv = dyn_cast<dmir::ConvOp>(op))
    return Contraction(conv);
  return Contraction(cast<dmir::MatMulOp>(op));
}

Contraction::Contraction(dmir::MatMulOp matmul, bool throughCasts)
    : Contraction(matmul, stridedView(matmul.getLhs(), {}, throughCasts),
                  stridedView(matmul.getRhs(), {}, throughCasts)) {}

Contraction::Contraction(dmir::MatMulOp matmul, std::optional<StridedView> left, std::optional<StridedView> right)
    : op(matmul), element(elementOf(matmul.getResult())), lhsElement(elementOf(matmul.getLhs())),
      rhsElement(elementOf(matmul.getRhs())) {
  SmallVector<Dim> result = dmir::dimsOf(matmul.getResult());
  size_t rank = result.size();
  m = result[rank - 2];
  n = result[rank - 1];
  // Both operands have k, which a run checks: constant weights tell it where an exporter left the other one open.
  Dim inner = dmir::dimsOf(matmul.getRhs())[matmul.getRhs().getType().getRank() - 2];
  k = inner.isStatic() ? inner : dmir::dimsOf(matmul.getLhs()).back();
  batchDims.assign(result.begin(), result.end() - 2);
  batch = dmir::product(batchDims);
  place(std::move(left), std::move(right));
}

Contraction::Contraction(dmir::ConvOp conv)
    : op(conv), element(elementOf(conv.getResult())), lhsElement(elementOf(conv.getWeights())),
      rhsElement(elementOf(conv.getInput())) {
  SmallVector<Dim> result = dmir::dimsOf(conv.getResult()), weights = dmir::dimsOf(conv.getWeights());
  auto groups = static_cast<int64_t>(conv.getGroups());
  m = Dim::floorDiv(weights[0].isStatic() ? weights[0] : result[1], groups);
  n = dmir::product(ArrayRef(result).drop_front(2));
  k = dmir::product(ArrayRef(weights).drop_front());
  batchDims.push_back(result[0]);
  if (groups > 1)
    batchDims.push_back(groups);
  batch = dmir::product(batchDims);
  place(stridedView(conv.getWeights()), stridedView(conv.getInput()));
}

Contraction Contraction::ofWhole(Operation *op) {
  Contraction whole = of(op);
  auto conv = dyn_cast<dmir::ConvOp>(op);
  Value left = conv ? conv.getWeights() : op->getOperand(0), right = conv ? conv.getInput() : op->getOperand(1);
  whole.place(denseView(dmir::dimsOf(left)), denseView(dmir::dimsOf(right)));
  return whole;
}

void Contraction::place(std::optional<StridedView> left, std::optional<StridedView> right) {
  lhs.reset();
  rhs = std::move(right);
  windows.reset();
  unclear = false;
  if (auto conv = dyn_cast<dmir::ConvOp>(op)) {
    if (left)
      placeWeights(conv, *left);
    placeImage(conv);
    return;
  }
  lhs = std::move(left);
  if (lhs) {
    lhsBatch = batchStrides(*lhs, op->getOperand(0));
    lhsRow = lhs->strides[lhs->strides.size() - 2];
  }
  if (rhs)
    rhsBatch = batchStrides(*rhs, op->getOperand(1));
}

Contraction::Contraction(dmir::GroupedMatMulOp grouped)
    : op(grouped), lhs(stridedView(grouped.getLhs())), rhs(stridedView(grouped.getRhs())),
      element(elementOf(grouped.getResult())), lhsElement(elementOf(grouped.getLhs())),
      rhsElement(elementOf(grouped.getRhs())) {
  SmallVector<Dim> left = dmir::dimsOf(grouped.getLhs()), right = dmir::dimsOf(grouped.getRhs());
  batch = right[0], m = left[0], n = right[2];
  k = right[1].isStatic() ? right[1] : left[1];
  batchDims = {batch};
  lhsBatch = {0};
  if (lhs)
    lhsRow = lhs->strides[0];
  if (rhs)
    rhsBatch = {rhs->strides[0]};
}

/// Weights whose terms are not one after the other are no matrix.
void Contraction::placeWeights(dmir::ConvOp conv, const StridedView &view) {
  SmallVector<Dim> shape = dmir::dimsOf(conv.getWeights());
  Dim apart = 1;
  for (size_t axis = shape.size(); --axis > 0; apart *= shape[axis])
    if (!shape[axis].is(1) && !(view.strides[axis] == apart))
      return;
  lhs = view;
  lhsRow = view.strides[0];
  lhsBatch = {0};
  if (batchDims.size() > 1)
    lhsBatch.push_back(lhsRow * m);
}

void Contraction::placeImage(dmir::ConvOp conv) {
  windows = Windows{windowsOf(conv), dmir::dimOf(conv.getWeights(), 1), 0};
  if (!rhs)
    return;
  windows->channelsApart = rhs->strides[1];
  for (auto [i, axis] : llvm::enumerate(windows->axes))
    axis.apart = rhs->strides[i + 2];
  rhsBatch = {rhs->strides[0]};
  if (batchDims.size() > 1)
    rhsBatch.push_back(windows->channelsApart * windows->channels);
}

bool Windows::areImage() const {
  Dim expected = axes.back().apart;
  for (const Axis &axis : llvm::reverse(axes)) {
    if (!axis.isPointwise())
      return false;
    if (!axis.in.is(1) && !(axis.apart == expected))
      return false;
    expected *= axis.in;
  }
  return true;
}

SmallVector<Dim> Contraction::batchStrides(const StridedView &view, Value operand) {
  SmallVector<Dim> strides(batchDims.size(), 0), shape = dmir::dimsOf(operand);
  size_t missing = batchDims.size() + 2 - shape.size();
  for (size_t axis = 0; axis + 2 < shape.size(); ++axis) {
    unclear |= !shape[axis].isStatic() && !(shape[axis] == batchDims[axis + missing]);
    if (!shape[axis].is(1))
      strides[axis + missing] = view.strides[axis];
  }
  return strides;
}

bool Contraction::joinsRows() const {
  if (batch.is(0) || m.is(0) || llvm::any_of(rhsBatch, [](Dim s) { return !s.is(0); }))
    return false;
  Dim stride = lhsRow, extent = m;
  for (size_t axis = batchDims.size(); axis-- > 0;) {
    if (batchDims[axis].is(1))
      continue;
    if (extent.is(1))
      stride = lhsBatch[axis];
    else if (!(lhsBatch[axis] == stride * extent))
      return false;
    extent *= batchDims[axis];
  }
  return true;
}

void Contraction::joinRows() {
  joined = joinsRows();
  if (!joined)
    return;
  // Rows of one element may have any stride.
  if (m.is(1))
    for (size_t axis = batchDims.size(); axis-- > 0;)
      if (!batchDims[axis].is(1)) {
        lhsRow = lhsBatch[axis];
        break;
      }
  m *= batch;
  batch = 1;
}

Indices Contraction::rowIndex(ElementExpr &e, std::optional<unsigned> rowAxis, Value item, Value row) const {
  Indices index(batchDims.size() + 1, e.at(0));
  if (windows) { // the outputs of a group are one after the other
    auto [image, group] = batchDims.size() > 1 ? e.divRem(e.at(item), batchDims[1]) : std::pair(e.at(item), e.at(0));
    KernelBuilder &b = e.builder();
    return {image, e.at(b.add(b.mulC(group.base, m), row))};
  }
  if (joined && rowAxis) {
    index[*rowAxis] = e.at(row);
    return index;
  }
  Index rest = e.at(item);
  if (joined) {
    Dim rows = dmir::dimOf(result(), batchDims.size());
    std::tie(rest, index.back()) = e.divRem(e.at(row), rows.is(0) ? Dim(1) : rows);
  } else {
    index.back() = e.at(row);
  }
  for (size_t axis = batchDims.size(); axis-- > 0;) {
    if (axis == 0)
      index[axis] = rest;
    else
      std::tie(rest, index[axis]) = e.divRem(rest, batchDims[axis].is(0) ? Dim(1) : batchDims[axis]);
  }
  return index;
}

Indices Contraction::withColumn(ElementExpr &e, ArrayRef<Index> row, Index column) const {
  Indices index(row.begin(), row.end());
  if (!windows) {
    index.push_back(column);
    return index;
  }
  index.resize(row.size() + windows->axes.size(), e.at(0));
  Index rest = column;
  for (size_t axis = windows->axes.size(); axis-- > 1;) {
    Dim out = windows->axes[axis].out;
    std::tie(rest, index[row.size() + axis]) = e.divRem(rest, out.isStatic() ? out : Dim::max(out, 1));
  }
  index[row.size()] = rest;
  return index;
}

int64_t Contraction::outputAxis(Operation *product) {
  return isa<dmir::ConvOp>(product) ? 1 : cast<RankedTensorType>(product->getResult(0).getType()).getRank() - 1;
}

Spread dmxc::kernels::spreadOver(Operation *product, Value operand) {
  SmallVector<Dim> whole = dmir::dimsOf(product->getResult(0)), own = dmir::dimsOf(operand);
  if (own.size() > whole.size())
    return Spread::Otherwise;
  size_t missing = whole.size() - own.size();
  auto outputs = static_cast<size_t>(Contraction::outputAxis(product));
  bool isOne = true, isOfOutputs = outputs >= missing;
  for (size_t axis = 0; axis < own.size(); ++axis) {
    bool same = axis + missing == outputs && own[axis] == whole[axis + missing];
    isOne = isOne && own[axis].is(1);
    isOfOutputs = isOfOutputs && (same || (axis + missing != outputs && own[axis].is(1)));
  }
  return isOne ? Spread::One : isOfOutputs ? Spread::Outputs : Spread::Otherwise;
}

void Chain::add(Operation *op, Value value) {
  bool isFirst = op->getOperand(0) == value;
  followers.push_back({op, value, op->getNumOperands() == 2 ? op->getOperand(isFirst ? 1 : 0) : Value()});
}

std::optional<Chain> dmxc::kernels::chainTo(Value value, llvm::function_ref<bool(const Chain &)> computes) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (Contraction::is(op))
    return Chain{op, {}};
  for (Value before : op->getOperands()) {
    if (!before.hasOneUse() && !op->use_empty())
      continue;
    std::optional<Chain> chain = chainTo(before, computes);
    if (!chain)
      continue;
    chain->add(op, before);
    if (computes(*chain))
      return chain;
  }
  return std::nullopt;
}
