//===- KeyPairs.cpp - keys and values in pairs of bf16 --------------------===//
//
// The right operand of an attention's product is copied to scratch in the order in which pairs are multiplied: two
// numbers that follow each other along k are one element, a row of columns() of them for each pair. What is beyond k is
// zero, as it is in the left operand.
//
//===----------------------------------------------------------------------===//

#include "targets/cpu/product/GemmEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/TypeUtilities.h"

using namespace dmxc::cpu;
using namespace mlir;

/// The 16 bits of elements of B in memory, in 32.
Value GemmEmitter::shortBits(Value raw) {
  Value x = raw;
  if (!spec.bType.isBF16())
    x = bf16Of(b, convertElements(b, {spec.bType, spec.accType, false}, raw));
  auto vector = dyn_cast<VectorType>(x.getType());
  auto like = [&](Type element) { return vector ? Type(vector.clone(element)) : element; };
  Value bits = arith::BitcastOp::create(b, like(b.getIntegerType(16)), x);
  return arith::ExtUIOp::create(b, like(b.getI32Type()), bits);
}

/// Accumulator elements whose low halves are `low`, and their high ones `high` (null: zeros).
Value GemmEmitter::pairsOfBits(Value low, Value high) {
  Value bits = low;
  if (high) {
    Value shifted = arith::ShLIOp::create(b, high, b.constantInt(high.getType(), 16));
    bits = arith::OrIOp::create(b, low, shifted);
  }
  auto vector = dyn_cast<VectorType>(bits.getType());
  return arith::BitcastOp::create(b, vector ? Type(vector.clone(spec.accType)) : spec.accType, bits);
}

/// Pairs whose numbers are adjacent in memory.
Value GemmEmitter::adjacentPairs(const Item &item, Value offset, int64_t lanes) {
  Type pairs = b.laneType(spec.accType, lanes);
  if (spec.bType.isBF16())
    return LLVM::LoadOp::create(b, pairs, b.elementPtr(spec.bType, item.bBase, offset), /*alignment=*/2);
  auto load = [&](int64_t from) {
    Value x = b.load(spec.bType, item.bBase, b.addC(offset, from), lanes);
    return lanes > 1 ? convertElements(b, {spec.bType, spec.accType, false}, x) : x;
  };
  Value first = load(0), second = load(lanes);
  if (lanes == 1)
    return pairsOfBits(shortBits(first), shortBits(second));
  return joinAsBf16(b, first, second);
}

void GemmEmitter::packPairs(const Item &item, Value k0, Value depth, int64_t v) {
  // Those with two numbers.
  Value whole = b.maxS(b.minS(depth, b.sub(b.floorDiv(elements, b.idx(2)), k0)), b.idx(0));
  if (CpuBuilder::constantOf(right.rowStride) == 1 && CpuBuilder::constantOf(right.colStride) != 1)
    packPairsTransposed(item, k0, whole, v);
  else
    packPairsOfRows(item, k0, whole, v);
  if (spec.k.isStatic() && CpuBuilder::constantOf(whole) &&
      CpuBuilder::constantOf(whole) == CpuBuilder::constantOf(depth))
    return;
  Value column = b.addC(item.column, v * t.lanes), limit = b.minS(b.idx(t.lanes), b.sub(n, column));
  b.forLoop(whole, depth, b.idx(1), [&](Value i) {
    Value row = b.mulC(b.add(k0, i), 2), isThere = b.cmp(arith::CmpIPredicate::slt, row, elements);
    Value from = b.mul(b.minS(row, b.addC(elements, -1)), right.rowStride);
    b.forLoop(b.idx(0), limit, b.idx(1), [&](Value j) {
      Value at = b.add(from, b.mul(b.add(column, j), right.colStride));
      Value pair = pairsOfBits(shortBits(b.load(spec.bType, item.bBase, at)), {});
      pair = arith::SelectOp::create(b, isThere, pair, b.constant(spec.accType, 0));
      b.store(pair, packed, b.add(b.addC(b.mulC(i, t.columns()), v * t.lanes), j));
    });
  });
}

/// A vector of columns for each pair of rows, of `whole` pairs.
void GemmEmitter::packPairsOfRows(const Item &item, Value k0, Value whole, int64_t v) {
  Value column = b.addC(item.column, v * t.lanes), inside = mask(item, v);
  const bool adjacent = CpuBuilder::constantOf(right.colStride) == 1;
  Value limit = b.minS(b.idx(t.lanes), b.sub(n, column));
  b.forLoop(b.idx(0), whole, b.idx(1), [&](Value i) {
    Value from = b.mul(b.mulC(b.add(k0, i), 2), right.rowStride), first = b.mul(column, right.colStride);
    Value to = b.addC(b.mulC(i, t.columns()), v * t.lanes);
    auto bits = [&](Value at) {
      return shortBits(inside ? b.maskedLoad(spec.bType, item.bBase, at, inside)
                              : b.load(spec.bType, item.bBase, at, t.lanes));
    };
    if (adjacent) {
      Value low = bits(b.add(from, first)), high = bits(b.add(b.add(from, right.rowStride), first));
      return b.store(pairsOfBits(low, high), packed, to);
    }
    b.forLoop(b.idx(0), limit, b.idx(1), [&](Value j) {
      Value at = b.add(from, b.mul(b.add(column, j), right.colStride));
      Value low = b.load(spec.bType, item.bBase, at), high = b.load(spec.bType, item.bBase, b.add(at, right.rowStride));
      b.store(pairsOfBits(shortBits(low), shortBits(high)), packed, b.add(to, j));
    });
  });
}

/// The same of columns whose numbers are adjacent: blocks of lanes x lanes pairs are transposed in registers.
void GemmEmitter::packPairsTransposed(const Item &item, Value k0, Value whole, int64_t v) {
  Value column = b.addC(item.column, v * t.lanes);
  auto source = [&](int64_t j, Value i) { // columns beyond n repeat the last one
    Value at = b.minS(b.addC(column, j), b.addC(n, -1));
    return b.add(b.mul(at, right.colStride), b.mulC(b.add(k0, i), 2));
  };
  Value main = b.mulC(b.floorDiv(whole, b.idx(t.lanes)), t.lanes);
  b.forLoop(b.idx(0), main, b.idx(t.lanes), [&](Value i) {
    SmallVector<Value> rows;
    for (int64_t j = 0; j < t.lanes; ++j)
      rows.push_back(adjacentPairs(item, source(j, i), t.lanes));
    SmallVector<Value> turned = b.transposed(rows);
    for (int64_t j = 0; j < t.lanes; ++j)
      b.store(turned[j], packed, b.addC(b.mulC(b.addC(i, j), t.columns()), v * t.lanes));
  });
  b.forLoop(main, whole, b.idx(1), [&](Value i) {
    for (int64_t j = 0; j < t.lanes; ++j)
      b.store(adjacentPairs(item, source(j, i), 1), packed, b.addC(b.mulC(i, t.columns()), v * t.lanes + j));
  });
}
