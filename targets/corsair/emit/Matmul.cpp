//===- Matmul.cpp - batches of products, by constants and by values -------===//

#include "KernelLowering.h"
#include "MatmulView.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

/// How often a slice has a product of a batch: the last dim may be shared by the slices.
static int64_t turnsOf(const MatmulPlan &plan, ArrayRef<BatchDim> batch) {
  int64_t turns = 1;
  for (const BatchDim &dim : batch)
    turns *= plan.sharing == Sharing::Batch && &dim == &batch.back() ? (dim.extent + plan.slices - 1) / plan.slices
                                                                     : dim.extent;
  return turns;
}

/// Runs `emit` for every product of a batch, in loops; where each slice has a product of its own, for as many at once.
/// `stBytes`: B's tiles of one product in a slice; 0 when all products share them.
static void forEachProduct(Program &program, MatmulPlan plan, MatmulOperands at, ArrayRef<BatchDim> batch,
                           int64_t stBytes, llvm::function_ref<void(const MatmulPlan &, const MatmulOperands &)> emit) {
  if (batch.empty())
    return emit(plan, at);
  const BatchDim &dim = batch.front();
  const bool spread = plan.sharing == Sharing::Batch && batch.size() == 1;
  const int64_t atOnce = spread ? plan.slices : 1, turns = dim.extent / atOnce, rest = dim.extent % atOnce;
  const int64_t inner = stBytes * turnsOf(plan, batch.drop_front()); // tiles of the dims that follow
  if (spread)
    at.aSlice = dim.a, at.bSlice = dim.b, at.outSlice = dim.out;
  program.loop(turns, [&](int depth) {
    MatmulOperands body = at;
    body.a = at.a.plusLoop(depth, atOnce * dim.a);
    body.b = at.b.plusLoop(depth, atOnce * dim.b);
    body.out = at.out.plusLoop(depth, atOnce * dim.out);
    body.st = at.st.plusLoop(depth, inner);
    forEachProduct(program, plan, body, batch.drop_front(), stBytes, emit);
  });
  if (!rest)
    return;
  plan.slices = static_cast<int>(rest);
  at.a = at.a.plus(turns * atOnce * dim.a);
  at.b = at.b.plus(turns * atOnce * dim.b);
  at.out = at.out.plus(turns * atOnce * dim.out);
  at.st = at.st.plus(turns * inner);
  emit(plan, at);
}

void KernelWriter::multiply(const MatmulPlan &plan, const MatmulOperands &operands) {
  const ArrayUnits units{buffers.unit(hw::Memory::IB), buffers.unit(hw::Memory::WB), buffers.unit(hw::Memory::OB)};
  emitProduct(*main, units, plan, operands);
  // The array controller loads WB itself when it streams; what the load queue brings there later must wait for that.
  if (!plan.isStationary())
    main->on(Queue::Array).uses(units.wb, true);
  else if (streamed)
    main->on(Queue::Load).uses(units.wb, true);
  streamed = !plan.isStationary();
}

void KernelWriter::multiplyAll(const MatmulPlan &plan, const MatmulShape &shape) {
  main->taskWithAhead(node);
  forEachProduct(*main, plan, shape.operands, shape.batch, 0,
                 [&](const MatmulPlan &p, const MatmulOperands &at) { multiply(p, at); });
}

void KernelWriter::multiplyValues(const MatmulPlan &plan, MatmulShape shape) {
  llvm::stable_sort(shape.batch, [](const BatchDim &x, const BatchDim &y) { return x.extent < y.extent; });
  const int64_t bytes = turnsOf(plan, shape.batch) * plan.bytesPerSlice();
  shape.operands.st = {buffers.add(hw::Memory::ST, node + ".tiles", bytes), 0, {}};
  main->task(node);
  forEachProduct(*main, plan, shape.operands, shape.batch, plan.bytesPerSlice(),
                 [&](const MatmulPlan &p, const MatmulOperands &at) { emitPack(*main, p, at); });
  main->taskWithAhead(node);
  forEachProduct(*main, plan, shape.operands, shape.batch, plan.bytesPerSlice(),
                 [&](const MatmulPlan &p, const MatmulOperands &at) { multiply(p, at); });
}

