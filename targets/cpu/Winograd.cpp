//===- Winograd.cpp - convolution by minimal filtering ------------------------===//
//
// Loops: work item (block of tiles, group of output channels) > position of the transformed tile > register tile of
// tiles > input channels. A call transforms the input of a block once, to scratch as [position][tile][channel], for all
// groups of channels that follow; the sums wait in scratch as [position][tile][output channel] until all positions are
// there. Rows of both are padded by a cache line, so that they do not share cache sets.
//
//===----------------------------------------------------------------------===//

#include "Winograd.h"

#include "GemmTile.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

namespace {

constexpr int64_t kOut = 2, kTaps = 3;
constexpr int64_t kWeightRows = 4, kPanels = kWeightRows * kWeightRows; ///< of transformed weights
constexpr int64_t kPad = 16;                                            ///< elements of a cache line
constexpr int64_t kInputBytes = 640 << 10; ///< transformed input of a block; leaves room for weights in L2
constexpr int64_t kUnroll = 4;

using Matrix = std::array<std::array<int, 5>, 5>;
/// What a tile goes through along one axis.
struct Scheme {
  int64_t in; ///< inputs it reads, which become as many positions
  Matrix input, output;
  double weights[kWeightRows][kTaps]; ///< a row for each position, the last one for all that are left

  int64_t positions() const { return in * in; }
};
constexpr Scheme kStride1{4,
                          {{{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}}},
                          {{{1, 1, 1, 0}, {0, 1, -1, -1}}},
                          {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}}};
/// F(2, 2) of the even inputs, and the odd ones times the tap in the middle.
constexpr Scheme kStride2{5,
                          {{{1, 0, -1, 0, 0}, {0, 0, 1, 0, 0}, {0, 0, 1, 0, -1}, {0, 1, 0, 0, 0}, {0, 0, 0, 1, 0}}},
                          {{{1, 1, 0, 1, 0}, {0, 1, -1, 0, 1}}},
                          {{1, 0, 0}, {1, 0, 1}, {0, 0, 1}, {0, 1, 0}}};
constexpr const Scheme &schemeOf(int64_t stride) { return stride == 1 ? kStride1 : kStride2; }

class WinogradEmitter {
public:
  using Values = SmallVector<Value>;

