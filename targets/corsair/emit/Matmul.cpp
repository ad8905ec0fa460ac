//===- Matmul.cpp - matrix products on the arrays -------------------------===//
//
// Rows of A are quantised on the way into IB, 64 at a time, up to 16 blocks along K at once. A constant B is packed in
// tiles and stays in ST, from where the array controller streams it; a B that is computed is quantised on the
// way into WB. Sums leave OB as f16. The slices share the columns, or the rows where there are too few columns.
//
//===----------------------------------------------------------------------===//

#include "KernelLowering.h"
#include "MatmulView.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;
using hw::ConfigKey;

static constexpr int64_t kRows = 64, kBlock = 64;

MatmulPlan dmxc::corsair::planMatmul(const hw::Machine &machine, int64_t m, int64_t n, int64_t k) {
  MatmulPlan plan{m, n, k, (k + kBlock - 1) / kBlock};
  int64_t bands = (m + kRows - 1) / kRows;
  if (plan.tilesN() >= machine.slices || bands < 2)
    plan.slicesN = static_cast<int>(std::min<int64_t>(machine.slices, std::max<int64_t>(1, plan.tilesN())));
  else
    plan.slicesM = static_cast<int>(std::min<int64_t>(machine.slices, bands));
  const int64_t chunks = std::min(plan.kChunks, plan.chunksAtOnce), cores = machine.cores;
  const int64_t tilesPerSlice = (plan.tilesN() + plan.slicesN - 1) / plan.slicesN;
  // OB holds four tiles of sums. The fewest array clocks a tile win; of equals the widest reduction, which adds least
  // often.
  double best = 0;
  for (int64_t imc = std::min(chunks, cores); imc >= 1; --imc) {
    int64_t groups = std::min({cores / imc, int64_t(4), tilesPerSlice});
    double clocks = static_cast<double>((chunks + imc - 1) / imc) / static_cast<double>(groups);
    if (best != 0 && clocks >= best)
      continue;
    best = clocks;
    plan.imc = static_cast<int>(imc);
    plan.groups = static_cast<int>(groups);
    plan.ppr = static_cast<int>(llvm::Log2_64_Ceil(static_cast<uint64_t>(imc)));
  }
  return plan;
}

namespace dmxc::corsair {

/// Emits one product of two matrices, or a loop body of many.
class MatmulEmitter {
public:
  MatmulEmitter(StreamBuilder &stream, const MatmulPlan &plan, const MatmulOperands &operands)
      : stream(stream), plan(plan), at(operands) {}

  void run() {
    const int64_t step = kRows * plan.slicesM, full = plan.m / step, rest = plan.m - full * step;
    if (full)
      stream.loop(full, [&](int depth) {
        MatmulEmitter body = *this;
        body.at.a = at.a.plusLoop(depth, step * at.aRow);
        body.at.out = at.out.plusLoop(depth, step * at.outRow);
        body.band(plan.slicesM > 1 ? (1 << plan.slicesM) - 1 : 0, kRows, 0);
      });
    const int64_t wholeSlices = rest / kRows, lastRows = rest % kRows;
    if (wholeSlices)
      band((1 << wholeSlices) - 1, kRows, full * step);
    if (lastRows)
      band(plan.slicesM > 1 ? 1 << wholeSlices : 0, lastRows, full * step, wholeSlices);
  }

private:
  /// The rows from `row` on: 64 (or `rows`) in each slice of the mask, or, where the slices share the columns (mask 0),
  /// the same rows in all. `first` is the first slice of the mask.
  void band(int mask, int64_t rows, int64_t row, int64_t first = 0) {
    MatmulEmitter body = *this;
    body.at.a = at.a.plus((row + first * kRows) * at.aRow);
    body.at.out = at.out.plus((row + first * kRows) * at.outRow);
    if (plan.kChunks <= plan.chunksAtOnce)
      body.loadRows(mask ? mask : (1 << plan.slicesN) - 1, rows, 0, plan.kChunks);
    body.columns(mask, rows);
  }

  /// All columns: whole rounds as a loop, then what is left, slice by slice.
  void columns(int mask, int64_t rows) {
    const int64_t perRound = static_cast<int64_t>(plan.groups) * plan.slicesN, fullTiles = plan.n / 64;
    const int64_t rounds = fullTiles / perRound, rest = fullTiles - rounds * perRound, lastColumns = plan.n % 64;
    const int all = mask ? mask : (1 << plan.slicesN) - 1;
    stream.loop(rounds, [&](int depth) {
      MatmulEmitter body = *this;
      body.at.st = at.st.plusLoop(depth, plan.groups * plan.kChunks * MatmulPlan::kTileBytes);
      body.at.b = at.b.plusLoop(depth, perRound * 64 * at.bColumn);
      body.at.out = at.out.plusLoop(depth, perRound * 64 * 2);
      body.tiles(all, rows, plan.groups, 64);
    });
    MatmulEmitter tail = *this;
    tail.at.st = at.st.plus(rounds * plan.groups * plan.kChunks * MatmulPlan::kTileBytes);
    tail.at.b = at.b.plus(rounds * perRound * 64 * at.bColumn);
    tail.at.out = at.out.plus(rounds * perRound * 64 * 2);
    const int64_t slices = mask ? 1 : plan.slicesN; // sharing the columns
    for (int64_t slice = 0; slice < slices; ++slice) {
      int64_t whole = std::clamp<int64_t>(rest - slice * plan.groups, 0, plan.groups);
      bool hasLast = lastColumns && rest / plan.groups == slice;
      if (!whole && !hasLast)
        continue;
      MatmulEmitter one = tail;
      one.at.b = tail.at.b.plus(slice * plan.groups * 64 * at.bColumn);
      one.at.out = tail.at.out.plus(slice * plan.groups * 64 * 2);
      one.tiles(mask ? mask : 1 << slice, rows, whole + hasLast, hasLast ? lastColumns : 64);
    }
  }

