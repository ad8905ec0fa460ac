//===- WindowTerms.cpp - terms of a convolution's windows ---------------------===//

#include "WindowTerms.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace dmxc::kernels;
using namespace mlir;

Pixel dmxc::cuda::pixelOf(KernelBuilder &b, const Windows &windows, Value row) {
  Pixel pixel(windows.axes.size());
  for (size_t i = windows.axes.size(); i-- > 0;) {
    const Windows::Axis &axis = windows.axes[i];
    Value out = i ? b.rem(row, b.idx(Dim::max(axis.out, 1))) : row;
    if (i)
      row = b.floorDiv(row, b.idx(Dim::max(axis.out, 1)));
    pixel[i] = b.sub(b.mulC(out, axis.stride), b.idx(axis.low));
  }
  return pixel;
}

std::pair<Value, Value> dmxc::cuda::termOf(KernelBuilder &b, const Windows &windows, const Pixel &pixel, Value k) {
  Value offset = b.idx(0), isInside;
  for (size_t i = windows.axes.size(); i-- > 0;) {
    const Windows::Axis &axis = windows.axes[i];
    Value at = b.add(pixel[i], b.mulC(b.rem(k, b.idx(axis.taps)), axis.dilation));
    k = b.floorDiv(k, b.idx(axis.taps));
    Value inside = arith::AndIOp::create(b, b.cmp(arith::CmpIPredicate::sge, at, b.idx(0)),
                                         b.cmp(arith::CmpIPredicate::slt, at, b.idx(axis.in)));
    isInside = isInside ? Value(arith::AndIOp::create(b, isInside, inside)) : inside;
    offset = b.add(offset, b.mulC(at, axis.apart));
  }
  return {b.add(offset, b.mulC(k, windows.channelsApart)), isInside};
}

namespace {

/// Words of an entry: those of its place, then one an axis.
constexpr int64_t kPlaceWords = 2, kWord = 4, kVectorWords = 4;

} // namespace

Value TermTable::wordAt(Value term, int64_t word) {
  Value place = b.addC(b.mulC(term, entryBytes(windows)), at + word * kWord);
  return b.elementPtr(b.getI8Type(), b.shared(), place);
}

void TermTable::fill(int64_t threads) {
  Type i32 = b.getI32Type();
  b.forLoop(b.threadInBlock(), b.idx(terms), b.idx(threads), [&](Value term) {
    Value rest = term, place = b.idx(0);
    for (size_t i = windows.axes.size(); i-- > 0;) {
      const Windows::Axis &axis = windows.axes[i];
      Value along = b.mulC(b.rem(rest, b.idx(axis.taps)), axis.dilation);
      rest = b.floorDiv(rest, b.idx(axis.taps));
      place = b.add(place, b.mulC(along, axis.apart));
      LLVM::StoreOp::create(b, arith::TruncIOp::create(b, i32, along),
                            wordAt(term, kPlaceWords + static_cast<int64_t>(i)), kWord);
    }
    place = b.add(place, b.mulC(rest, windows.channelsApart));
    LLVM::StoreOp::create(b, place, wordAt(term, 0), kPlaceWords * kWord);
    for (auto word = kPlaceWords + static_cast<int64_t>(windows.axes.size()); word * kWord < entryBytes(windows);
         ++word)
      LLVM::StoreOp::create(b, b.constantInt(i32, 0), wordAt(term, word), kWord);
  });
}

Value TermTable::placeOf(const Pixel &pixel) {
  Value place = b.idx(0);
  for (auto [at, axis] : llvm::zip(pixel, windows.axes))
    place = b.add(place, b.mulC(at, axis.apart));
  return place;
}

SmallVector<Value, 2> TermTable::entryOf(Value term) {
  auto vector = VectorType::get({kVectorWords}, b.getI32Type());
  SmallVector<Value, 2> entry;
  for (int64_t word = 0; word * kWord < entryBytes(windows); word += kVectorWords)
    entry.push_back(LLVM::LoadOp::create(b, vector, wordAt(term, word), kVectorWords * kWord));
  return entry;
}

std::pair<Value, Value> TermTable::look(const Pixel &pixel, ArrayRef<Value> entry) {
  Type i32 = b.getI32Type(), i64 = b.getI64Type();
  auto word = [&](int64_t i) -> Value {
    return vector::ExtractOp::create(b, entry[static_cast<size_t>(i / kVectorWords)], i % kVectorWords);
  };
  Value low = arith::ExtUIOp::create(b, i64, word(0)), high = arith::ExtUIOp::create(b, i64, word(1)), isInside;
  Value place = arith::OrIOp::create(b, low, arith::ShLIOp::create(b, high, b.idx(32)));
  for (auto [i, axis] : llvm::enumerate(windows.axes)) {
    Value own = arith::TruncIOp::create(b, i32, pixel[i]), size = arith::TruncIOp::create(b, i32, b.idx(axis.in));
    Value along = arith::AddIOp::create(b, own, word(kPlaceWords + static_cast<int64_t>(i)));
    // Before the first one is far behind the last one.
    Value inside = b.cmp(arith::CmpIPredicate::ult, along, size);
    isInside = isInside ? Value(arith::AndIOp::create(b, isInside, inside)) : inside;
  }
  return {b.add(placeOf(pixel), place), isInside};
}