  WinogradEmitter(KernelBuilder &b, const WinogradSpec &spec, const WinogradTiles &tiles, Value input, Value weights,
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
  /// Output position of a tile's first pixel.
  struct Corner {
    Value y, x;
  };

  Corner cornerOf(Value tile);
  void transformInput(const Block &block);
  void transformTile(const Block &block, Value inBlock);
  void multiply(const Block &block, const Group &group);
  void multiplyRows(const Group &group, Value position, Value tile, Value firstRow, int64_t rows);
  Value nextPanel(const Group &group, Value position);
  void transformOutput(const Block &block, const Group &group);
  void storeTile(const Block &block, const Group &group, Value inBlock);
  Values transformed(const Matrix &matrix, int64_t rows, Values values, int64_t columns);
  Value panelOf(Value position);
  Value combined(ArrayRef<int> coefficients, ValueRange values);

  int64_t inputRow() const { return spec.ic + kPad; }
  int64_t inputPlane() const { return t.blockTiles * inputRow(); }
  int64_t sumsPlane() const { return t.blockTiles * t.columns() + kPad; }
  int64_t registerTiles() const { return ceilDivInt(t.blockTiles, t.rows); } ///< of a full block
  int64_t panelElements() const { return kPanels * spec.ic * 16; }

  KernelBuilder &b;
  const WinogradSpec &spec;
  const WinogradTiles &t;
  const Scheme &scheme;
  Value input, weights;
  const ConvCallbacks &callbacks;
  Type f32;
  Value tiles, sums, pixels; ///< scratch
};

WinogradEmitter::WinogradEmitter(KernelBuilder &b, const WinogradSpec &spec, const WinogradTiles &tiles, Value input,
                                 Value weights, const ConvCallbacks &callbacks, int64_t scratchOffset)
    : b(b), spec(spec), t(tiles), scheme(schemeOf(spec.stride)), input(input), weights(weights), callbacks(callbacks),
      f32(b.getF32Type()) {
  this->tiles = b.elementPtr(b.getI8Type(), b.scratch(), b.idx(scratchOffset));
  sums = b.elementPtr(f32, this->tiles, b.idx(scheme.positions() * inputPlane()));
  pixels = b.elementPtr(f32, sums, b.idx(scheme.positions() * sumsPlane()));
}

void WinogradEmitter::emit() {
  int64_t full = spec.oc / t.columns(), tail = spec.oc % t.columns();
  Value groups = b.idx(full + (tail > 0)), blocks = b.idx(t.blocks);
  // Carried along: the block whose transformed input is in scratch.
  b.forLoop(b.begin(), b.end(), b.idx(1), {b.idx(-1)}, [&](Value index, ValueRange carried) -> Values {
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
  });
}

WinogradEmitter::Corner WinogradEmitter::cornerOf(Value tile) {
  Value columns = b.idx(t.tilesX);
  return {b.mulC(b.floorDiv(tile, columns), kOut), b.mulC(b.rem(tile, columns), kOut)};
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
  Corner corner = cornerOf(b.add(block.first, inBlock));
  Value y = b.sub(b.mulC(corner.y, spec.stride), b.idx(spec.padTop));
  Value x = b.sub(b.mulC(corner.x, spec.stride), b.idx(spec.padLeft));
  auto below = [&](Value at, Value size) { return b.cmp(arith::CmpIPredicate::ult, at, size); };
  auto both = [&](Value p, Value q) -> Value { return arith::AndIOp::create(b, p, q); };
  Value height = b.idx(spec.height), width = b.idx(spec.width), positions = b.mul(height, width);
  Value image = b.elementPtr(f32, input, b.mulC(b.mul(block.image, positions), ceilDivInt(spec.ic, 16) * 16));
  Value target = b.elementPtr(f32, tiles, b.mulC(inBlock, inputRow()));
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
  Corner corner = cornerOf(b.add(block.first, inBlock));
  Value from = b.elementPtr(f32, sums, b.mulC(inBlock, t.columns()));
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
        Value y = b.addC(corner.y, i / kOut), x = b.addC(corner.x, i % kOut);
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
    Value y = b.add(corner.y, b.floorDiv(i, b.idx(kOut))), x = b.add(corner.x, b.rem(i, b.idx(kOut)));
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
  b.forLoop(0, scheme.positions(), 1, [&](Value position) {
    if (!spec.isStatic())
      return cutInTiles(b, block.count, t.rows, {2, t.rows / 2}, [&](int64_t rows, Value at, Value) {
        multiplyRows(group, position, b.floorDiv(at, b.idx(t.rows)), at, rows);
      });
    // Balanced register tiles: the first `high` of them have one row more.
    int64_t count = registerTiles(), low = t.blockTiles / count, high = t.blockTiles % count;
    b.forLoop(0, high, 1, [&](Value i) { multiplyRows(group, position, i, b.mulC(i, low + 1), low + 1); });
    b.forLoop(high, count, 1, [&](Value i) { multiplyRows(group, position, i, b.addC(b.mulC(i, low), high), low); });
  });
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
void WinogradEmitter::multiplyRows(const Group &group, Value position, Value tile, Value firstRow, int64_t rows) {
  RegisterTile regs{rows, group.vectors, t.lanes, f32};
  Value left = b.elementPtr(f32, tiles, b.add(b.mulC(position, inputPlane()), b.mulC(firstRow, inputRow())));
  Value right = b.elementPtr(f32, group.weights, b.mulC(panelOf(position), spec.ic * 16));
  Value upcoming = nextPanel(group, position);
  int64_t panels = t.columns() / 16; // 0 on levels whose groups share a panel
  auto step = [&](Value k, ValueRange carried) {
    Values next(carried);
    Value line = b.floorDiv(b.add(b.mulC(tile, spec.ic), k), b.idx(registerTiles()));
    for (int64_t q = 0; q < ceilDivInt(kUnroll, registerTiles()); ++q)
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
      accumulateTile(
          b, regs, next, [&](int64_t r) { return b.load(f32, row, b.idx(r * inputRow())); }, w);
    }
    return next;
  };
  Values acc = sumInRuns(b, regs, b.idx(0), b.idx(spec.ic), kUnroll, stepsOfRun(convRun(spec.ic), 1, kUnroll),
                         zeroTile(b, regs), step);
  Value to = b.elementPtr(f32, sums, b.add(b.mulC(position, sumsPlane()), b.mulC(firstRow, t.columns())));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t v = 0; v < group.vectors; ++v)
      b.store(acc[r * group.vectors + v], to, b.idx(r * t.columns() + v * t.lanes));
}

} // namespace