  /// `count` tiles of columns in each slice of the mask, the last with `lastColumns`.
  void tiles(int mask, int64_t rows, int64_t count, int64_t lastColumns) {
    for (int64_t chunk = 0; chunk < plan.kChunks; chunk += plan.chunksAtOnce) {
      int64_t chunks = std::min(plan.chunksAtOnce, plan.kChunks - chunk);
      if (plan.kChunks > plan.chunksAtOnce)
        loadRows(mask, rows, chunk, chunks);
      if (at.streamed)
        multiply(mask, rows, count, chunk, (chunks + plan.imc - 1) / plan.imc, 0, true);
      else
        for (int64_t k = 0; k < chunks; k += plan.imc) {
          loadColumns(mask, count, lastColumns, chunk + k, std::min<int64_t>(plan.imc, chunks - k));
          multiply(mask, rows, count, chunk + k, 1, k * MatmulPlan::kTileBytes, false);
        }
    }
    if (lastColumns == 64)
      return storeTiles(mask, rows, 0, count, 64);
    storeTiles(mask, rows, 0, count - 1, 64);
    storeTiles(mask, rows, count - 1, 1, lastColumns);
  }

  /// Rows of A, chunks of 64 along K, quantised into IB.
  void loadRows(int mask, int64_t rows, int64_t chunk, int64_t chunks) {
    int64_t tail = chunk + chunks == plan.kChunks ? plan.k % kBlock : 0;
    int slot = stream.config(hw::Unit::GM, {{ConfigKey::Kind, static_cast<int64_t>(hw::ElemKind::F16)},
                                             {ConfigKey::To, static_cast<int64_t>(hw::ElemKind::Bfp16R)},
                                             {ConfigKey::DstMode, 1},
                                             {ConfigKey::N0, rows},
                                             {ConfigKey::N3, chunks},
                                             {ConfigKey::S0, at.aRow},
                                             {ConfigKey::S3, kBlock * at.aColumn},
                                             {ConfigKey::T0, 1},
                                             {ConfigKey::T3, MatmulPlan::kTileBytes},
                                             {ConfigKey::Tail, tail},
                                             {ConfigKey::ElemStride, at.aColumn == 2 ? 0 : at.aColumn},
                                             {ConfigKey::SrcSlice, plan.slicesM > 1 ? kRows * at.aRow : 0}});
    hw::Instruction &move = stream.emit(hw::Opcode::Move);
    move.set("src", static_cast<int64_t>(hw::Memory::GM)).set("dst", static_cast<int64_t>(hw::Memory::IB));
    move.set("slot", slot).set("slices", mask);
    stream.address("saddr", at.a.plus(chunk * kBlock * at.aColumn));
  }

  /// Columns of B for `chunks` cores of each group, quantised into WB. A last chunk that is not whole is a move
  /// of its own.
  void loadColumns(int mask, int64_t count, int64_t lastColumns, int64_t chunk, int64_t chunks) {
    int64_t tail = chunk + chunks == plan.kChunks ? plan.k % kBlock : 0;
    for (int64_t group = 0; group < count; ++group) {
      int64_t columns = group + 1 == count ? lastColumns : 64, whole = tail ? chunks - 1 : chunks;
      if (whole)
        loadTile(mask, group, columns, chunk, 0, whole, 0);
      if (tail)
        loadTile(mask, group, columns, chunk, chunks - 1, 1, tail);
    }
  }

  void loadTile(int mask, int64_t group, int64_t columns, int64_t chunk, int64_t core, int64_t cores, int64_t tail) {
    int slot = stream.config(hw::Unit::GM,
                             {{ConfigKey::Kind, static_cast<int64_t>(hw::ElemKind::F16)},
                              {ConfigKey::To, static_cast<int64_t>(hw::ElemKind::Bfp16C)},
                              {ConfigKey::DstMode, 1},
                              {ConfigKey::N0, 64},
                              {ConfigKey::Hi0, columns},
                              {ConfigKey::S0, at.bColumn},
                              {ConfigKey::T0, 1},
                              {ConfigKey::Tail, tail},
                              {ConfigKey::ElemStride, at.bRow == 2 ? 0 : at.bRow},
                              {ConfigKey::SrcCore, kBlock * at.bRow},
                              {ConfigKey::SrcSlice, plan.slicesN > 1 ? plan.groups * 64 * at.bColumn : 0}});
    hw::Instruction &move = stream.emit(hw::Opcode::Move);
    move.set("src", static_cast<int64_t>(hw::Memory::GM)).set("dst", static_cast<int64_t>(hw::Memory::WB));
    move.set("slot", slot).set("slices", mask);
    move.set("cores", ((int64_t(1) << cores) - 1) << (group * plan.imc + core));
    stream.address("saddr", at.b.plus(group * 64 * at.bColumn + (chunk + core) * kBlock * at.bRow));
  }

