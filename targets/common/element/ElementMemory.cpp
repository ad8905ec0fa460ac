//===- ElementMemory.cpp - elements of tensors in memory ----------------------===//

#include "ElementExpr.h"

#include "dmxc/Dialect/DMIR/DMIR.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace dmxc;
using namespace dmxc::kernels;
using namespace mlir;

Index ElementExpr::offsetOf(RankedTensorType type, ArrayRef<Index> index) {
  auto blocked = dyn_cast_or_null<dmir::BlockedAttr>(dmir::layoutOf(type));
  SmallVector<Dim> dims = dmir::dimsOf(type);
  Index offset = at(0);
  Dim stride = 1;
  if (blocked) {
    auto [block, inner] = divRem(index[blocked.getAxis()], blocked.getBlock());
    offset = inner;
    stride = blocked.getBlock();
    for (int64_t axis = type.getRank() - 1; axis >= 0; --axis) {
      bool cut = axis == blocked.getAxis();
      offset = add(offset, mulC(cut ? block : index[axis], stride));
      stride *= cut ? Dim::ceilDiv(dims[axis], blocked.getBlock()) : dims[axis];
    }
    return offset;
  }
  for (int64_t axis = type.getRank() - 1; axis >= 0; --axis) {
    offset = add(offset, mulC(index[axis], stride));
    stride *= dims[axis];
  }
  return offset;
}

Value ElementExpr::loadInPanels(RankedTensorType type, Value base, ArrayRef<Index> index, const Panels &panels) {
  auto [panel, row] = divRem(index[0], Panels::kRows);
  auto [group, column] = divRem(index[1], panels.unit);
  Index groups = add(mulC(panel, Dim::ceilDiv(dmir::dimsOf(type)[1], panels.unit)), group);
  Index offset = add(mulC(add(mulC(groups, Panels::kRows), row), panels.unit), column);
  if (!panels.kept)
    return loadElement(type.getElementType(), base, offset);
  Value kept = loadElement(panels.kept, base, offset);
  if (panels.kept.isBF16())
    return widen(kept, panels.kept);
  Value scale = loadAt(b.getF32Type(), base, addC(index[0], panels.scales));
  return arith::MulFOp::create(b, arith::SIToFPOp::create(b, scale.getType(), kept), scale);
}

Value ElementExpr::gatherLanes(Type element, Value base, Index offset) {
  ++counts.gathered;
  if (laneMask && !offset.vec)
    offset = {{}, 0, 1, vectorOf(offset)};
  if (laneMask) // a lane that is off reads element 0, which exists
    offset.vec = arith::SelectOp::create(b, laneMask, offset.vec, b.constantInt(offset.vec.getType(), 0));
  SmallVector<Value> values;
  for (int64_t l = 0; l < laneCount; ++l) {
    Value at = offset.vec ? Value(vector::ExtractOp::create(b, offset.vec, l))
                          : addV(offset.base, constantIndex(l * offset.stride));
    values.push_back(b.load(element, base, at));
  }
  return vector::FromElementsOp::create(b, VectorType::get({laneCount}, element), values);
}

/// Lanes `stride` elements apart, all of which exist: vectors of what lies between the first and the last lane.
Value ElementExpr::loadStrided(Type element, Value base, Value first, int64_t stride) {
  ++counts.contiguous;
  int64_t last = stride - 1; // the last vector ends with the last lane
  Value picked;
  for (int64_t part = 0; part < stride; ++part) {
    int64_t begin = part * laneCount - (part == last ? last : 0);
    Value vector = b.load(element, base, b.addC(first, begin), laneCount);
    if (!picked) {
      picked = vector;
      continue;
    }
    SmallVector<int64_t> order;
    for (int64_t lane = 0; lane < laneCount; ++lane) {
      int64_t at = lane * stride, kept = part == 1 ? std::min(at, laneCount - 1) : lane;
      order.push_back(at / laneCount == part ? laneCount + at - begin : kept);
    }
    picked = vector::ShuffleOp::create(b, picked, vector, order);
  }
  return picked;
}

/// Lanes of which `repeat` have one element each, from vectors that are as many times shorter.
Value ElementExpr::loadRepeated(Type element, Value base, Index offset) {
  ++counts.contiguous;
  const int64_t count = laneCount / offset.repeat;
  Value few;
  if (laneMask) {
    Value any; // of an element's lanes is on
    for (int64_t which = 0; which < offset.repeat; ++which) {
      SmallVector<int64_t> order;
      for (int64_t l = 0; l < count; ++l)
        order.push_back(l * offset.repeat + which);
      Value on = vector::ShuffleOp::create(b, laneMask, laneMask, order);
      any = any ? Value(arith::OrIOp::create(b, any, on)) : on;
    }
    few = b.maskedLoad(element, base, offset.base, any);
  } else {
    few = b.load(element, base, offset.base, count);
  }
  if (count == 1 && !mlir::isa<VectorType>(few.getType()))
    return b.splat(few, laneCount);
  SmallVector<int64_t> order;
  for (int64_t l = 0; l < laneCount; ++l)
    order.push_back(l / offset.repeat);
  return vector::ShuffleOp::create(b, few, few, order);
}

