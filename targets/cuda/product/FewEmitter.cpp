//===- FewEmitter.cpp - products of few rows: the kernel ----------------------===//

#include "FewRows.h"

#include "targets/common/roots/Rows.h"
#include "targets/common/roots/Terms.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

namespace {

constexpr int64_t kWarp = 32;
constexpr int64_t kLoads = FewTile::kLoads, kRowLoads = FewTile::kRowLoads;

class FewEmitter {
public:
  FewEmitter(CudaBuilder &b, const RegionBody &body, const FewRows &product, const FewTile &tile)
      : b(b), product(product), tile(tile), e(b, body.block), writer(e, body), chunk(product.chunk(tile)),
        step(product.step(tile)) {}

  void emit();

private:
  /// Loads of some steps, each of all columns; those of the last step may lie behind the matrix.
  using Loads = SmallVector<SmallVector<Value>>;

  void emitItem(Value row, Value column);
  void chunkOf(Value firstStep, int64_t steps, SmallVector<Value> &sums);
  Loads loadSteps(Value firstStep, int64_t from, int64_t count);
  void multiplySteps(const Loads &loads, int64_t from, SmallVector<Value> &sums);
  SmallVector<Value> numbersOf(Value words);
  void putRows(Value firstTerm, int64_t terms);
  void measureRows();
  Value fold(dmir::NormalizeOp norm, ArrayRef<Dim> dims, Value row, Value mean);
  Value normalised(ArrayRef<Index> index);
  Value ofRows() {
    return b.elementPtr(b.getI8Type(), b.shared(), b.idx(product.rowBytes(tile) + product.sumBytes(tile)));
  }
  Value placeOf(Value row, Value term);
  Indices indexOf(Value row, ArrayRef<Dim> dims, ArrayRef<Dim> whole);
  void tellSums(ArrayRef<Value> sums);
  void writeSums();
  void meet() { NVVM::Barrier0Op::create(b); }
  Value sumPlace(Value group, Value column, Value row) {
    return b.mulC(b.add(b.mulC(b.add(b.mulC(group, tile.columns), column), tile.rows), row), tile.together);
  }

