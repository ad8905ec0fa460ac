//===- GemmEmitter.cpp - warpgroups that copy and warpgroups that multiply ----===//

#include "Gemm.h"
#include "GemmCopies.h"
#include "GemmSums.h"

#include "targets/cuda/code/Asynchronous.h"

#include "dmxc/Dialect/DMIR/Dims.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace dmx::cuda;
using namespace mlir;

namespace {

constexpr int64_t kWarpgroup = 128, kWarp = 32;

class GemmEmitter {
public:
  GemmEmitter(CudaBuilder &b, const RegionBody &body, const GemmProduct &product, const Pipeline &pipeline)
      : b(b), async(b), product(product), pipeline(pipeline), tile(pipeline.tile), copies(b, product, pipeline),
        sums(b, body, product, pipeline) {}

  void emit();

private:
  /// A slot and the parity of the phase that is waited for.
  struct Slot {
    Value number, parity;
  };
  /// A tile of the result: its batch item, and where it begins.
  struct Place {
    Value item, row, column;
  };
  /// Of a tile, [first, last): of those that are kept their numbers, else all.
  struct Steps {
    Value first, last, kept; ///< `kept`: which of all the first one is
  };

  void initBarriers();
  void copyTiles();
  void multiplyTiles(Value warpgroup);
  Slot copyOne(const Place &place, Slot slot);
  Slot multiplyOne(Value warpgroup, const Place &place, Slot slot);
  Value multiplySlot(Value warpgroup, Value sums, Value slot);

  Place placeOf(Value number);
  Slot next(Slot slot);
  Slot forTiles(Slot first, llvm::function_ref<Slot(const Place &, Slot)> one);
  Value full(Value slot) { return barrier(slot, 0); }
  Value empty(Value slot) { return barrier(slot, tile.stages * 8); }
  Value barrier(Value slot, int64_t offset) {
    return async.shared(b.addC(b.mulC(slot, 8), tile.barriersAt() + offset));
  }
  Value leftOf(Value slot) { return b.mulC(slot, tile.leftBytes()); }
  Value rightOf(Value slot) { return b.addC(b.mulC(slot, tile.rightBytes()), tile.stages * tile.leftBytes()); }
  /// The last arrival of a warp of a slot's readers lets it be filled again.
  void release(Value slot);
  Steps stepsOf(const Place &place);
  Value packedWord(Value number);
  Value keptStep(Value number);
  GemmCopies::From from(const Place &place, Value step, Value number);
  Value parity(int64_t value) { return b.constantInt(b.getI32Type(), value); }

