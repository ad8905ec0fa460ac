//===- SumWriter.cpp - what follows a product, on a thread's sums -------------===//
//
// Columns that the result does not have are evaluated like the thread's first one, which it has, and not stored: so all
// of a run can be read before any is written, without a branch.
//
//===----------------------------------------------------------------------===//

#include "SumWriter.h"

#include "targets/common/roots/Terms.h"

#include "dmxc/Dialect/DMIR/Dims.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

static constexpr int64_t kStoreBytes = 16;

SumWriter::SumWriter(CudaBuilder &b, const RegionBody &body, const Contraction &product, const SumLayout &layout)
    : b(b), body(body), product(product), layout(layout), e(b, body.block), writer(e, body) {
  bool plain = writer.acceptsJoined();
  for (unsigned i = 0; i < body.results.size(); ++i)
    plain &= !dmir::layoutOf(body.resultType(i));
  if (plain && !product.windows)
    rowAxis = joinedAxis(writer.values(), product.result(), 0, product.batchDims.size());
  for (unsigned i = 0; i < body.block->getNumArguments() + body.results.size(); ++i)
    pointers.push_back(b.buffer(i));
}

std::optional<int64_t> SumWriter::columnsOfStore(const RegionBody &body, const Contraction &product) {
  constexpr unsigned wide = 32;
  unsigned narrowest = wide;
  for (unsigned i = 0; i < body.results.size(); ++i)
    narrowest = std::min(narrowest, body.resultType(i).getElementType().getIntOrFloatBitWidth());
  const int64_t count = kStoreBytes * 8 / (narrowest < wide ? wide / 2 : wide);
  Dim side = product.windows ? product.windows->axes.back().out : product.n;
  return side.known() && *side.known() % count == 0 ? std::optional(count) : std::nullopt;
}

void SumWriter::write(ArrayRef<Value> sums, Value item, Value row, Value column) {
  auto isWhole = [](Dim size, int64_t part) { return size.known() && *size.known() % part == 0; };
  const auto atOnce = static_cast<size_t>(layout.atOnce);
  auto write = [&] {
    Indices index = product.rowIndex(e, rowAxis, item, row);
    for (size_t first = 0; first < sums.size(); first += atOnce)
      writeTogether(sums.slice(first, std::min(atOnce, sums.size() - first)), static_cast<int64_t>(first), index,
                    column);
  };
  Value isThere;
  auto require = [&](Value at, Dim size) {
    Value below = b.cmp(arith::CmpIPredicate::slt, at, b.idx(size));
    isThere = isThere ? Value(arith::AndIOp::create(b, isThere, below)) : below;
  };
  if (!isWhole(product.m, layout.rows))
    require(row, product.m);
  if (!isWhole(product.n, layout.columns))
    require(column, product.n);
  if (isThere)
    b.ifThen(isThere, write);
  else
    write();
}

/// A caller's tensors may begin anywhere.
void SumWriter::writeTogether(ArrayRef<Value> sums, int64_t first, ArrayRef<Index> row, Value column) {
  if (!layout.together)
    return writeRun(sums, first, row, column, 1);
  b.ifThen(
      b.areAligned(pointers, kStoreBytes),
      [&] {
        b.assumeAligned(pointers, kStoreBytes);
        writeRun(sums, first, row, column, layout.neighbours);
      },
      [&] { writeRun(sums, first, row, column, 1); });
}

SumWriter::Column SumWriter::columnOf(Value own, int64_t offset) {
  Value at = b.addC(own, offset);
  if (offset == 0 || (product.n.known() && *product.n.known() % layout.columns == 0))
    return {at, {}};
  Value isThere = b.cmp(arith::CmpIPredicate::slt, at, b.idx(product.n));
  return {arith::SelectOp::create(b, isThere, at, own), isThere};
}

static Value vectorOf(KernelBuilder &b, ArrayRef<Value> values) {
  auto type = VectorType::get({static_cast<int64_t>(values.size())}, values.front().getType());
  return values.size() == 1 ? values.front() : Value(vector::FromElementsOp::create(b, type, values));
}

/// Of as many sums as there are lanes. f16 is evaluated one by one: of vectors LLVM makes instructions of two f16,
/// which compute what f32 has to.
SmallVector<Value> SumWriter::evaluate(ArrayRef<Value> sums, ArrayRef<Index> index) {
  auto isHalf = [](Operation &op) {
    return llvm::any_of(op.getResults(), [](Value v) { return elementOf(v).isF16(); });
  };
  auto at = [&](Value sum, ArrayRef<Index> own) {
    e.forget();
    e.bindValue(product.result(), fromAccumulator(e, sum, product.element));
    return writer.evaluate(own);
  };
  if (sums.size() == 1 || llvm::none_of(body.block->without_terminator(), isHalf))
    return at(vectorOf(b, sums), index);
  ElementExpr::Lanes one(e, 1);
  SmallVector<SmallVector<Value>> all(body.results.size());
  Indices own(index);
  for (auto [i, sum] : llvm::enumerate(sums)) {
    own.back() = e.at(b.addC(index.back().base, static_cast<int64_t>(i)));
    for (auto [values, value] : llvm::zip(all, at(sum, own)))
      values.push_back(value);
  }
  return llvm::map_to_vector(all, [&](const SmallVector<Value> &values) { return vectorOf(b, values); });
}

/// LLVM does not follow from where a tensor begins to each of its rows.
void SumWriter::assumeAligned(ArrayRef<Index> index) {
  for (unsigned i = 0; i < body.results.size(); ++i) {
    RankedTensorType type = body.resultType(i);
    Index offset = e.offsetOf(type, index);
    const int64_t bits = type.getElementTypeBitWidth();
    if (offset.base && offset.multiple * bits % (kStoreBytes * 8) == 0)
      b.assumeAligned({b.elementPtr(b.storageType(e.carried(type.getElementType())),
                                    b.buffer(body.block->getNumArguments() + i), offset.base)},
                      kStoreBytes);
  }
}

/// `first`: which of the row's sums the first one is.
void SumWriter::writeRun(ArrayRef<Value> sums, int64_t first, ArrayRef<Index> row, Value column, int64_t lanes) {
  struct Evaluated {
    SmallVector<Value> values;
    Indices index;
    Value isThere;
  };
  std::vector<Evaluated> run;
  ElementExpr::Lanes scope(e, lanes);
  for (size_t i = 0; i < sums.size(); i += static_cast<size_t>(lanes)) {
    int64_t number = first + static_cast<int64_t>(i);
    Column at = columnOf(column, number / layout.neighbours * layout.apart + number % layout.neighbours);
    Indices index = product.withColumn(e, row, e.at(at.at, lanes, lanes > 1));
    run.push_back({evaluate(sums.slice(i, static_cast<size_t>(lanes)), index), index, at.isThere});
  }
  e.forget();
  for (const Evaluated &each : run) {
    auto store = [&] {
      if (lanes > 1 && writer.acceptsJoined())
        assumeAligned(each.index);
      writer.store(each.values, each.index);
    };
    if (each.isThere)
      b.ifThen(each.isThere, store);
    else
      store();
  }
}