Address KernelLowering::biasOf(Operation *product) {
  if (Operation *add = deal.biases.lookup(product))
    for (Value operand : add->getOperands())
      if (operand.getDefiningOp() != product)
        return values[operand].address.plusQuad(4 * deal.columns.lookup(product));
  return {};
}

/// Each quad multiplies by its rows of the weights; all send their sums to all, and everybody adds them up.
void KernelLowering::multiplyAlongK(Operation *op, int64_t depth) {
  auto matmul = cast<dmir::MatMulOp>(op);
  const DeviceTensor result = values[matmul.getResult()], lhs = values[matmul.getLhs()];
  const DeviceTensor whole = writtenOut(lhs, lhs.rank() - 1);
  const int64_t elements = result.elements();
  DeviceTensor sums{hw::ElemKind::F32, {quads, elements}, {elements * 4, 4}, {}};
  sums.address.buffer = buffers.add(hw::Memory::GM, node + ".sums", quads * elements * 4);
  sums.split = {0, 1};
  DeviceTensor part = result;
  part.kind = hw::ElemKind::F32;
  for (int64_t &stride : part.strides)
    stride *= 2;
  part.address = sums.address.plusQuad(elements * 4);
  MatmulShape shape(whole.local({static_cast<int>(whole.rank()) - 1, depth}), part);
  MatmulPlan plan = planOf(op, deal);
  plan.m = shape.m;
  shape.operands.st = residentTiles(matmul.getRhs());
  shape.operands.outBytes = 4;
  multiplyAll(plan, shape);
  exchange(&sums);
  for (int quad = 1; quad < quads; ++quad) {
    SimdOp add{hw::SimdFunction::Add, {elements}};
    SimdOperand first{hw::ElemKind::F32, sums.address, {4}};
    add.sources = {first, {hw::ElemKind::F32, sums.address.plus(quad * elements * 4), {4}}};
    add.result = quad + 1 < quads ? first : SimdOperand{result.kind, result.address, {2}};
    simd(std::move(add));
  }
}

Status KernelLowering::lowerMatmul(Operation *op) {
  auto matmul = cast<dmir::MatMulOp>(op);
  const Split split = deal.at(matmul.getResult());
  DeviceTensor a = values[matmul.getLhs()];
  const bool packed = tiles.count(matmul.getRhs());
  DeviceTensor out = allocate(matmul.getResult());
  values[matmul.getResult()] = out;
  if (const int64_t depth = deal.depth.lookup(op)) {
    multiplyAlongK(op, depth);
    return Status::ok();
  }
  const int rank = static_cast<int>(out.rank());
  auto part = [&](const DeviceTensor &operand, int lastDim) { // by batch dims, and A by rows
    Split own = split;
    own.dim -= rank - static_cast<int>(operand.rank());
    return split && split.dim <= lastDim && own.dim >= 0 && operand.shape[own.dim] != 1 ? operand.local(own) : operand;
  };
  if (a.kind == hw::ElemKind::Bfp16R && split && split.dim == 0) { // each quad's rows begin at a tile
    a.address = a.address.plusQuad((split.part + 63) / 64 * 64 * a.strides[0]);
    a.shape[0] = split.part;
  } else {
    a = part(writtenOut(a, a.rank() - 1), rank - 2);
  }
  out = out.local(split);
  if (packed) {
    // Packed for the rows of one product, whatever the batch.
    MatmulShape shape(a, out);
    MatmulPlan plan = planOf(op, deal);
    plan.m = shape.m;
    shape.operands.st = residentTiles(matmul.getRhs());
    shape.operands.bias = biasOf(op);
    multiplyAll(plan, shape);
    return Status::ok();
  }
  const DeviceTensor b = values[matmul.getRhs()];
  MatmulShape shape(a, part(writtenOut(b, b.rank() - 2), rank - 3), out, isBatched(matmul, split));
  MatmulPlan plan = planOf(op, deal);
  plan.m = shape.m;
  multiplyValues(plan, std::move(shape));
  return Status::ok();
}