  CudaBuilder &b;
  Asynchronous async;
  const GemmProduct &product;
  const Pipeline &pipeline;
  const GemmTile &tile;
  GemmCopies copies;
  GemmSums sums;
};

void GemmEmitter::initBarriers() {
  Value isFirst = b.cmp(arith::CmpIPredicate::eq, b.threadInBlock(), b.idx(0));
  b.ifThen(isFirst, [&] {
    for (int64_t slot = 0; slot < tile.stages; ++slot) {
      async.initBarrier(full(b.idx(slot)), copies.arrivals());
      async.initBarrier(empty(b.idx(slot)), tile.consumers() * (kWarpgroup / kWarp));
    }
  });
  copies.prepare();
  async.publishBarriers();
}

void GemmEmitter::emit() {
  initBarriers();
  Value warpgroup = b.floorDiv(b.threadInBlock(), b.idx(kWarpgroup));
  Value isCopier = b.cmp(arith::CmpIPredicate::eq, warpgroup, b.idx(tile.consumers()));
  auto copier = [&] {
    if (pipeline.movesRegisters())
      async.setRegisters(pipeline.copierRegisters, /*takes=*/false);
    if (copies.byThreads())
      copyTiles();
    else
      b.ifThen(copies.isFirst(), [&] { copyTiles(); });
  };
  auto multiplier = [&] {
    if (pipeline.movesRegisters())
      async.setRegisters(pipeline.multiplierRegisters, /*takes=*/true);
    multiplyTiles(warpgroup);
  };
  b.ifThen(isCopier, copier, multiplier);
}

GemmEmitter::Slot GemmEmitter::forTiles(Slot first, llvm::function_ref<Slot(const Place &, Slot)> one) {
  SmallVector<Value> last = b.forLoop(b.begin(), b.idx(product.tiles(tile)), b.end(), {first.number, first.parity},
                                      [&](Value number, ValueRange state) {
                                        Slot slot = one(placeOf(number), {state[0], state[1]});
                                        return SmallVector<Value>{slot.number, slot.parity};
                                      });
  return {last[0], last[1]};
}

/// Tiles go down some rows of tiles, then on to the next column of them.
GemmEmitter::Place GemmEmitter::placeOf(Value number) {
  Value rows = b.idx(Dim::ceilDiv(product.m, tile.rows)), columns = b.idx(Dim::ceilDiv(product.n, tile.columns));
  Value matrix = b.mul(rows, columns);
  Value item = product.batch.is(1) ? b.idx(0) : b.floorDiv(number, matrix);
  Value rest = product.batch.is(1) ? number : b.rem(number, matrix);
  Value group = b.mulC(columns, pipeline.raster);
  Value first = b.mulC(b.floorDiv(rest, group), pipeline.raster);
  Value height = b.minS(b.sub(rows, first), b.idx(pipeline.raster));
  rest = b.rem(rest, group);
  Value row = b.add(first, b.rem(rest, height)), column = b.floorDiv(rest, height);
  return {item, b.mulC(row, tile.rows), b.mulC(column, tile.columns)};
}

GemmEmitter::Slot GemmEmitter::next(Slot slot) {
  Value isLast = b.cmp(arith::CmpIPredicate::eq, slot.number, b.idx(tile.stages - 1));
  Value number = arith::SelectOp::create(b, isLast, b.idx(0), b.addC(slot.number, 1));
  Value turn = arith::ExtUIOp::create(b, b.getI32Type(), isLast);
  return {number, arith::XOrIOp::create(b, slot.parity, turn)};
}

//===----------------------------------------------------------------------===//
// Copying
//===----------------------------------------------------------------------===//

/// Word `number` behind the packed steps.
Value GemmEmitter::packedWord(Value number) {
  constexpr int64_t bytes = 4;
  Value word = b.load(b.getI32Type(), b.buffer(product.right.buffer), b.addC(number, product.kept->wordsAt() / bytes));
  return arith::ExtSIOp::create(b, b.idx(0).getType(), word);
}

/// Which of all steps a packed one is. Asked for one step ahead, so that nobody waits for it: of the last one, again.
Value GemmEmitter::keptStep(Value number) {
  Value last = b.idx(std::max<int64_t>(1, product.kept->steps()) - 1);
  return packedWord(b.addC(b.minS(number, last), product.kept->entriesAt()));
}

GemmEmitter::Steps GemmEmitter::stepsOf(const Place &place) {
  if (!product.kept)
    return {b.idx(0), b.idx(Dim::ceilDiv(product.k, kTileRowElements)), {}};
  Value words = b.mulC(b.floorDiv(place.column, b.idx(product.kept->columns)), KeptSteps::kTileWords);
  return {packedWord(words), packedWord(b.addC(words, 1)), packedWord(b.addC(words, 2))};
}

/// `step`: of all; `number`: of those that are packed.
GemmCopies::From GemmEmitter::from(const Place &place, Value step, Value number) {
  Value k = b.mulC(step, kTileRowElements);
  if (!product.kept)
    return {place.row, place.column, k, place.item, k};
  return {place.row, b.mulC(number, product.kept->columns), k, place.item, b.idx(0)};
}

/// Slots are empty at first: the phase before the first one counts as ended.
void GemmEmitter::copyTiles() {
  forTiles({b.idx(0), parity(1)}, [&](const Place &place, Slot slot) { return copyOne(place, slot); });
}

/// What goes on from step to step: the slot, the number of the kept step, and what threads have loaded ahead.
GemmEmitter::Slot GemmEmitter::copyOne(const Place &place, Slot first) {
  copies.enter(place.column, place.item);
  Steps steps = stepsOf(place);
  const bool asks = product.kept && !product.kept->areTogether();
  SmallVector<Value> init{first.number, first.parity};
  if (asks)
    init.push_back(steps.kept);
  const size_t fixed = init.size();
  auto termsFrom = [&](Value step) { return b.mulC(b.minS(step, b.addC(steps.last, -1)), kTileRowElements); };
  llvm::append_range(init, copies.begin(b.idx(0)));
  SmallVector<Value> last = b.forLoop(steps.first, steps.last, b.idx(1), init, [&](Value number, ValueRange state) {
    Slot slot{state[0], state[1]};
    Value step = asks ? state[2] : product.kept ? b.add(steps.kept, b.sub(number, steps.first)) : number;
    Value following = asks ? keptStep(b.addC(number, 1)) : Value();
    GemmCopies::From source = from(place, step, number);
    Value nextK = copies.loadsAhead() ? termsFrom(b.addC(number, 1)) : Value();
    SmallVector<SmallVector<Value>> loaded{SmallVector<Value>(state.drop_front(fixed)),
                                           copies.ahead(source.rightK, nextK)};
    async.wait(empty(slot.number), slot.parity);
    SmallVector<Value> next =
        copies.fill(source, leftOf(slot.number), rightOf(slot.number), full(slot.number), loaded, nextK);
    Slot other = this->next(slot);
    SmallVector<Value> carried{other.number, other.parity};
    if (following)
      carried.push_back(following);
    llvm::append_range(carried, next);
    return carried;
  });
  return {last[0], last[1]};
}

//===----------------------------------------------------------------------===//
// Multiplying
//===----------------------------------------------------------------------===//

void GemmEmitter::multiplyTiles(Value warpgroup) {
  forTiles({b.idx(0), parity(0)}, [&](const Place &place, Slot slot) { return multiplyOne(warpgroup, place, slot); });
}

/// Where products may run on, a slot is released one step later, when they have ended and the next ones run.
GemmEmitter::Slot GemmEmitter::multiplyOne(Value warpgroup, const Place &place, Slot first) {
  Steps steps = stepsOf(place);
  SmallVector<Value> last =
      b.forLoop(steps.first, steps.last, b.idx(1), {first.number, first.parity, b.idx(0), async.zeroSums(tile.columns)},
                [&](Value step, ValueRange state) {
                  Slot slot{state[0], state[1]};
                  async.wait(full(slot.number), slot.parity);
                  Value sums = multiplySlot(warpgroup, state[3], slot.number);
                  sums = async.waitForProducts(sums, pipeline.behind);
                  if (pipeline.behind)
                    b.ifThen(b.cmp(arith::CmpIPredicate::ne, step, steps.first), [&] { release(state[2]); });
                  else
                    release(slot.number);
                  Slot following = next(slot);
                  return SmallVector<Value>{following.number, following.parity, slot.number, sums};
                });
  Value result = last[3];
  if (pipeline.behind) {
    result = async.waitForProducts(result, 0);
    Value hasSteps = b.cmp(arith::CmpIPredicate::ne, steps.first, steps.last);
    b.ifThen(hasSteps, [&] { release(last[2]); });
  }
  Value row = b.add(place.row, b.mulC(warpgroup, kMmaRows));
  sums.write(result, place.item, row, place.column);
  return {last[0], last[1]};
}

Value GemmEmitter::multiplySlot(Value warpgroup, Value sums, Value slot) {
  auto describe = [&](const GemmOperand &operand, Value address) {
    return async.descriptor(async.shared(address),
                            operand.isKMajor ? KMajor::leading() : MnMajor::leading(kTileRowElements));
  };
  constexpr int64_t ownRows = kMmaRows * kTileRowBytes; // in both layouts
  Value left = describe(product.left, b.add(leftOf(slot), b.mulC(warpgroup, ownRows)));
  Value right = describe(product.right, rightOf(slot));
  Asynchronous::Kind kind{product.lhsElement.isBF16(), product.left.isKMajor, product.right.isKMajor, tile.columns};
  auto stepOf = [](const GemmOperand &operand) {
    return static_cast<int64_t>(operand.isKMajor ? KMajor::kStep : MnMajor::kStep);
  };
  sums = async.beginProducts(sums);
  for (int64_t i = 0; i < kTileRowElements / kMmaDepth; ++i)
    sums = async.multiply(sums, async.advance(left, i * stepOf(product.left)),
                          async.advance(right, i * stepOf(product.right)), kind);
  async.commitProducts();
  return sums;
}

void GemmEmitter::release(Value slot) {
  async.inOneLane([&] { async.arrive(empty(slot)); });
}

} // namespace

void dmxc::cuda::emitGemm(CudaBuilder &b, const RegionBody &body, const GemmProduct &product,
                          const Pipeline &pipeline) {
  GemmEmitter(b, body, product, pipeline).emit();
}
