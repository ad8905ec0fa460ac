//===- PatchEmitter.cpp - convolutions by patches: the kernel -----------------===//

#include "PatchProduct.h"

#include "targets/common/roots/Loops.h"
#include "targets/common/roots/Terms.h"
#include "targets/cuda/code/Words.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <map>

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

namespace {

constexpr int64_t kVector = 4;
/// Taps in a row, and planes, that stand one after the other in the kernel's text; more are a loop.
constexpr int64_t kMostAcross = 7, kMostPlanes = 1;

class PatchEmitter {
public:
  PatchEmitter(CudaBuilder &b, const RegionBody &body, const PatchProduct &product, const PatchTile &tile)
      : b(b), words(b, !product.isNarrow()), product(product), tile(tile), room(product.room(tile)), e(b, body.block),
        writer(e, body), f32(b.getF32Type()) {}

  void emit() {
    b.forItems(product.blocks(tile), [&](Value number) { emitBlock(number); });
  }

private:
  using Values = SmallVector<Value>;
  /// A number that a thread copies at each step: where it lies behind the step's first one, whether it is there, where
  /// it goes, and whether it is this thread's turn at all; null: yes.
  struct Copy {
    Value from, has, to, isTurn;
  };
  using Loaded = Value; ///< nobody looks at it before it is put down

  /// What the taps of a column of windows multiply: pixels by their row, weights of each tap.
  struct Column {
    std::map<int64_t, Value> rows;
    SmallVector<Values> weights;
  };

  void emitBlock(Value number);
  void placeBlock(Value number);
  void placeThread();
  std::pair<Value, Value> turn(int64_t i, int64_t all);
  SmallVector<Copy> copiesOfPatches();
  SmallVector<Copy> copiesOfWeights();
  SmallVector<Loaded> load(ArrayRef<Copy> copies, Type element, Value base);
  void put(ArrayRef<Copy> copies, Type element, ArrayRef<Loaded> loaded, Value buffer);
  Values over(int64_t count, int64_t most, Values sums, llvm::function_ref<Values(Value, Values)> one);
  Values multiply(Value buffer, Values sums);
  Column column(Value patch, Value weights);
  Values multiply(const Column &terms, Values sums);
  Values outputsAt(Value place);
  void write(ArrayRef<Value> sums);
  void writeOne(Value sum, Value output, Value row, Value column);
  static bool isWhole(Dim size, int64_t part) { return size.known() && *size.known() % part == 0; }
  Value floatAt(Value place) { return b.elementPtr(f32, b.shared(), words.index(place)); }
  void meet() { NVVM::Barrier0Op::create(b); }