  CudaBuilder &b;
  const FewRows &product;
  const FewTile &tile;
  ElementExpr e;
  ResultWriter writer;
  int64_t chunk, step;
  bool isMeasured = true;
  Value ownRow;                 ///< the one of the block's rows that is asked for
  Value firstRow, firstColumn;  ///< of the block
  Value group, part, lane;      ///< the warp's number among groups, and in its own; the lane
  SmallVector<Value> columnsAt; ///< where the thread's columns begin: elements
};

void FewEmitter::emit() {
  if (product.norm)
    e.bind(product.norm->getResult(0), [this](ArrayRef<Index> index) { return normalised(index); });
  Value warp = b.floorDiv(b.threadInBlock(), b.idx(kWarp));
  lane = b.rem(b.threadInBlock(), b.idx(kWarp));
  group = b.floorDiv(warp, b.idx(tile.together));
  part = b.rem(warp, b.idx(tile.together));
  Dim across = Dim::ceilDiv(product.n, tile.wide());
  b.forItems(product.blocks(tile), [&](Value item) {
    // Blocks go down all rows of a column: the matrix comes once.
    Dim down = Dim::ceilDiv(product.rows, tile.rows);
    Value row = down.is(1) ? b.idx(0) : b.rem(item, b.idx(down));
    Value column = down.is(1) ? item : across.is(1) ? b.idx(0) : b.floorDiv(item, b.idx(down));
    emitItem(b.mulC(row, tile.rows), b.mulC(column, tile.wide()));
  });
}

void FewEmitter::emitItem(Value row, Value column) {
  firstRow = row;
  firstColumn = column;
  columnsAt.clear();
  for (int64_t i = 0; i < tile.columns; ++i) {
    Value own = b.add(column, b.addC(b.mulC(group, tile.columns), i));
    if (product.n % tile.wide())
      own = b.minS(own, b.idx(product.n - 1)); // a column that is there; its sums are not stored
    columnsAt.push_back(b.mulC(own, product.pitch()));
  }
  isMeasured = !product.norm;
  SmallVector<Value> sums(tile.rows * tile.columns, b.constant(b.getF32Type(), 0));
  int64_t steps = llvm::divideCeil(product.k, step), chunks = steps / chunk;
  if (chunks > 1 && product.norm)
    measureRows();
  if (chunks > 1)
    sums = b.forLoop(b.idx(0), b.idx(chunks * chunk), b.idx(chunk), sums, [&](Value first, ValueRange carried) {
      SmallVector<Value> own(carried);
      chunkOf(first, chunk, own);
      return own;
    });
  else
    chunkOf(b.idx(0), chunk, sums);
  if (steps % chunk)
    chunkOf(b.idx(chunks * chunk), steps % chunk, sums);
  tellSums(sums);
  writeSums();
}

/// The first loads of the matrix are under way while the rows come.
void FewEmitter::chunkOf(Value firstStep, int64_t steps, SmallVector<Value> &sums) {
  int64_t atOnce = std::clamp<int64_t>(kLoads / tile.columns, 1, steps);
  Loads first = loadSteps(firstStep, 0, atOnce);
  if (!isMeasured)
    measureRows();
  putRows(b.mulC(firstStep, step), steps * step);
  meet();
  multiplySteps(first, 0, sums);
  for (int64_t done = atOnce; done < steps; done += atOnce)
    multiplySteps(loadSteps(firstStep, done, std::min(atOnce, steps - done)), done, sums);
  meet();
}

FewEmitter::Loads FewEmitter::loadSteps(Value firstStep, int64_t from, int64_t count) {
  auto words = VectorType::get({4}, b.getI32Type());
  Loads loads;
  Value own = b.mulC(b.add(b.mulC(part, kWarp), lane), product.vector());
  for (int64_t i = from; i < from + count; ++i) {
    Value term = b.add(b.mulC(b.addC(firstStep, i), step), own), has;
    // Only the last step may end in the middle.
    if (product.pitch() % step) {
      has = b.cmp(arith::CmpIPredicate::slt, term, b.idx(product.pitch()));
      term = arith::SelectOp::create(b, has, term, b.idx(0));
    }
    SmallVector<Value> &each = loads.emplace_back();
    for (Value column : columnsAt) {
      Value from = b.elementPtr(b.storageType(product.element), b.buffer(product.buffer), b.add(column, term));
      Value loaded = LLVM::LoadOp::create(b, words, from, /*alignment=*/16);
      each.push_back(has ? Value(arith::SelectOp::create(b, has, loaded, b.constantInt(words, 0))) : loaded);
    }
  }
  return loads;
}

/// The numbers of a load, as f32.
SmallVector<Value> FewEmitter::numbersOf(Value words) {
  SmallVector<Value> numbers;
  Type f32 = b.getF32Type(), i32 = b.getI32Type(), i16 = b.getIntegerType(16);
  for (int64_t i = 0; i < 4; ++i) {
    Value word = vector::ExtractOp::create(b, words, i);
    if (product.element.isF32()) {
      numbers.push_back(arith::BitcastOp::create(b, f32, word));
      continue;
    }
    Value high = arith::ShRUIOp::create(b, word, b.constantInt(i32, 16));
    if (product.element.isBF16()) { // the upper half of an f32
      Value low = arith::ShLIOp::create(b, word, b.constantInt(i32, 16));
      high = arith::AndIOp::create(b, word, b.constantInt(i32, -65536));
      for (Value half : {low, high})
        numbers.push_back(arith::BitcastOp::create(b, f32, half));
      continue;
    }
    for (Value half : {word, high}) {
      Value bits = arith::TruncIOp::create(b, i16, half);
      numbers.push_back(e.widen(arith::BitcastOp::create(b, product.element, bits), product.element));
    }
  }
  return numbers;
}

/// Fours of a row lie so that neighbouring threads read neighbouring ones: those that begin a load before all that end
/// one.
Value FewEmitter::placeOf(Value row, Value term) {
  int64_t vector = product.vector(), fours = vector / 4;
  Value load = b.floorDiv(term, b.idx(vector)), within = b.rem(term, b.idx(vector));
  Value four = b.floorDiv(within, b.idx(4));
  return b.add(b.add(b.mulC(row, chunk * step), b.mulC(four, chunk * step / fours)),
               b.add(b.mulC(load, 4), b.rem(within, b.idx(4))));
}

Indices FewEmitter::indexOf(Value row, ArrayRef<Dim> dims, ArrayRef<Dim> whole) {
  size_t missing = whole.size() - dims.size();
  Indices index(dims.size() - 1, e.at(b.idx(0)));
  Index rest = e.at(row);
  for (size_t axis = whole.size() - 1; axis-- > 0;) {
    Index own = rest;
    if (whole[axis].is(1))
      own = e.at(b.idx(0));
    else if (!dmir::product(whole.take_front(axis)).is(1))
      std::tie(rest, own) = e.divRem(rest, whole[axis]);
    if (axis >= missing)
      index[axis - missing] = e.broadcastIndex(own, dims[axis - missing], whole[axis]);
  }
  return index;
}

/// What a norm's sums of a row come to, over all threads of the block: of its terms, or of their squares.
Value FewEmitter::fold(dmir::NormalizeOp norm, ArrayRef<Dim> dims, Value row, Value mean) {
  Type f32 = b.getF32Type();
  auto add = [&](ValueRange x, ValueRange y) -> SmallVector<Value> { return {arith::AddFOp::create(b, x[0], y[0])}; };
  bool squares = mean || norm.getKind() == dmir::Normalization::rms;
  Value zero = b.constant(f32, 0);
  SmallVector<Value> sums =
      dealOut(b, dims.back(), tile.threads(), kRowLoads, zero, [&](const Dealt &dealt, ValueRange sum) {
        SmallVector<Value> values;
        e.forget();
        for (Value position : dealt.positions) {
          Indices index = indexOf(row, dims, dims);
          index.push_back(e.at(position));
          values.push_back(e.evaluateWide(norm.getInput(), index));
        }
        Value total = sum[0];
        for (Value value : values) {
          Value term = mean ? Value(arith::SubFOp::create(b, value, mean)) : value;
          total = arith::AddFOp::create(b, total, squares ? Value(arith::MulFOp::create(b, term, term)) : term);
        }
        return SmallVector<Value>{total};
      });
  e.forget();
  return arith::DivFOp::create(b, b.ofTeam(sums, add)[0], sizeAsFloat(b, dims.back(), f32));
}

/// Mean and scale of each of the block's rows, to shared memory.
void FewEmitter::measureRows() {
  isMeasured = true;
  auto norm = cast<dmir::NormalizeOp>(product.norm);
  SmallVector<Dim> dims = dmir::dimsOf(norm.getInput());
  Type f32 = b.getF32Type();
  b.forLoop(0, tile.rows, 1, [&](Value own) {
    Value row = b.add(firstRow, own);
    if (!product.rows.known() || *product.rows.known() % tile.rows)
      row = b.minS(row, b.addC(b.idx(product.rows), -1));
    bool isCentred = norm.getKind() == dmir::Normalization::standard;
    Value mean = isCentred ? fold(norm, dims, row, {}) : Value();
    Value variance = fold(norm, dims, row, mean);
    Value epsilon = b.constant(f32, norm.getEpsilon().convertToDouble());
    Value scale = arith::DivFOp::create(
        b, b.constant(f32, 1), math::SqrtOp::create(b, arith::AddFOp::create(b, variance, epsilon)).getResult());
    b.byOne([&] {
      b.store(mean ? mean : b.constant(f32, 0), ofRows(), b.mulC(own, 2));
      b.store(scale, ofRows(), b.addC(b.mulC(own, 2), 1));
    });
  });
  meet();
}

/// An element of the norm's result.
Value FewEmitter::normalised(ArrayRef<Index> index) {
  auto norm = cast<dmir::NormalizeOp>(product.norm);
  Value value = e.evaluateWide(norm.getInput(), index);
  if (norm.getKind() == dmir::Normalization::standard)
    value = arith::SubFOp::create(b, value, b.load(b.getF32Type(), ofRows(), b.mulC(ownRow, 2)));
  Value scale = b.load(b.getF32Type(), ofRows(), b.addC(b.mulC(ownRow, 2), 1));
  return e.narrow(arith::MulFOp::create(b, value, scale), elementOf(norm.getResult()));
}

/// Terms of the block's rows to shared memory, zeros behind their ends.
void FewEmitter::putRows(Value firstTerm, int64_t terms) {
  Value left = product.left;
  SmallVector<Dim> dims = dmir::dimsOf(left), whole = dmir::dimsOf(product.result);
  int64_t all = tile.rows * terms, threads = tile.threads(), rounds = llvm::divideCeil(all, threads);
  auto put = [&](Value round, int64_t count) {
    SmallVector<std::pair<Value, Value>> values;
    for (int64_t i = 0; i < count; ++i) {
      Value number = b.add(b.mulC(b.addC(round, i), threads), b.threadInBlock());
      Value row = b.floorDiv(number, b.idx(terms)), own = b.rem(number, b.idx(terms)), term = b.add(firstTerm, own),
            at = b.add(firstRow, row);
      Value place = placeOf(row, own), has;
      auto within = [&](Value &position, Dim size) {
        Value inside = b.cmp(arith::CmpIPredicate::slt, position, b.idx(size));
        position = arith::SelectOp::create(b, inside, position, b.idx(0));
        has = has ? Value(arith::AndIOp::create(b, has, inside)) : inside;
      };
      if (product.k % step)
        within(term, product.k);
      if (!product.rows.known() || *product.rows.known() % tile.rows)
        within(at, product.rows);
      e.forget();
      ownRow = row;
      Indices index = indexOf(at, dims, whole);
      index.push_back(e.at(term));
      Value value = e.evaluateWide(left, index);
      values.emplace_back(has ? Value(arith::SelectOp::create(b, has, value, b.constant(b.getF32Type(), 0))) : value,
                          place);
    }
    for (auto [value, place] : values)
      b.store(value, b.shared(), place);
    e.forget();
  };
  // What is left over of the last round is put by some of the threads.
  int64_t full = all / threads, looped = full / kRowLoads * kRowLoads;
  if (looped > kRowLoads)
    b.forLoop(0, looped, kRowLoads, [&](Value round) { put(round, kRowLoads); });
  else if (looped)
    put(b.idx(0), kRowLoads);
  if (full > looped)
    put(b.idx(looped), full - looped);
  if (rounds > full)
    b.ifThen(b.cmp(arith::CmpIPredicate::slt, b.threadInBlock(), b.idx(all - full * threads)),
             [&] { put(b.idx(full), 1); });
}

void FewEmitter::multiplySteps(const Loads &loads, int64_t from, SmallVector<Value> &sums) {
  auto four = VectorType::get({4}, b.getF32Type());
  int64_t fours = product.vector() / 4;
  Value own = b.mulC(b.add(b.mulC(part, kWarp), lane), 4);
  for (auto [i, columns] : llvm::enumerate(loads)) {
    SmallVector<SmallVector<Value>> matrix;
    for (Value words : columns)
      matrix.push_back(numbersOf(words));
    int64_t first = (from + static_cast<int64_t>(i)) * step / fours;
    for (int64_t row = 0; row < tile.rows; ++row)
      for (int64_t half = 0; half < fours; ++half) {
        Value at = b.addC(own, row * chunk * step + half * (chunk * step / fours) + first);
        Value terms = LLVM::LoadOp::create(b, four, b.elementPtr(b.getF32Type(), b.shared(), at), /*alignment=*/16);
        for (int64_t t = 0; t < 4; ++t) {
          Value term = vector::ExtractOp::create(b, terms, t);
          for (int64_t column = 0; column < tile.columns; ++column) {
            Value &sum = sums[row * tile.columns + column];
            sum = b.fma(term, matrix[column][half * 4 + t], sum);
          }
        }
      }
  }
}

/// Lanes add up in pairs, then the first of each warp tells the block its sums.
void FewEmitter::tellSums(ArrayRef<Value> sums) {
  auto add = [&](ValueRange x, ValueRange y) {
    SmallVector<Value> all;
    for (auto [left, right] : llvm::zip(x, y))
      all.push_back(arith::AddFOp::create(b, left, right));
    return all;
  };
  SmallVector<Value> whole = b.ofWarp(llvm::to_vector(sums), kWarp, add);
  Value base = b.elementPtr(b.getI8Type(), b.shared(), b.idx(product.rowBytes(tile)));
  b.ifThen(b.cmp(arith::CmpIPredicate::eq, lane, b.idx(0)), [&] {
    for (int64_t row = 0; row < tile.rows; ++row)
      for (int64_t column = 0; column < tile.columns; ++column)
        b.store(whole[row * tile.columns + column], base, b.add(sumPlace(group, b.idx(column), b.idx(row)), part));
  });
  meet();
}

/// A thread has a sum of the warps' sums, neighbours those of neighbouring columns, and what follows the product.
void FewEmitter::writeSums() {
  Value base = b.elementPtr(b.getI8Type(), b.shared(), b.idx(product.rowBytes(tile)));
  int64_t wide = tile.wide(), all = tile.rows * wide;
  SmallVector<Dim> whole = dmir::dimsOf(product.result);
  auto write = [&](Value number) {
    Value row = b.floorDiv(number, b.idx(wide)), own = b.rem(number, b.idx(wide));
    Value place = b.mulC(b.add(b.mulC(own, tile.rows), row), tile.together), sum;
    for (int64_t i = 0; i < tile.together; ++i) {
      Value each = b.load(b.getF32Type(), base, b.addC(place, i));
      sum = sum ? Value(arith::AddFOp::create(b, sum, each)) : each;
    }
    Value at = b.add(firstRow, row), column = b.add(firstColumn, own);
    Value isThere = arith::AndIOp::create(b, b.cmp(arith::CmpIPredicate::slt, at, b.idx(product.rows)),
                                          b.cmp(arith::CmpIPredicate::slt, column, b.idx(product.n)));
    b.ifThen(isThere, [&] {
      e.forget();
      e.bindValue(product.result, fromAccumulator(e, sum, elementOf(product.result)));
      Indices index = indexOf(at, whole, whole);
      index.push_back(e.at(column));
      writer.write(index);
    });
    e.forget();
  };
  b.forLoop(b.threadInBlock(), b.idx(all), b.idx(tile.threads()), write);
  meet(); // before the room is used again
}

} // namespace

void dmxc::cuda::emitFewRows(CudaBuilder &b, const RegionBody &body, const FewRows &product, const FewTile &tile) {
  FewEmitter(b, body, product, tile).emit();
}
