//===- Matmul.cpp - batches of products, by constants and by values -------===//

#include "KernelWriter.h"
#include "Operands.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

static int64_t batchStride(const DeviceTensor &tensor, size_t dim, size_t rank) {
  size_t missing = rank - tensor.rank();
  return dim < missing || tensor.shape[dim - missing] == 1 ? 0 : tensor.strides[dim - missing];
}

PlacedProduct::PlacedProduct(const DeviceTensor &a, const DeviceTensor *b, const DeviceTensor &out,
                             ArrayRef<DeviceTensor> beside)
    : product(Spread::ofSizes(out.shape[out.rank() - 2], out.shape.back(), a.shape.back())) {
  operands.a = a.address;
  operands.aRow = a.strides[a.rank() - 2];
  operands.aColumn = a.strides.back();
  operands.aTiles = a.kind == hw::ElemKind::Bfp16R;
  operands.aKind = a.kind;
  if (b) {
    operands.b = b->address;
    operands.bRow = b->strides[b->rank() - 2];
    operands.bColumn = b->strides.back();
  }
  operands.out = out.address;
  operands.outRow = out.strides[out.rank() - 2];
  operands.outBytes = out.elementSize();
  for (const DeviceTensor &matrix : beside)
    operands.beside.push_back({matrix.address, matrix.strides[matrix.rank() - 2], matrix.strides.back()});
  for (size_t i = 0; i + 2 < out.rank(); ++i) {
    if (out.shape[i] == 1)
      continue;
    batch.push_back(
        {out.shape[i], batchStride(a, i, out.rank()), b ? batchStride(*b, i, out.rank()) : 0, out.strides[i]});
    for (const DeviceTensor &matrix : beside)
      batch.back().beside.push_back(batchStride(matrix, i, out.rank()));
  }
  for (const BatchDim &dim : batch)
    product.batch = std::max(product.batch, dim.extent);
}

void PlacedProduct::joinBatch() {
  ProductRows rows{product.m, operands.aRow, operands.outRow};
  for (const Beside &matrix : operands.beside)
    rows.beside.push_back(matrix.row);
  joinRows(rows, batch, product);
  operands.aRow = rows.a, operands.outRow = rows.out;
  for (auto [matrix, row] : llvm::zip(operands.beside, rows.beside))
    matrix.row = row;
}

/// How many matrices of B a slice has of a batch: one along dims where B stays; the last dim may be shared by the
/// slices.
static int64_t matricesOf(const Spread &plan, ArrayRef<BatchDim> batch) {
  int64_t matrices = 1;
  for (const BatchDim &dim : batch)
    if (dim.b != 0)
      matrices *= plan.sharing == Sharing::Batch && &dim == &batch.back() ? (dim.extent + plan.slices - 1) / plan.slices
                                                                          : dim.extent;
  return matrices;
}

/// The batch by which B is packed: once along dims where it stays, in each slice that the last is shared by.
static SmallVector<BatchDim> packedBatch(const Spread &plan, SmallVector<BatchDim> batch) {
  for (BatchDim &dim : batch)
    if (dim.b == 0)
      dim.extent =
          plan.sharing == Sharing::Batch && &dim == &batch.back() ? std::min<int64_t>(dim.extent, plan.slices) : 1;
  return batch;
}

/// Runs `emit` for every product of a batch, in loops; where each slice has a product of its own, for as many at once.
/// `stBytes`: B's tiles of one product in a slice; 0 when all products share them.
static void forEachProduct(Program &program, Spread plan, MatmulOperands at, ArrayRef<BatchDim> batch, int64_t stBytes,
                           llvm::function_ref<void(const Spread &, const MatmulOperands &)> emit) {
  if (batch.empty())
    return emit(plan, at);
  const BatchDim &dim = batch.front();
  const bool spread = plan.sharing == Sharing::Batch && batch.size() == 1;
  const int64_t atOnce = spread ? plan.slices : 1, turns = dim.extent / atOnce, rest = dim.extent % atOnce;
  const int64_t inner = dim.b ? stBytes * matricesOf(plan, batch.drop_front()) : 0; // tiles of the dims that follow
  if (spread)
    at.aSlice = dim.a, at.bSlice = dim.b, at.outSlice = dim.out;
  for (auto [matrix, step] : llvm::zip(at.beside, dim.beside))
    matrix.slice = spread ? step : 0;
  program.loop(turns, [&](int depth) {
    MatmulOperands body = at;
    body.a = at.a.plusLoop(depth, atOnce * dim.a);
    body.b = at.b.plusLoop(depth, atOnce * dim.b);
    body.out = at.out.plusLoop(depth, atOnce * dim.out);
    body.st = at.st.plusLoop(depth, inner);
    for (auto [matrix, step] : llvm::zip(body.beside, dim.beside))
      matrix.at = matrix.at.plusLoop(depth, atOnce * step);
    forEachProduct(program, plan, body, batch.drop_front(), stBytes, emit);
  });
  if (!rest)
    return;
  plan.slices = static_cast<int>(rest);
  at.a = at.a.plus(turns * atOnce * dim.a);
  at.b = at.b.plus(turns * atOnce * dim.b);
  at.out = at.out.plus(turns * atOnce * dim.out);
  at.st = at.st.plus(turns * inner);
  for (auto [matrix, step] : llvm::zip(at.beside, dim.beside))
    matrix.at = matrix.at.plus(turns * atOnce * step);
  emit(plan, at);
}

