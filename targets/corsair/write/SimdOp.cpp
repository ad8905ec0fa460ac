//===- SimdOp.cpp - one EXEC_SIMD over strided tensors --------------------===//

#include "SimdOp.h"

using namespace dmxc::corsair;
using namespace dmxc;
using llvm::ArrayRef;
using llvm::SmallVector;

SimdOperand SimdOp::operand(const DeviceTensor &tensor, ArrayRef<int64_t> dims) {
  SimdOperand operand{tensor.kind, tensor.address, SmallVector<int64_t>(dims.size(), 0)};
  size_t missing = dims.size() - tensor.rank();
  for (size_t i = 0; i < tensor.rank(); ++i)
    if (tensor.shape[i] != 1)
      operand.strides[i + missing] = tensor.strides[i];
  return operand;
}

void SimdOp::countFromRow(bool turned) {
  causal = true;
  for (size_t dim = dims.size() - 2; turned && dim < dims.size(); ++dim)
    for (SimdOperand *operand : {&result, &sources[0]}) {
      operand->address = operand->address.plus((dims[dim] - 1) * operand->strides[dim]);
      operand->strides[dim] = -operand->strides[dim];
    }
}

static SmallVector<SimdOperand *> operandsOf(SimdOp &op) {
  SmallVector<SimdOperand *> all{&op.result};
  for (SimdOperand &source : op.sources)
    all.push_back(&source);
  return all;
}

void SimdOp::limitColumns(int64_t columns, const Address &times) {
  count = times;
  dims = {dims[1] / columns, dims[0], columns};
  for (SimdOperand *operand : operandsOf(*this))
    operand->strides.insert(operand->strides.begin(), columns * operand->strides[1]);
}

static void eraseDim(SimdOp &op, size_t dim) {
  if (dim >= op.dims.size() - op.inner)
    --op.inner;
  op.dims.erase(op.dims.begin() + dim);
  for (SimdOperand *operand : operandsOf(op))
    operand->strides.erase(operand->strides.begin() + dim);
}

/// Drops dims of one element and joins neighbours that every operand walks as one. Dims of rows stay apart from the
/// others, and a row keeps one dim.
static void joinDims(SimdOp &op) {
  const size_t first = op.count ? 1 : 0;
  for (size_t i = op.dims.size() - (op.causal ? 2 : 0); i-- > first;) {
    bool isRow = i >= op.dims.size() - op.inner;
    if (op.dims[i] == 1 && op.dims.size() > 1 && (!isRow || op.inner > 1))
      eraseDim(op, i);
  }
  for (size_t i = op.dims.size() - (op.causal ? 2 : 0); i-- > first + 1;) {
    if (op.inner && i == op.dims.size() - op.inner)
      continue;
    bool joins = llvm::all_of(operandsOf(op), [&](SimdOperand *operand) {
      return operand->strides[i - 1] == operand->strides[i] * op.dims[i];
    });
    if (!joins)
      continue;
    op.dims[i] *= op.dims[i - 1];
    eraseDim(op, i - 1);
  }
}

/// The dim that the slices share: the largest that is no part of a row; -1 when there is none.
static int sharedDim(const SimdOp &op) {
  int best = -1;
  for (size_t i = op.count ? 1 : 0; i + op.inner < op.dims.size(); ++i)
    if (op.dims[i] > 1 && (best < 0 || op.dims[i] > op.dims[best]))
      best = static_cast<int>(i);
  return best;
}

mlir::DictionaryAttr dmxc::corsair::windowClause(mlir::Builder &builder, const hw::Window &window) {
  const std::pair<llvm::StringRef, int64_t> all[] = {
      {"h", window.h},   {"w", window.w},   {"kh", window.kh}, {"kw", window.kw}, {"sh", window.sh}, {"sw", window.sw},
      {"ph", window.ph}, {"pw", window.pw}, {"dh", window.dh}, {"dw", window.dw}, {"ow", window.ow}};
  mlir::NamedAttrList list;
  for (auto [name, value] : all)
    list.set(name, builder.getI64IntegerAttr(value));
  return list.getDictionary(builder.getContext());
}

/// `split`: the number of the dim that the slices of a mask share, from 1 on; 0: none.
static void emitOne(const QueueWriter &queue, const SimdOp &op, int split, int mask) {
  static constexpr const char *names[][2] = {
      {"to_kind", "to_strides"}, {"a_kind", "a_strides"}, {"b_kind", "b_strides"}, {"c_kind", "c_strides"}};
  TaskWriter simd = queue.task("corsair.simd");
  simd.text("function", hw::nameOf(op.function)).array("dims", op.dims);
  queue.writes(simd, op.result.address);
  for (const SimdOperand &source : op.sources)
    queue.reads(simd, source.address);
  for (size_t i = 0; i <= op.sources.size(); ++i) {
    const SimdOperand &operand = i ? op.sources[i - 1] : op.result;
    simd.text(names[i][0], hw::nameOf(operand.kind)).array(names[i][1], operand.strides);
  }
  if (op.inner)
    simd.integer("inner", op.inner);
  simd.integer("split", split).integer("slices", mask);
  mlir::Builder &builder = queue.builder();
  if (op.imm0 != 0)
    simd.set("imm0", builder.getF32FloatAttr(op.imm0));
  if (op.imm1 != 0)
    simd.set("imm1", builder.getF32FloatAttr(op.imm1));
  if (op.index.offset || !op.index.terms.empty())
    queue.sum(simd, "index", op.index);
  if (op.causal)
    simd.integer("causal", static_cast<int64_t>(op.dims.size()) - 1);
  if (op.count)
    queue.sum(simd, "count", *op.count);
  if (op.window)
    simd.set("window", windowClause(builder, *op.window));
  if (op.countPadding)
    simd.set("count_pad", builder.getUnitAttr());
  simd.create();
}

void dmxc::corsair::emitShared(const QueueWriter &queue, const SimdOp &op, int mask) {
  emitOne(queue, op, op.dims.front() > 1 ? 1 : 0, mask);
}

bool dmxc::corsair::emitSimd(Program &program, SimdOp op, int sliceCount) {
  if (llvm::is_contained(op.dims, 0))
    return true;
  if (op.dims.empty()) { // a scalar
    op.dims = {1};
    for (SimdOperand *operand : operandsOf(op))
      operand->strides = {0};
  }
  if (!op.window)
    joinDims(op);
  if (op.inner > kSimdDims || (op.dims.size() > kSimdDims && op.window))
    return false;
  while (op.count && op.dims.size() < kSimdDims) { // it is that of the instruction's first dim
    op.dims.insert(op.dims.begin() + 1, 1);
    for (SimdOperand *operand : operandsOf(op))
      operand->strides.insert(operand->strides.begin() + 1, 0);
  }
  if (op.dims.size() <= kSimdDims) {
    const int shared = sharedDim(op);
    emitOne(program.on(Queue::Vector), op, shared + 1, shared < 0 ? 1 : (1 << sliceCount) - 1);
    return true;
  }
  bool good = true;
  program.loop(op.dims.front(), [&](int depth) {
    SimdOp rest = op;
    for (SimdOperand *operand : operandsOf(rest))
      operand->address = operand->address.plusLoop(depth, operand->strides.front());
    eraseDim(rest, 0);
    good = emitSimd(program, std::move(rest), sliceCount);
  });
  return good;
}