Value ElementExpr::loadAt(Type element, Value base, Index offset) {
  if (laneCount == 1)
    return ++counts.contiguous, b.load(element, base, offset.vec ? offset.vec : offset.base);
  if (offset.uniform())
    return ++counts.uniform, b.splat(b.load(element, base, offset.base), laneCount);
  if (offset.repeat > 1)
    return loadRepeated(element, base, offset);
  if (!offset.vec && !laneMask && offset.stride >= 2 && offset.stride <= std::min<int64_t>(4, laneCount))
    return loadStrided(element, base, offset.base, offset.stride);
  if (offset.vec || offset.stride != 1)
    return gatherLanes(element, base, offset);
  ++counts.contiguous;
  if (laneMask)
    return b.maskedLoad(element, base, offset.base, laneMask);
  return b.load(element, base, offset.base, laneCount);
}

/// The byte of a packed element and the bits to shift it by.
std::pair<Value, Value> ElementExpr::placeOfPacked(Type element, Index offset) {
  assert(laneCount == 1 && "regions with packed elements have one lane");
  unsigned bits = element.getIntOrFloatBitWidth(), perByte = 8 / bits;
  Value at = offset.vec ? offset.vec : offset.base;
  Value inByte =
      arith::TruncIOp::create(b, b.getI8Type(), arith::AndIOp::create(b, at, b.constantInt(at.getType(), perByte - 1)));
  return {arith::ShRUIOp::create(b, at, b.constantInt(at.getType(), llvm::Log2_32(perByte))),
          arith::ShLIOp::create(b, inByte, b.constantInt(b.getI8Type(), llvm::Log2_32(bits)))};
}

Value ElementExpr::loadElement(Type element, Value base, Index offset) {
  if (!isPacked(element))
    return loadAt(carried(element), base, offset);
  ++counts.contiguous;
  auto [byte, shift] = placeOfPacked(element, offset);
  Value unused = b.constantInt(b.getI8Type(), 8 - element.getIntOrFloatBitWidth());
  Value high = arith::ShLIOp::create(b, arith::ShRUIOp::create(b, b.load(b.getI8Type(), base, byte), shift), unused);
  if (element.isSignlessInteger() || element.isSignedInteger())
    return arith::ShRSIOp::create(b, high, unused);
  return arith::ShRUIOp::create(b, high, unused);
}

void ElementExpr::storeElement(Value value, Value base, Type element, Index offset) {
  if (!isPacked(element))
    return storeAt(value, base, offset);
  auto [byte, shift] = placeOfPacked(element, offset);
  Value ones = b.constantInt(b.getI8Type(), (1 << element.getIntOrFloatBitWidth()) - 1);
  Value all = b.constantInt(b.getI8Type(), -1);
  Value kept = arith::XOrIOp::create(b, arith::ShLIOp::create(b, ones, shift), all);
  // The rest of a byte is 0 until it is written: stores run upwards, and the first one of a byte clears it.
  Value isLater = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, shift, b.constantInt(b.getI8Type(), 0));
  kept = arith::SelectOp::create(b, isLater, kept, b.constantInt(b.getI8Type(), 0));
  Value old = arith::AndIOp::create(b, b.load(b.getI8Type(), base, byte), kept);
  Value bits = arith::ShLIOp::create(b, arith::AndIOp::create(b, value, ones), shift);
  b.store(arith::OrIOp::create(b, old, bits), base, byte);
}

void ElementExpr::storeAt(Value value, Value base, Index offset) {
  if (laneCount == 1)
    return b.store(value, base, offset.vec ? offset.vec : offset.base);
  if (offset.repeat > 1)
    offset = {{}, 0, 1, vectorOf(offset)};
  if (!offset.vec && offset.stride == 1) {
    ++counts.contiguous;
    if (laneMask)
      return b.maskedStore(value, base, offset.base, laneMask);
    return b.store(value, base, offset.base);
  }
  ++counts.gathered;
  for (int64_t l = 0; l < laneCount; ++l) {
    auto write = [&] {
      Value lane = vector::ExtractOp::create(b, value, l);
      Value at =
          offset.vec ? Value(vector::ExtractOp::create(b, offset.vec, l)) : b.addC(offset.base, l * offset.stride);
      b.store(lane, base, at);
    };
    if (laneMask)
      b.ifThen(vector::ExtractOp::create(b, laneMask, l), write);
    else
      write();
  }
}

void ElementExpr::store(Value value, Value base, RankedTensorType type, ArrayRef<Index> index) {
  storeElement(value, base, type.getElementType(), offsetOf(type, index));
}

void ElementExpr::failIf(Value condition, int32_t code) {
  if (auto vector = dyn_cast<VectorType>(condition.getType())) {
    if (laneMask)
      condition = arith::AndIOp::create(b, condition, laneMask);
    condition = vector::ReductionOp::create(b, vector::CombiningKind::OR, condition);
  }
  b.failIf(condition, code);
}
