//===- GemmSums.cpp - what follows a product, on its sums ---------------------===//
//
// A thread has two rows of its warpgroup's sums, and of each the two columns of every eighth. Those that the result
// does not have are evaluated like the thread's first one, which it has, and not stored: so all of a run can be read
// before any is written, without a branch.
//
//===----------------------------------------------------------------------===//

#include "GemmSums.h"

#include "targets/common/roots/Terms.h"
#include "targets/cuda/code/Asynchronous.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace dmx::cuda;
using namespace mlir;

GemmSums::GemmSums(CudaBuilder &b, const RegionBody &body, const GemmProduct &product, const Pipeline &pipeline)
    : b(b), product(product), tile(pipeline.tile), atOnce(pipeline.sumsAtOnce), e(b, body.block), writer(e, body) {
  bool plain = writer.acceptsJoined();
  for (unsigned i = 0; i < body.results.size(); ++i)
    plain &= !dmir::layoutOf(body.resultType(i));
  if (plain && !product.windows)
    rowAxis = joinedAxis(writer.values(), product.result(), 0, product.batchDims.size());
}

void GemmSums::write(Value sums, Value item, Value row, Value column) {
  constexpr int64_t warp = 32, warpgroup = 128, rowsOfWarp = 16;
  // Addresses that are computed before the products take registers from them.
  Value thread = b.rem(Asynchronous(b).threadNow(), b.idx(warpgroup)), lane = b.rem(thread, b.idx(warp));
  Value ownRow = b.add(b.mulC(b.floorDiv(thread, b.idx(warp)), rowsOfWarp), b.floorDiv(lane, b.idx(4)));
  Value ownColumn = b.mulC(b.rem(lane, b.idx(4)), 2);
  for (int64_t half = 0; half < 2; ++half)
    writeRow(sums, half, item, b.addC(b.add(row, ownRow), registerRow(half * 2)), b.add(column, ownColumn));
}

void GemmSums::writeRow(Value sums, int64_t half, Value item, Value row, Value column) {
  auto isWhole = [](Dim size, int64_t part) { return size.known() && *size.known() % part == 0; };
  auto write = [&] {
    Indices index = product.rowIndex(e, rowAxis, item, row);
    for (int64_t first = 0; first < tile.columns; first += atOnce)
      writeRun(sums, half, first, index, column);
  };
  Value isThere;
  auto require = [&](Value at, Dim size) {
    Value below = b.cmp(arith::CmpIPredicate::slt, at, b.idx(size));
    isThere = isThere ? Value(arith::AndIOp::create(b, isThere, below)) : below;
  };
  if (!isWhole(product.m, tile.rows))
    require(row, product.m);
  if (!isWhole(product.n, tile.columns))
    require(column, product.n);
  if (isThere)
    b.ifThen(isThere, write);
  else
    write();
}

GemmSums::Column GemmSums::columnOf(Value own, int64_t offset) {
  Value at = b.addC(own, offset);
  if (offset == 0 || (product.n.known() && *product.n.known() % tile.columns == 0))
    return {at, {}};
  Value isThere = b.cmp(arith::CmpIPredicate::slt, at, b.idx(product.n));
  return {arith::SelectOp::create(b, isThere, at, own), isThere};
}

void GemmSums::writeRun(Value sums, int64_t half, int64_t first, ArrayRef<Index> row, Value column) {
  struct Evaluated {
    SmallVector<Value> values;
    Indices index;
    Value isThere;
  };
  std::vector<Evaluated> run;
  for (int64_t offset = first; offset < first + atOnce; offset += 8)
    for (int64_t i = 0; i < 2; ++i) {
      Value sum = LLVM::ExtractValueOp::create(b, sums, ArrayRef<int64_t>{registerOf(half, offset + i)});
      e.forget();
      e.bindValue(product.result(), fromAccumulator(e, sum, product.element));
      Column at = columnOf(column, offset + i);
      Indices index = product.withColumn(e, row, e.at(at.at));
      SmallVector<Value> values = writer.evaluate(index);
      run.push_back({values, index, at.isThere});
    }
  e.forget();
  for (const Evaluated &each : run) {
    auto store = [&] { writer.store(each.values, each.index); };
    if (each.isThere)
      b.ifThen(each.isThere, store);
    else
      store();
  }
}
