//===- GemmSums.cpp - what follows a product, on its sums ---------------------===//
//
// wgmma leaves a thread two rows of its warpgroup's sums, and of each the two columns of every eighth. Four lanes have
// a row: they deal its columns out among each other so that each has 16 bytes of a result side by side, where all rows
// of it begin at such multiples.
//
//===----------------------------------------------------------------------===//

#include "GemmSums.h"

#include "targets/cuda/code/Asynchronous.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace dmx::cuda;
using namespace mlir;

/// Lanes that have a row, columns of a block of them, and those of it that a lane has.
static constexpr int64_t kRowLanes = 4, kBlockColumns = 8, kOwnColumns = 2;

SumLayout dmxc::cuda::dealtLayout(const RegionBody &body, const Contraction &product, int64_t rows, int64_t columns,
                                  int64_t atOnce) {
  std::optional<int64_t> stored = SumWriter::columnsOfStore(body, product);
  const bool together = stored && atOnce % (kRowLanes * *stored) == 0 && columns % (kRowLanes * *stored) == 0;
  const int64_t neighbours = together ? *stored : kOwnColumns;
  return {rows, columns, neighbours, kRowLanes * neighbours, atOnce / kRowLanes, together};
}

int64_t dmxc::cuda::dealtOf(const SumLayout &layout) { return layout.neighbours / 2; }

/// Its block, and where it begins in there.
Value dmxc::cuda::firstColumnOf(CudaBuilder &b, const SumLayout &layout, Value lane) {
  Value ofRow = b.rem(lane, b.idx(kRowLanes)), blocks = b.idx(dealtOf(layout));
  return b.add(b.mulC(b.rem(ofRow, blocks), kBlockColumns), b.mulC(b.floorDiv(ofRow, blocks), layout.neighbours));
}

/// In turn, lanes that are 1 and 2 apart give each other every other block of a row, which transposes blocks and lanes.
SmallVector<Value> dmxc::cuda::dealSums(CudaBuilder &b, SmallVector<Value> own, int64_t dealt, Value lane) {
  for (int64_t apart = 1; apart < dealt; apart *= 2) {
    Value isUpper = b.cmp(arith::CmpIPredicate::ne, arith::AndIOp::create(b, lane, b.idx(apart)), b.idx(0)),
          distance = b.constantInt(b.getI32Type(), apart);
    for (size_t i = 0; i < own.size(); ++i) {
      if (static_cast<int64_t>(i) / kOwnColumns & apart)
        continue;
      Value &lower = own[i], &upper = own[i + static_cast<size_t>(kOwnColumns * apart)];
      Value given = b.shuffled(arith::SelectOp::create(b, isUpper, lower, upper), "bfly", distance);
      upper = arith::SelectOp::create(b, isUpper, upper, given);
      lower = arith::SelectOp::create(b, isUpper, given, lower);
    }
  }
  return own;
}

void GemmSums::write(Value sums, Value item, Value row, Value column) {
  constexpr int64_t warp = 32, warpgroup = 128, rowsOfWarp = 16;
  // Addresses that are computed before the products take registers from them.
  Value thread = b.rem(Asynchronous(b).threadNow(), b.idx(warpgroup)), lane = b.rem(thread, b.idx(warp));
  Value ownRow = b.add(b.mulC(b.floorDiv(thread, b.idx(warp)), rowsOfWarp), b.floorDiv(lane, b.idx(kRowLanes)));
  Value ownColumn = firstColumnOf(b, layout, lane);
  for (int64_t half = 0; half < 2; ++half) {
    SmallVector<Value> own;
    for (int64_t i = 0; i < tile.columns / kRowLanes; ++i)
      own.push_back(LLVM::ExtractValueOp::create(
          b, sums, ArrayRef<int64_t>{registerOf(half, i / kOwnColumns * kBlockColumns + i % kOwnColumns)}));
    writer.write(dealSums(b, std::move(own), dealtOf(layout), lane), item,
                 b.addC(b.add(row, ownRow), registerRow(half * 2)), b.add(column, ownColumn));
  }
}
