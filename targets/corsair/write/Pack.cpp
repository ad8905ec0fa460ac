//===- Pack.cpp - a matrix that is computed to tiles in ST ----------------===//

#include "Operands.h"

#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

static constexpr int64_t kTile = 64;

/// `columns` columns of B from GM, of which `valid` exist, to tiles in the slices of a mask; `rounds` of them.
static void packColumns(Program &program, const Spread &plan, const MatmulOperands &at, int mask, int64_t rounds,
                        int64_t valid) {
  const int64_t columns = plan.groups * 64;
  const int64_t slice = plan.sharing == Sharing::Columns ? columns * at.bColumn
                        : plan.sharing == Sharing::Batch ? at.bSlice
                                                         : 0;
  DmaSpec spec{hw::nameOf(hw::ElemKind::F16), hw::nameOf(hw::ElemKind::Bfp16C)};
  spec.toRows = true;
  spec.dims = {{columns, at.bColumn, 1},
               {rounds, plan.tilesARound() * 64 * at.bColumn, columns},
               {1, 0, 0},
               {plan.kChunks, kTile * at.bRow, Spread::kTileBytes}};
  spec.valid = valid < columns ? valid : 0;
  spec.targetBand = plan.kChunks * Spread::kTileBytes;
  spec.tail = plan.k % kTile;
  spec.elementStride = at.bRow == 2 ? 0 : at.bRow;
  spec.sourceUnitStep = llvm::popcount(unsigned(mask)) > 1 ? slice : 0;
  program.on(Queue::Load).copy(at.b, at.st, spec).integer("units", mask).create();
}

void dmxc::corsair::emitPack(Program &program, const Spread &plan, const MatmulOperands &operands) {
  const int64_t perRound = plan.tilesARound() * 64, rounds = plan.n / perRound, rest = plan.n - rounds * perRound;
  if (rounds)
    packColumns(program, plan, operands, plan.mask(), rounds, plan.groups * 64);
  if (!rest)
    return;
  MatmulOperands tail = operands;
  tail.b = operands.b.plus(rounds * perRound * operands.bColumn);
  tail.st = operands.st.plus(rounds * plan.groups * plan.kChunks * Spread::kTileBytes);
  if (plan.columnSlices() == 1)
    return packColumns(program, plan, tail, plan.mask(), 1, rest);
  const int64_t columns = plan.groups * 64, full = rest / columns, left = rest - full * columns;
  if (full)
    packColumns(program, plan, tail, (1 << full) - 1, 1, columns);
  if (!left)
    return;
  tail.b = tail.b.plus(full * columns * operands.bColumn);
  packColumns(program, plan, tail, 1 << full, 1, left);
}