void dmxc::cpu::emitWinograd(KernelBuilder &b, const WinogradSpec &spec, const WinogradTiles &tiles, Value input,
                             Value weights, const ConvCallbacks &callbacks, int64_t scratchOffset) {
  WinogradEmitter(b, spec, tiles, input, weights, callbacks, scratchOffset).emit();
}

//===----------------------------------------------------------------------===//
// Choice
//===----------------------------------------------------------------------===//

bool dmxc::cpu::winogradPays(const WinogradSpec &spec) {
  if (spec.ic < 32 || spec.oc < 32 || spec.outHeight.is(0) || spec.outWidth.is(0))
    return false;
  // Tiles that overhang compute for nothing.
  auto waste = [](Dim size) {
    int64_t known = size.valueOr(kOut);
    return static_cast<double>(ceilDivInt(known, kOut) * kOut) / std::max<int64_t>(known, 1);
  };
  double gain = double(kOut * kOut * kTaps * kTaps) / schemeOf(spec.stride).positions();
  double asked = spec.stride == 1 ? 1.5 : 1.2;
  return gain >= asked * waste(spec.outHeight) * waste(spec.outWidth);
}

WinogradTiles dmxc::cpu::chooseWinogradTiles(const WinogradSpec &spec, const IsaLevel &isa) {
  WinogradTiles t;
  t.tilesX = Dim::ceilDiv(spec.outWidth, kOut);
  t.tilesY = Dim::ceilDiv(spec.outHeight, kOut);
  t.lanes = isa.lanes(32);
  TileShape most = largestConvTile(isa, spec.f32, spec.ic);
  t.vectors = most.vectors;
  t.rows = most.rows;
  int64_t fitting = kInputBytes / (schemeOf(spec.stride).positions() * (spec.ic + kPad) * 4);
  // Of open sizes a small image should still be one block.
  t.blockTiles = std::clamp<int64_t>(fitting, spec.isStatic() ? 14 : 28, 56) / t.rows * t.rows;
  if (std::optional<int64_t> tiles = t.imageTiles().known())
    t.blockTiles = ceilDivInt(*tiles, ceilDivInt(*tiles, t.blockTiles));
  t.blocks = Dim::ceilDiv(t.imageTiles(), t.blockTiles);
  return t;
}

Dim dmxc::cpu::winogradWorkItems(const WinogradSpec &spec, const WinogradTiles &t) {
  return spec.n * t.blocks * ceilDivInt(spec.oc, t.columns());
}

int64_t dmxc::cpu::winogradGrain(const WinogradSpec &spec, const WinogradTiles &t) {
  double flops = 2.0 * schemeOf(spec.stride).positions() * t.blockTiles * t.columns() * spec.ic;
  // Enough groups of channels to pay for the transforms of their input.
  return std::max<int64_t>(static_cast<int64_t>(4e5 / flops), std::min<int64_t>(4, ceilDivInt(spec.oc, t.columns())));
}

int64_t dmxc::cpu::winogradScratchBytes(const WinogradSpec &spec, const WinogradTiles &t) {
  int64_t row = spec.ic + kPad + t.columns();
  int64_t elements = schemeOf(spec.stride).positions() * (t.blockTiles * row + kPad) + kOut * kOut * t.columns();
  return ceilDivInt(elements * 4, 64) * 64;
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

int64_t dmxc::cpu::winogradWeightBytes(int64_t outputs, int64_t inputs) {
  return ceilDivInt(outputs, 16) * kPanels * inputs * 16 * 4;
}

void dmxc::cpu::packWinogradWeights(int64_t outputs, int64_t inputs, int64_t stride, const std::byte *src,
                                    std::span<std::byte> dst) {
  const auto *from = reinterpret_cast<const float *>(src);
  auto *to = reinterpret_cast<float *>(dst.data());
  const auto &transform = schemeOf(stride).weights;
  std::fill_n(to, winogradWeightBytes(outputs, inputs) / 4, 0.0f);
  for (int64_t oc = 0; oc < outputs; ++oc)
    for (int64_t ic = 0; ic < inputs; ++ic) {
      const float *g = from + (oc * inputs + ic) * kTaps * kTaps;
      for (int64_t i = 0; i < kWeightRows; ++i)
        for (int64_t j = 0; j < kWeightRows; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < kTaps; ++k)
            for (int64_t l = 0; l < kTaps; ++l)
              sum += transform[i][k] * g[k * kTaps + l] * transform[j][l];
          int64_t panel = oc / 16 * kPanels + i * kWeightRows + j;
          to[(panel * inputs + ic) * 16 + oc % 16] = static_cast<float>(sum);
        }
    }
}