ArrayUnits KernelWriter::arrayUnits() {
  return {buffers.unit(hw::Memory::IB), buffers.unit(hw::Memory::WB), buffers.unit(hw::Memory::OB),
          buffers.unit(hw::Memory::SIMD)};
}

void KernelWriter::multiply(const Spread &plan, const TileOrder &order, const MatmulOperands &operands) {
  const ArrayUnits units = arrayUnits();
  const bool stays = plan.kept.empty() && order.isStationary(plan.kChunks);
  emitTiles(*main, units, plan, order, operands);
  if (!operands.epilogues.empty())
    main->name(Queue::Vector, operands.epilogues.front().node);
  // The array controller loads WB itself when it streams; what the load queue brings there later must wait for that.
  if (!stays)
    main->on(Queue::Array).uses(units.wb, true);
  else if (streamed)
    main->on(Queue::Load).uses(units.wb, true);
  streamed = !stays;
}

Address KernelWriter::pack(const Spread &plan, MatmulOperands operands, ArrayRef<BatchDim> batch) {
  const int64_t bytes = matricesOf(plan, batch) * plan.bytesPerSlice();
  operands.st = {buffers.add(hw::Memory::ST, node + ".tiles", bytes), 0, {}};
  main->task(node);
  forEachProduct(*main, plan, operands, packedBatch(plan, SmallVector<BatchDim>(batch)), plan.bytesPerSlice(),
                 [&](const Spread &p, const MatmulOperands &at) { emitPack(*main, p, at); });
  return operands.st;
}

std::pair<Address, SmallVector<int64_t>> KernelWriter::packAll(const Spread &plan, const DeviceTensor &matrices) {
  const size_t rank = matrices.rank();
  MatmulOperands operands;
  operands.b = matrices.address, operands.bRow = matrices.strides[rank - 2], operands.bColumn = matrices.strides.back();
  SmallVector<BatchDim> batch;
  for (size_t dim = 0; dim + 2 < rank; ++dim)
    batch.push_back({matrices.shape[dim], 0, matrices.strides[dim], 0});
  SmallVector<int64_t> steps;
  for (size_t dim = 0; dim < batch.size(); ++dim)
    steps.push_back(batch[dim].b ? matricesOf(plan, ArrayRef(batch).drop_front(dim + 1)) * plan.bytesPerSlice() : 0);
  return {pack(plan, operands, batch), steps};
}

void KernelWriter::multiplyAll(const PlacedProduct &all, const TileOrder &order, int64_t stBytes) {
  main->taskWithAhead(node);
  forEachProduct(*main, all.product, all.operands, all.batch, stBytes,
                 [&](const Spread &p, const MatmulOperands &at) { multiply(p, order, at); });
}

bool KernelWriter::comesInPieces(const Tiles &tiles) const {
  return fromDdr && tiles.form.sliceBytes() > static_cast<int64_t>(machine.memory(hw::Memory::ST).size);
}

void KernelWriter::multiplyByConstant(PlacedProduct all, const TileOrder &order, const Tiles &tiles) {
  if (!comesInPieces(tiles)) {
    all.operands.st = residentTiles(tiles);
    return multiplyAll(all, order);
  }
  const auto room = static_cast<int64_t>(machine.memory(hw::Memory::ST).size);
  // Rounds lie one behind the other. Two pieces take turns: one comes while the other is multiplied by.
  const Spread plan = all.product;
  const int64_t bytes = plan.groups * plan.bytesPerGroup(), most = std::max<int64_t>(1, room / 2 / bytes);
  int homes[2];
  for (int &home : homes)
    home = buffers.add(hw::Memory::ST, node + ".weights", most * bytes);
  const Address out = all.operands.out, bias = all.operands.bias;
  const SmallVector<Beside, 1> beside = all.operands.beside;
  for (int64_t round = 0, piece = 0; round < plan.rounds(); round += most, ++piece) {
    const int64_t column = round * plan.tilesARound() * 64;
    all.product.n = std::min(plan.n - column, most * plan.tilesARound() * 64);
    all.operands.st = {homes[piece % 2], 0, {}};
    all.operands.out = out.plus(column * all.operands.outBytes);
    all.operands.bias = bias.plus(column * 4);
    for (auto [matrix, whole] : llvm::zip(all.operands.beside, beside))
      matrix.at = whole.at.plus(column * whole.column);
    main->task(node);
    loadTiles(*main, tiles, all.operands.st, round * bytes, all.product.rounds() * bytes);
    multiplyAll(all, order);
    all.operands.arrives = {}; // all rows are there
  }
}

void KernelWriter::multiplyValues(PlacedProduct all, const TileOrder &order) {
  llvm::stable_sort(all.batch, [](const BatchDim &x, const BatchDim &y) { return x.extent < y.extent; });
  all.operands.st = pack(all.product, all.operands, all.batch);
  multiplyAll(all, order, all.product.bytesPerSlice());
}