  CudaBuilder &b;
  Words words;
  const PatchProduct &product;
  const PatchTile &tile;
  const PatchProduct::Room room;
  ElementExpr e;
  ResultWriter writer;
  Type f32;
  // Of the block: its image, and where its rectangle and its outputs begin; of the thread: its outputs and its pixel.
  Value image, plane, firstDown, firstAcross, firstPart, firstGroup; ///< i64
  Value source;                                                      ///< of the block's first group: elements, i64
  Value ownPart, ownStrip, ownColumn;                                ///< of the tile, words
  Value ownPatch, ownWeights;                                        ///< in a buffer
};

void PatchEmitter::placeBlock(Value number) {
  auto split = [&](Dim size) {
    Value own = size.is(1) ? b.idx(0) : b.rem(number, b.idx(size));
    if (!size.is(1))
      number = b.floorDiv(number, b.idx(size));
    return own;
  };
  firstAcross = b.mulC(split(Dim::max(Dim::ceilDiv(product.across.window.out, tile.columns), 1)), tile.columns);
  firstDown = b.mulC(split(Dim::max(Dim::ceilDiv(product.down.window.out, tile.rows), 1)), tile.rows);
  plane = split(Dim::max(product.depthAxis.window.out, 1));
  int64_t parts = product.groups * room.chunks;
  firstPart = b.mulC(split((parts + tile.parts - 1) / tile.parts), tile.parts);
  image = number;
  firstGroup = b.floorDiv(firstPart, b.idx(room.chunks));
  source = b.add(b.idx(product.rhs->offset), b.mulC(image, product.rhsBatch.front()));
  source = b.add(source, b.mulC(firstGroup, product.windows->channelsApart * product.windows->channels));
}

void PatchEmitter::placeThread() {
  Value rest = words.from(b.threadInBlock());
  std::tie(rest, ownColumn) = words.divRem(rest, tile.columns);
  std::tie(ownPart, ownStrip) = words.divRem(rest, tile.rows / tile.own);
  int64_t patch = room.depth * product.depthAxis.taps * room.height * room.pitch,
          weights = room.depth * product.tapsOfChannel() * tile.outputs;
  Value down = words.mulC(ownStrip, tile.own * product.down.window.stride * room.pitch);
  ownPatch = words.add(down, words.mulC(ownColumn, product.across.window.stride));
  if (room.groups > 1)
    ownPatch = words.add(ownPatch, words.mulC(words.divRem(ownPart, room.chunks).first, patch));
  ownWeights = words.addC(words.mulC(ownPart, weights), room.patches);
}

/// The number of what a thread copies in its turn `i` of `all`; the last one again where there is none.
std::pair<Value, Value> PatchEmitter::turn(int64_t i, int64_t all) {
  Value number = words.addC(words.from(b.threadInBlock()), i * tile.threads());
  if ((i + 1) * tile.threads() <= all)
    return {number, Value()};
  return {words.min(number, words.of(all - 1)), words.isBelow(number, words.of(all))};
}

/// Pixels outside of the image are 0; groups behind the last one are read as the last one.
SmallVector<PatchEmitter::Copy> PatchEmitter::copiesOfPatches() {
  const PatchProduct::Axis &deep = product.depthAxis, &down = product.down, &across = product.across;
  const int64_t all = room.groups * room.depth * deep.taps * room.height * room.width;
  auto begin = [&](Value first, const PatchProduct::Axis &axis) {
    return words.from(b.sub(b.mulC(first, axis.window.stride), b.idx(axis.window.low)));
  };
  Value deepFrom = begin(plane, deep), downFrom = begin(firstDown, down), acrossFrom = begin(firstAcross, across);
  Value lastGroup = words.from(b.sub(b.idx(product.groups - 1), firstGroup));
  Value apart = words.size(product.windows->channelsApart);
  SmallVector<Copy> copies;
  for (int64_t i = 0; i * tile.threads() < all; ++i) {
    auto [number, isTurn] = turn(i, all);
    auto [rows, x] = words.divRem(number, room.width);
    auto [planes, y] = words.divRem(rows, room.height);
    auto [channels, z] = words.divRem(planes, deep.taps);
    auto [group, channel] = words.divRem(channels, room.depth);
    Value has, from;
    auto along = [&](Value own, Value first, const PatchProduct::Axis &axis, int64_t outputs) {
      Value at = words.add(first, own), place = words.mul(at, words.size(axis.window.apart));
      from = from ? words.add(from, place) : place;
      if (axis.window.isPointwise() && isWhole(axis.window.out, outputs))
        return;
      Value inside = words.isBelow(at, words.size(axis.window.in));
      has = has ? Value(arith::AndIOp::create(b, has, inside)) : inside;
    };
    along(x, acrossFrom, across, tile.columns);
    along(y, downFrom, down, tile.rows);
    along(words.mulC(z, deep.window.dilation), deepFrom, deep, 1);
    if (room.groups > 1) {
      if (product.groups % room.groups)
        group = words.min(group, lastGroup);
      channel = words.add(channel, words.mulC(group, product.channels));
    }
    copies.push_back(
        {words.add(from, words.mul(channel, apart)), has, words.add(words.mulC(rows, room.pitch), x), isTurn});
  }
  return copies;
}

/// A run's weights lie as they are multiplied, its outputs side by side; what is behind the last one is the last one.
SmallVector<PatchEmitter::Copy> PatchEmitter::copiesOfWeights() {
  // Vectors of them are loaded, to the end of the last one.
  const int64_t terms = room.depth * product.tapsOfChannel(), all = room.weights, parts = product.groups * room.chunks;
  Value first = words.from(firstPart), rowsApart = words.size(product.lhsRow);
  SmallVector<Copy> copies;
  for (int64_t i = 0; i * tile.threads() < all; ++i) {
    auto [number, isTurn] = turn(i, all);
    auto [rest, output] = words.divRem(number, tile.outputs);
    auto [own, term] = words.divRem(rest, terms);
    Value part = words.add(first, own);
    if (parts % tile.parts || all != tile.parts * terms * tile.outputs)
      part = words.min(part, words.of(parts - 1));
    auto [group, chunk] = words.divRem(part, room.chunks);
    output = words.add(words.mulC(chunk, tile.outputs), output);
    if (product.outputs % tile.outputs)
      output = words.min(output, words.of(product.outputs - 1));
    Value row = words.add(words.mulC(group, product.outputs), output);
    copies.push_back({words.add(words.mul(row, rowsApart), term), {}, words.addC(number, room.patches), isTurn});
  }
  return copies;
}

/// Of the image there may be nothing to read instead of what is not there, of the weights there is.
SmallVector<PatchEmitter::Loaded> PatchEmitter::load(ArrayRef<Copy> copies, Type element, Value base) {
  SmallVector<Loaded> loaded;
  for (const Copy &copy : copies) {
    Value place = b.elementPtr(element, base, words.index(copy.from));
    if (copy.has)
      place = arith::SelectOp::create(b, copy.has, place, b.buffer(product.lhs->buffer));
    loaded.push_back(b.load(e.carried(element), place, b.idx(0)));
  }
  return loaded;
}

void PatchEmitter::put(ArrayRef<Copy> copies, Type element, ArrayRef<Loaded> loaded, Value buffer) {
  for (auto [copy, number] : llvm::zip(copies, loaded)) {
    Value wide = e.widen(number, element);
    if (copy.has)
      wide = arith::SelectOp::create(b, copy.has, wide, b.constant(f32, 0));
    Value to = floatAt(words.add(copy.to, buffer));
    auto store = [&] { LLVM::StoreOp::create(b, wide, to, /*alignment=*/4); };
    if (copy.isTurn)
      b.ifThen(copy.isTurn, store);
    else
      store();
  }
}

/// While a step's channels are multiplied, the next ones are under way; the last step loads the first ones again.
void PatchEmitter::emitBlock(Value number) {
  placeBlock(number);
  placeThread();
  SmallVector<Copy> patches = copiesOfPatches(), weights = copiesOfWeights();
  auto fetch = [&](Value channel) {
    Value place = b.add(source, b.mulC(channel, product.windows->channelsApart));
    Value row = b.add(b.idx(product.lhs->offset), b.mulC(channel, product.tapsOfChannel()));
    Type image = product.rhsElement, weight = product.lhsElement;
    return std::pair(load(patches, image, b.elementPtr(image, b.buffer(product.rhs->buffer), place)),
                     load(weights, weight, b.elementPtr(weight, b.buffer(product.lhs->buffer), row)));
  };
  auto putAll = [&](const auto &fetched, Value buffer) {
    put(patches, product.rhsElement, fetched.first, buffer);
    put(weights, product.lhsElement, fetched.second, buffer);
  };
  meet(); // who computed the block before may still read
  putAll(fetch(b.idx(0)), words.of(0));
  meet();
  Values sums(static_cast<size_t>(tile.own * tile.outputs), b.constant(f32, 0));
  if (room.steps == 1)
    return write(multiply(words.of(0), sums));
  sums.push_back(words.of(0));
  Value channels = b.idx(product.channels);
  sums = b.forLoop(b.idx(0), channels, b.idx(room.depth), sums, [&](Value channel, ValueRange carried) {
    Values own(carried.drop_back());
    Value buffer = carried.back(), next = b.addC(channel, room.depth);
    Value other = words.sub(words.of(room.buffer()), buffer);
    next = arith::SelectOp::create(b, b.cmp(arith::CmpIPredicate::slt, next, channels), next, b.idx(0));
    auto fetched = fetch(next);
    own = multiply(buffer, own);
    putAll(fetched, other);
    meet();
    own.push_back(other);
    return own;
  });
  sums.pop_back();
  write(sums);
}

/// A loop over `count`, or none where it is short.
PatchEmitter::Values PatchEmitter::over(int64_t count, int64_t most, Values sums,
                                        llvm::function_ref<Values(Value, Values)> one) {
  if (count > most)
    return b.forLoop(b.idx(0), b.idx(count), b.idx(1), sums,
                     [&](Value i, ValueRange carried) { return one(i, Values(carried)); });
  for (int64_t i = 0; i < count; ++i)
    sums = one(b.idx(i), sums);
  return sums;
}

PatchEmitter::Values PatchEmitter::multiply(Value buffer, Values sums) {
  const int64_t across = product.across.taps, taps = product.down.taps * across;
  Value patch = floatAt(words.add(ownPatch, buffer)), weights = floatAt(words.add(ownWeights, buffer));
  auto behind = [&](Value pointer, Value count, int64_t floats) {
    return b.elementPtr(f32, pointer, b.mulC(count, floats));
  };
  // Planes of channels lie one after the other, each with its taps.
  return over(room.depth * product.depthAxis.taps, kMostPlanes, sums, [&](Value plane, Values own) {
    Value from = behind(patch, plane, room.height * room.pitch), by = behind(weights, plane, taps * tile.outputs);
    auto columnAt = [&](Value tap) {
      return column(behind(from, tap, product.across.window.dilation), behind(by, tap, tile.outputs));
    };
    if (across > kMostAcross)
      return over(across, kMostAcross, own, [&](Value tap, Values sums) { return multiply(columnAt(tap), sums); });
    Column next = columnAt(b.idx(0));
    for (int64_t tap = 0; tap < across; ++tap) {
      Column terms = std::move(next);
      if (tap + 1 < across) // nobody waits for it
        next = columnAt(b.idx(tap + 1));
      own = multiply(terms, own);
    }
    return own;
  });
}

/// The taps of a column, of which those of neighbouring pixels read the same numbers.
PatchEmitter::Column PatchEmitter::column(Value patch, Value weights) {
  const Windows::Axis &window = product.down.window;
  Column terms;
  for (int64_t tap = 0; tap < product.down.taps; ++tap) {
    terms.weights.push_back(outputsAt(b.elementPtr(f32, weights, b.idx(tap * product.across.taps * tile.outputs))));
    for (int64_t pixel = 0; pixel < tile.own; ++pixel) {
      int64_t row = pixel * window.stride + tap * window.dilation;
      if (Value &number = terms.rows[row]; !number)
        number = LLVM::LoadOp::create(b, f32, b.elementPtr(f32, patch, b.idx(row * room.pitch)), /*alignment=*/4);
    }
  }
  return terms;
}

PatchEmitter::Values PatchEmitter::multiply(const Column &terms, Values sums) {
  const Windows::Axis &window = product.down.window;
  for (auto [tap, by] : llvm::enumerate(terms.weights))
    for (int64_t pixel = 0; pixel < tile.own; ++pixel) {
      Value number = terms.rows.at(pixel * window.stride + static_cast<int64_t>(tap) * window.dilation);
      for (size_t output = 0; output < by.size(); ++output) {
        Value &sum = sums[static_cast<size_t>(pixel) * by.size() + output];
        sum = b.fma(number, by[output], sum);
      }
    }
  return sums;
}

PatchEmitter::Values PatchEmitter::outputsAt(Value place) {
  const int64_t count = std::min(tile.outputs, kVector);
  Type type = b.laneType(f32, count);
  Values values;
  for (int64_t first = 0; first < tile.outputs; first += count) {
    Value loaded = LLVM::LoadOp::create(b, type, b.elementPtr(f32, place, b.idx(first)), 4 * count);
    for (int64_t i = 0; i < count; ++i)
      values.push_back(count == 1 ? loaded : Value(vector::ExtractOp::create(b, loaded, i)));
  }
  return values;
}

/// Pixels and outputs that are not there were summed, too, and are not stored.
void PatchEmitter::write(ArrayRef<Value> sums) {
  const int64_t parts = product.groups * room.chunks;
  Value part = b.add(firstPart, words.index(ownPart)), column = b.add(firstAcross, words.index(ownColumn)),
        down = b.add(firstDown, b.mulC(words.index(ownStrip), tile.own)), chunks = b.idx(room.chunks);
  Value output = b.mulC(b.rem(part, chunks), tile.outputs), group = b.mulC(b.floorDiv(part, chunks), product.outputs);
  for (int64_t pixel = 0; pixel < tile.own; ++pixel)
    for (int64_t i = 0; i < tile.outputs; ++i) {
      Value row = b.addC(down, pixel), own = b.addC(output, i), isThere;
      auto require = [&](bool always, Value at, Dim size) {
        if (always)
          return;
        Value below = b.cmp(arith::CmpIPredicate::slt, at, b.idx(size));
        isThere = isThere ? Value(arith::AndIOp::create(b, isThere, below)) : below;
      };
      require(isWhole(product.across.window.out, tile.columns), column, product.across.window.out);
      require(isWhole(product.down.window.out, tile.rows), row, product.down.window.out);
      require(parts % tile.parts == 0, part, parts);
      require(product.outputs % tile.outputs == 0, own, product.outputs);
      Value sum = sums[static_cast<size_t>(pixel * tile.outputs + i)];
      auto store = [&] { writeOne(sum, b.add(group, own), row, column); };
      if (isThere)
        b.ifThen(isThere, store);
      else
        store();
    }
}

void PatchEmitter::writeOne(Value sum, Value output, Value row, Value column) {
  Indices index{e.at(image), e.at(output)};
  if (product.imageAxes > 2)
    index.push_back(e.at(plane));
  if (product.imageAxes > 1)
    index.push_back(e.at(row));
  index.push_back(e.at(column));
  e.forget();
  e.bindValue(product.result(), fromAccumulator(e, sum, product.element));
  writer.write(index);
  e.forget();
}

} // namespace

void dmxc::cuda::emitPatches(CudaBuilder &b, const RegionBody &body, const PatchProduct &product,
                             const PatchTile &tile) {
  PatchEmitter(b, body, product, tile).emit();
}
