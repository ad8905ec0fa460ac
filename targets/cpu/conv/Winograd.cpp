//===- Winograd.cpp - convolution by minimal filtering ------------------------===//
//
// Loops: work item (block of tiles, group of output channels) > position of the transformed tile > register tile of
// tiles > input channels. A call transforms the input of a block once, to scratch as [position][tile][channel], for all
// groups of channels that follow; the sums wait in scratch as [position][tile][output channel] until all positions are
// there. Rows of both are padded by a cache line, so that they do not share cache sets.
//
//===----------------------------------------------------------------------===//

#include "Winograd.h"

#include "WinogradScheme.h"
#include "targets/cpu/product/GemmTile.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace dmxc::cpu::winograd;
using namespace mlir;

namespace {

constexpr int64_t kUnroll = 4;

/// The tiles of an image that is one block of an odd size, by how they overhang. In scratch they follow each other in
/// this order, so that those that need a position are neighbours, whichever it is. Of other blocks all count as whole.
struct Overhang {
  int64_t right = 0, whole = 0, below = 0, corner = 0;

  int64_t tiles() const { return right + whole + below + corner; }
};

Overhang overhangOf(const WinogradSpec &spec, const WinogradTiles &t) {
  if (!spec.isStatic() || *t.blocks.known() != 1)
    return {0, t.blockTiles, 0, 0};
  int64_t height = *spec.outHeight.known(), width = *spec.outWidth.known();
  int64_t rows = height / kOut, columns = width / kOut;
  return {width % kOut * rows, rows * columns, height % kOut * columns, width % kOut * (height % kOut)};
}

class WinogradEmitter {
public:
  using Values = SmallVector<Value>;

  WinogradEmitter(CpuBuilder &b, const WinogradSpec &spec, const WinogradTiles &tiles, Value input, Value weights,
                  const ConvCallbacks &callbacks, int64_t scratchOffset);
  void emit();

private:
  /// A block of tiles of an image.
  struct Block {
    Value image, first, count;
  };
  /// Some vectors of output channels.
  struct Group {
    Value oc, weights;
    int64_t vectors, tailChannels;
  };
  /// Output position of a tile's first pixel, and the tile's number in scratch.
  struct Place {
    Value y, x, slot;
  };

  Place placeOf(const Block &block, Value inBlock);
  void transformInput(const Block &block);
  void transformTile(const Block &block, Value inBlock);
  void multiply(const Block &block, const Group &group);
  void ifForAll(Value position, bool overhanging, llvm::function_ref<void()> forAll,
                llvm::function_ref<void()> forWhole);
  void multiplyTiles(const Group &group, Value position, int64_t first, int64_t count);
  void multiplyRows(const Group &group, Value position, Value share, int64_t shares, Value firstRow, int64_t rows);
  Value nextPanel(const Group &group, Value position);
  void transformOutput(const Block &block, const Group &group);
  void storeTile(const Block &block, const Group &group, Value inBlock);
  Values transformed(const Matrix &matrix, int64_t rows, Values values, int64_t columns);
  Value panelOf(Value position);
  Value combined(ArrayRef<int> coefficients, ValueRange values);

  int64_t inputRow() const { return spec.ic + kPad; }
  int64_t inputPlane() const { return t.blockTiles * inputRow(); }
  int64_t sumsPlane() const { return t.blockTiles * t.columns() + kPad; }
  int64_t panelElements() const { return kPanels * spec.ic * 16; }