  void multiply(int mask, int64_t rows, int64_t count, int64_t chunk, int64_t steps, int64_t ib, bool streamed) {
    int slot = stream.config(hw::Unit::AC, {{ConfigKey::IbStep, plan.imc * MatmulPlan::kTileBytes},
                                             {ConfigKey::StStep, plan.imc * MatmulPlan::kTileBytes},
                                             {ConfigKey::StGroup, plan.kChunks * MatmulPlan::kTileBytes},
                                             {ConfigKey::StepAcc, 1},
                                             {ConfigKey::KChunks, plan.kChunks}});
    hw::Instruction &matmul = stream.emit(hw::Opcode::Matmul);
    matmul.set("slot", slot).set("slices", mask).set("imc", plan.imc).set("ppr", plan.ppr).set("groups", count);
    matmul.set("rows", rows).set("k0", chunk).set("acc", chunk > 0).set("steps", steps).set("stream", streamed);
    matmul.set("ib", ib);
    if (streamed)
      stream.address("st", at.st.plus(chunk * MatmulPlan::kTileBytes));
  }

  /// Tiles of sums from OB, as f16, to their columns of the result.
  void storeTiles(int mask, int64_t rows, int64_t first, int64_t count, int64_t columns) {
    if (!count)
      return;
    int64_t slice = plan.slicesN > 1 ? plan.groups * 64 * 2 : plan.slicesM > 1 ? kRows * at.outRow : 0;
    int slot = stream.config(hw::Unit::GM, {{ConfigKey::Kind, static_cast<int64_t>(hw::ElemKind::Bfp32)},
                                             {ConfigKey::To, static_cast<int64_t>(hw::ElemKind::F16)},
                                             {ConfigKey::Unit, columns},
                                             {ConfigKey::N0, count},
                                             {ConfigKey::N1, rows},
                                             {ConfigKey::S0, kRows * 256},
                                             {ConfigKey::S1, 256},
                                             {ConfigKey::T0, 128},
                                             {ConfigKey::T1, at.outRow},
                                             {ConfigKey::DstSlice, slice}});
    hw::Instruction &move = stream.emit(hw::Opcode::Move);
    move.set("src", static_cast<int64_t>(hw::Memory::OB)).set("dst", static_cast<int64_t>(hw::Memory::GM));
    move.set("slot", slot).set("slices", mask).set("saddr", first * kRows * 256);
    stream.address("daddr", at.out.plus(first * 128));
  }

  StreamBuilder &stream;
  const MatmulPlan &plan;
  MatmulOperands at;
};

void emitProduct(StreamBuilder &stream, const MatmulPlan &plan, const MatmulOperands &operands) {
  MatmulEmitter(stream, plan, operands).run();
}

/// Loops over the batch dims that do not join with the rows.
static void forEachProduct(StreamBuilder &stream, const MatmulPlan &plan,
                           MatmulOperands operands, ArrayRef<BatchDim> batch) {
  if (batch.empty())
    return emitProduct(stream, plan, operands);
  stream.loop(batch.front().extent, [&](int depth) {
    MatmulOperands body = operands;
    body.a = operands.a.plusLoop(depth, batch.front().a);
    body.b = operands.b.plusLoop(depth, batch.front().b);
    body.out = operands.out.plusLoop(depth, batch.front().out);
    forEachProduct(stream, plan, body, batch.drop_front());
  });
}

} // namespace dmxc::corsair

Status KernelLowering::lowerMatmul(Operation *op) {
  auto matmul = cast<dmir::MatMulOp>(op);
  const DeviceTensor &a = values[matmul.getLhs()];
  auto streamed = tiles.find(matmul.getRhs());
  DeviceTensor out = allocate(matmul.getResult());
  if (out.elements() == 0) {
    values[matmul.getResult()] = out;
    return Status::ok();
  }
  MatmulShape shape = streamed != tiles.end() ? MatmulShape(a, out) : MatmulShape(a, values[matmul.getRhs()], out);
  MatmulPlan plan = planMatmul(machine, shape.m, shape.n, shape.k);
  if (streamed != tiles.end()) {
    // Packed for the rows of one product, whatever the batch.
    auto rows = cast<RankedTensorType>(matmul.getResult().getType()).getShape();
    plan = planMatmul(machine, packedRows(rows), shape.n, shape.k);
    plan.m = shape.m;
    shape.operands.streamed = true;
    shape.operands.st = streamed->second;
  }
  forEachProduct(main, plan, shape.operands, shape.batch);
  values[matmul.getResult()] = out;
  return Status::ok();
}