  CpuBuilder &b;
  const WinogradSpec &spec;
  const WinogradTiles &t;
  const Scheme &scheme;
  const Overhang overhang;
  Value input, weights;
  const ConvCallbacks &callbacks;
  Type f32;
  Value tiles, sums, pixels; ///< scratch
};

WinogradEmitter::WinogradEmitter(CpuBuilder &b, const WinogradSpec &spec, const WinogradTiles &tiles, Value input,
                                 Value weights, const ConvCallbacks &callbacks, int64_t scratchOffset)
    : b(b), spec(spec), t(tiles), scheme(schemeOf(spec.stride)), overhang(overhangOf(spec, tiles)), input(input),
      weights(weights), callbacks(callbacks), f32(b.getF32Type()) {
  this->tiles = b.elementPtr(b.getI8Type(), b.scratch(), b.idx(scratchOffset));
  sums = b.elementPtr(f32, this->tiles, b.idx(scheme.positions() * inputPlane()));
  pixels = b.elementPtr(f32, sums, b.idx(scheme.positions() * sumsPlane()));
}

void WinogradEmitter::emit() {
  int64_t full = spec.oc / t.columns(), tail = spec.oc % t.columns();
  Value groups = b.idx(full + (tail > 0)), blocks = b.idx(t.blocks);
  // Carried along: the block whose transformed input is in scratch.
  auto item = [&](Value index, ValueRange carried) -> Values {
    Value group = b.rem(index, groups), number = b.floorDiv(index, groups);
    Block block;
    block.image = b.floorDiv(number, blocks);
    Value position = b.rem(number, blocks), tiles = b.idx(t.imageTiles());
    if (spec.isStatic()) {
      block.first = b.mulC(position, t.blockTiles);
      block.count = b.minS(b.sub(tiles, block.first), b.idx(t.blockTiles));
    } else {
      // Blocks of about equal numbers of register tiles, so that equal numbers of items are equal work.
      Value registerTiles = b.ceilDiv(tiles, b.idx(t.rows));
      auto tileOf = [&](Value at) { return b.mulC(b.floorDiv(b.mul(at, registerTiles), blocks), t.rows); };
      block.first = tileOf(position);
      block.count = b.sub(b.minS(tileOf(b.addC(position, 1)), tiles), block.first);
    }
    b.ifThen(b.cmp(arith::CmpIPredicate::ne, number, carried[0]), [&] { transformInput(block); });
    Value oc = b.mulC(group, t.columns());
    Value panel = b.add(b.mulC(b.floorDiv(oc, b.idx(16)), panelElements()), b.rem(oc, b.idx(16)));
    auto compute = [&](int64_t vectors, int64_t tailChannels) {
      Group channels{oc, b.elementPtr(f32, weights, panel), vectors, tailChannels};
      multiply(block, channels);
      transformOutput(block, channels);
    };
    auto whole = [&] { compute(t.vectors, 0); };
    auto last = [&] { compute(ceilDivInt(tail, t.lanes), tail); };
    if (!tail)
      whole();
    else if (!full)
      last();
    else
      b.ifThen(b.cmp(arith::CmpIPredicate::slt, group, b.idx(full)), whole, last);
    return {number};
  };
  b.keep(b.forLoop(b.begin(), b.end(), b.idx(1), {b.kept()}, item).front());
}

WinogradEmitter::Place WinogradEmitter::placeOf(const Block &block, Value inBlock) {
  Value columns = b.idx(t.tilesX), tile = b.add(block.first, inBlock);
  Value y = b.floorDiv(tile, columns), x = b.rem(tile, columns), slot = inBlock;
  if (overhang.right > 0) {
    int64_t wholeColumns = *t.tilesX.known() - 1, wholeRows = overhang.right;
    auto chosen = [&](Value at, int64_t end, Value before, Value otherwise) -> Value {
      return arith::SelectOp::create(b, b.cmp(arith::CmpIPredicate::slt, at, b.idx(end)), before, otherwise);
    };
    Value wholeOrBelow = b.addC(b.add(b.mulC(y, wholeColumns), x), overhang.right);
    slot = chosen(x, wholeColumns, wholeOrBelow, chosen(y, wholeRows, y, b.idx(overhang.tiles() - 1)));
  }
  return {b.mulC(y, kOut), b.mulC(x, kOut), slot};
}

//===----------------------------------------------------------------------===//
// Transforms
//===----------------------------------------------------------------------===//

/// The sum of values times 0, 1 or -1; at least one coefficient is 1.
Value WinogradEmitter::combined(ArrayRef<int> coefficients, ValueRange values) {
  Value sum;
  for (int sign : {1, -1})
    for (auto [coefficient, value] : llvm::zip(coefficients, values)) {
      if (coefficient != sign)
        continue;
      if (!sum)
        sum = value;
      else
        sum = sign > 0 ? Value(arith::AddFOp::create(b, sum, value)) : Value(arith::SubFOp::create(b, sum, value));
    }
  return sum;
}

/// The first `rows` rows of `matrix` times values[scheme.in][columns].
WinogradEmitter::Values WinogradEmitter::transformed(const Matrix &matrix, int64_t rows, Values values,
                                                     int64_t columns) {
  Values result;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      Values line;
      for (int64_t i = 0; i < scheme.in; ++i)
        line.push_back(values[i * columns + column]);
      result.push_back(combined(ArrayRef(matrix[row]).take_front(scheme.in), line));
    }
  return result;
}

static SmallVector<Value> transposed(ArrayRef<Value> values, int64_t columns) {
  SmallVector<Value> result;
  for (int64_t column = 0; column < columns; ++column)
    for (size_t at = column; at < values.size(); at += columns)
      result.push_back(values[at]);
  return result;
}

void WinogradEmitter::transformInput(const Block &block) {
  b.forLoop(b.idx(0), block.count, b.idx(1), [&](Value inBlock) { transformTile(block, inBlock); });
}

void WinogradEmitter::transformTile(const Block &block, Value inBlock) {
  Place place = placeOf(block, inBlock);
  Value y = b.sub(b.mulC(place.y, spec.stride), b.idx(spec.padTop));
  Value x = b.sub(b.mulC(place.x, spec.stride), b.idx(spec.padLeft));
  auto below = [&](Value at, Value size) { return b.cmp(arith::CmpIPredicate::ult, at, size); };
  auto both = [&](Value p, Value q) -> Value { return arith::AndIOp::create(b, p, q); };
  Value height = b.idx(spec.height), width = b.idx(spec.width), positions = b.mul(height, width);
  Value image = b.elementPtr(f32, input, b.mulC(b.mul(block.image, positions), ceilDivInt(spec.ic, 16) * 16));
  Value target = b.elementPtr(f32, tiles, b.mulC(place.slot, inputRow()));
  auto channels = [&](llvm::function_ref<Value(Value, int64_t, int64_t)> load) {
    b.forLoop(0, spec.ic, t.lanes, [&](Value channel) {
      Value plane = b.mulC(b.mul(b.floorDiv(channel, b.idx(16)), positions), 16);
      Value base = b.elementPtr(f32, image, b.add(plane, b.rem(channel, b.idx(16))));
      Values values;
      for (int64_t i = 0; i < scheme.positions(); ++i)
        values.push_back(load(base, i / scheme.in, i % scheme.in));
      // B^T d B = (B^T (B^T d)^T)^T
      values = transposed(transformed(scheme.input, scheme.in, values, scheme.in), scheme.in);
      values = transposed(transformed(scheme.input, scheme.in, values, scheme.in), scheme.in);
      for (int64_t i = 0; i < scheme.positions(); ++i)
        b.store(values[i], target, b.addC(channel, i * inputPlane()));
    });
  };
  Value inside = both(both(below(y, height), below(b.addC(y, scheme.in - 1), height)),
                      both(below(x, width), below(b.addC(x, scheme.in - 1), width)));
  Value origin = b.add(b.mul(y, width), x);
  auto at = [&](int64_t row, int64_t column) { return b.mulC(b.add(origin, b.addC(b.mulC(width, row), column)), 16); };
  b.ifThen(
      inside,
      [&] {
        channels([&](Value base, int64_t row, int64_t column) { return b.load(f32, base, at(row, column), t.lanes); });
      },
      [&] {
        Values rows, columns;
        for (int64_t i = 0; i < scheme.in; ++i) {
          rows.push_back(below(b.addC(y, i), height));
          columns.push_back(below(b.addC(x, i), width));
        }
        channels([&](Value base, int64_t row, int64_t column) {
          Value mask = b.splat(both(rows[row], columns[column]), t.lanes);
          return b.maskedLoad(f32, base, at(row, column), mask);
        });
      });
}

void WinogradEmitter::transformOutput(const Block &block, const Group &group) {
  b.forLoop(b.idx(0), block.count, b.idx(1), [&](Value inBlock) { storeTile(block, group, inBlock); });
}

void WinogradEmitter::storeTile(const Block &block, const Group &group, Value inBlock) {
  Place place = placeOf(block, inBlock);
  Value from = b.elementPtr(f32, sums, b.mulC(place.slot, t.columns()));
  auto valuesOf = [&](int64_t v) {
    Values values;
    for (int64_t i = 0; i < scheme.positions(); ++i)
      values.push_back(b.load(f32, from, b.idx(i * sumsPlane() + v * t.lanes), t.lanes));
    values = transposed(transformed(scheme.output, kOut, values, scheme.in), scheme.in);
    return transposed(transformed(scheme.output, kOut, values, kOut), kOut);
  };
  auto storePixel = [&](Value y, Value x, int64_t v, Value value) {
    int64_t left = group.tailChannels - v * t.lanes;
    Value mask = group.tailChannels && left < t.lanes ? b.headMask(t.lanes, left) : Value();
    Value position = b.add(b.mul(y, b.idx(spec.outWidth)), x);
    callbacks.store(block.image, b.addC(group.oc, v * t.lanes), position, value, mask);
  };
  // The last tiles of an odd size overhang.
  auto ifInside = [&](Value at, Dim size, bool first, llvm::function_ref<void()> body) {
    first || size.valueOr(1) % kOut == 0 ? body() : b.ifThen(b.cmp(arith::CmpIPredicate::slt, at, b.idx(size)), body);
  };
  if (!spec.heavyEpilogue) {
    for (int64_t v = 0; v < group.vectors; ++v) {
      Values values = valuesOf(v);
      for (int64_t i = 0; i < kOut * kOut; ++i) {
        Value y = b.addC(place.y, i / kOut), x = b.addC(place.x, i % kOut);
        ifInside(y, spec.outHeight, i / kOut == 0,
                 [&] { ifInside(x, spec.outWidth, i % kOut == 0, [&] { storePixel(y, x, v, values[i]); }); });
      }
    }
    return;
  }
  for (int64_t v = 0; v < group.vectors; ++v)
    for (auto [i, value] : llvm::enumerate(valuesOf(v)))
      b.store(value, pixels, b.idx(static_cast<int64_t>(i) * t.columns() + v * t.lanes));
  b.forLoop(0, kOut * kOut, 1, [&](Value i) {
    Value y = b.add(place.y, b.floorDiv(i, b.idx(kOut))), x = b.add(place.x, b.rem(i, b.idx(kOut)));
    ifInside(y, spec.outHeight, false, [&] {
      ifInside(x, spec.outWidth, false, [&] {
        for (int64_t v = 0; v < group.vectors; ++v)
          storePixel(y, x, v, b.load(f32, pixels, b.addC(b.mulC(i, t.columns()), v * t.lanes), t.lanes));
      });
    });
  });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void WinogradEmitter::multiply(const Block &block, const Group &group) {
  auto [right, whole, below, corner] = overhang;
  b.forLoop(0, scheme.positions(), 1, [&](Value position) {
    if (!spec.isStatic())
      return cutInTiles(b, block.count, t.rows, {2, t.rows / 2}, [&](int64_t rows, Value at, Value) {
        multiplyRows(group, position, b.floorDiv(at, b.idx(t.rows)), ceilDivInt(t.blockTiles, t.rows), at, rows);
      });
    Value row = b.floorDiv(position, b.idx(scheme.in)), column = b.rem(position, b.idx(scheme.in));
    auto ofRows = [&](int64_t first, int64_t above, int64_t all) {
      ifForAll(
          row, below + corner > 0, [&] { multiplyTiles(group, position, first, all); },
          [&] { multiplyTiles(group, position, first, above); });
    };
    ifForAll(
        column, right + corner > 0, [&] { ofRows(0, right + whole, overhang.tiles()); },
        [&] { ofRows(right, whole, whole + below); });
  });
}

/// Decides whether tiles that overhang along an axis, if there are any, need a position along it.
void WinogradEmitter::ifForAll(Value position, bool overhanging, llvm::function_ref<void()> forAll,
                               llvm::function_ref<void()> forWhole) {
  if (!overhanging)
    return forAll();
  Value whole;
  for (int64_t i = 0; i < scheme.in; ++i)
    if (scheme.forSecondOnly(i)) {
      Value same = b.cmp(arith::CmpIPredicate::eq, position, b.idx(i));
      whole = whole ? Value(arith::OrIOp::create(b, whole, same)) : same;
    }
  b.ifThen(whole, forWhole, forAll);
}

/// Multiplies `count` tiles from `first` on, in balanced register tiles: the first `high` of them have one row more.
void WinogradEmitter::multiplyTiles(const Group &group, Value position, int64_t first, int64_t count) {
  if (count == 0)
    return;
  int64_t shares = ceilDivInt(count, t.rows), low = count / shares, high = count % shares;
  auto multiplyFrom = [&](int64_t begin, int64_t end, int64_t rows) {
    b.forLoop(begin, end, 1, [&](Value i) {
      multiplyRows(group, position, i, shares, b.addC(b.mulC(i, rows), first + (rows == low ? high : 0)), rows);
    });
  };
  multiplyFrom(0, high, low + 1);
  multiplyFrom(high, shares, low);
}

/// The number of a position's weights.
Value WinogradEmitter::panelOf(Value position) {
  if (scheme.in == kWeightRows)
    return position;
  auto row = [&](Value at) { return b.minS(at, b.idx(kWeightRows - 1)); };
  return b.add(b.mulC(row(b.floorDiv(position, b.idx(scheme.in))), kWeightRows),
               row(b.rem(position, b.idx(scheme.in))));
}

/// The weights that come after those of a position: of the next one, or of the next group.
Value WinogradEmitter::nextPanel(const Group &group, Value position) {
  Value last = b.cmp(arith::CmpIPredicate::eq, position, b.idx(scheme.positions() - 1));
  Value next = arith::SelectOp::create(b, last, b.idx(t.columns() / 16 * panelElements()),
                                       b.mulC(panelOf(b.addC(position, 1)), spec.ic * 16));
  return b.elementPtr(f32, group.weights, next);
}

/// Rows beyond a short block's tiles are multiplied too, whatever they hold; they are never stored. The weights that
/// come next are fetched meanwhile, an equal share of them by each register tile.
void WinogradEmitter::multiplyRows(const Group &group, Value position, Value share, int64_t shares, Value firstRow,
                                   int64_t rows) {
  RegisterTile regs{rows, group.vectors, t.lanes, f32};
  Value left = b.elementPtr(f32, tiles, b.add(b.mulC(position, inputPlane()), b.mulC(firstRow, inputRow())));
  Value right = b.elementPtr(f32, group.weights, b.mulC(panelOf(position), spec.ic * 16));
  Value upcoming = nextPanel(group, position);
  int64_t panels = t.columns() / 16; // 0 on levels whose groups share a panel
  auto step = [&](Value k, ValueRange carried) {
    Values next(carried);
    Value line = b.floorDiv(b.add(b.mulC(share, spec.ic), k), b.idx(shares));
    for (int64_t q = 0; q < ceilDivInt(kUnroll, shares); ++q)
      for (int64_t p = 0; p < panels; ++p)
        b.prefetch(f32, upcoming, b.addC(b.mulC(b.addC(line, q), 16), p * panelElements()), /*locality=*/2);
    for (int64_t u = 0; u < kUnroll; ++u) {
      // A pointer of its own keeps LLVM from sharing loads between steps and running out of registers.
      Value row = b.opaque(b.elementPtr(f32, left, b.addC(k, u)));
      Value panel = b.elementPtr(f32, right, b.mulC(b.addC(k, u), 16));
      Values w;
      for (int64_t v = 0; v < group.vectors; ++v) {
        int64_t column = v * t.lanes, at = column / 16 * panelElements() + column % 16;
        w.push_back(b.load(f32, panel, b.idx(at), t.lanes));
      }
      accumulateTile(b, regs, next, [&](int64_t r) { return b.load(f32, row, b.idx(r * inputRow())); }, w);
    }
    return next;
  };
  Values acc = sumInStretches(b, regs, b.idx(0), b.idx(spec.ic), kUnroll,
                              stepsOfStretch(convStretch(spec.ic), 1, kUnroll), zeroTile(b, regs), step);
  Value to = b.elementPtr(f32, sums, b.add(b.mulC(position, sumsPlane()), b.mulC(firstRow, t.columns())));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t v = 0; v < group.vectors; ++v)
      b.store(acc[r * group.vectors + v], to, b.idx(r * t.columns() + v * t.lanes));
}

} // namespace

SmallVector<int64_t> dmxc::cpu::tilesAtOnce(const WinogradSpec &spec, const WinogradTiles &tiles) {
  auto [right, whole, below, corner] = overhangOf(spec, tiles);
  return {right + whole + below + corner, right + whole, whole + below, whole};
}

void dmxc::cpu::emitWinograd(CpuBuilder &b, const WinogradSpec &spec, const WinogradTiles &tiles, Value input,
                             Value weights, const ConvCallbacks &callbacks, int64_t scratchOffset) {
  WinogradEmitter(b, spec, tiles, input, weights, callbacks, scratchOffset).emit();
}
