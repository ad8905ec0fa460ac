//===- Drain.cpp - sums from OB to a product's result ---------------------===//

#include "Drain.h"

#include "SimdOp.h"

#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

/// A half of OB as f16: what an epilogue's tiles take at once.
static constexpr int64_t kTilesBytes = kObHalf / 2;
static constexpr int64_t kRowBytes = 64 * 2;

int64_t dmxc::corsair::placesOfTiles(const hw::Machine &machine) {
  return static_cast<int64_t>(machine.memory(hw::Memory::SIMD).size) / 2 / kTilesBytes;
}

SmallVector<int> dmxc::corsair::placesOf(ArrayRef<SmallVector<int, 3>> inputs) {
  const int count = static_cast<int>(inputs.size());
  SmallVector<int> last(count + 1, 0), places{0}; // by which function a value is read last
  for (auto [number, all] : llvm::enumerate(inputs))
    for (int input : all)
      if (input >= -1)
        last[input + 1] = static_cast<int>(number);
  for (int number = 0; number < count; ++number) {
    int place = 0; // the first that has nothing which is read later
    auto isTaken = [&](int value) { return places[value] == place && last[value] > number; };
    while (llvm::any_of(llvm::seq<int>(0, static_cast<int>(places.size())), isTaken))
      ++place;
    places.push_back(place);
  }
  return places;
}

namespace {

class Drain {
public:
  Drain(Program &program, const ArrayUnits &units, const Spread &plan, const MatmulOperands &at, int64_t rows, int half)
      : program(program), units(units), plan(plan), at(at), rows(rows), half(half) {}

  void run(ArrayRef<Share> shares) {
    for (const Share &share : shares) {
      const bool ragged = share.lastColumns != 64;
      add({share.mask, share.skipped, 0, share.tiles - ragged, 64});
      if (ragged)
        add({share.mask, share.skipped, share.tiles - 1, 1, share.lastColumns});
    }
    const QueueWriter store = program.on(Queue::Store);
    store.wait(kObFull + half);
    if (at.epilogue)
      store.wait(kTilesFree + half);
    for (const Part &part : parts)
      move(store, part);
    store.signal(kObFree + half);
    if (at.epilogue)
      compute(store);
  }

private:
  /// Neighbouring tiles of as many columns each.
  struct Part {
    int mask;
    int64_t skipped, first, count, columns;
  };

  void add(const Part &part) {
    if (part.count)
      parts.push_back(part);
  }

  /// Of the result, or what lies beside it: from slice to slice of a mask.
  int64_t sliceStep(int64_t row, int64_t column, int64_t batch) const {
    return plan.sharing == Sharing::Columns ? plan.groups * 64 * column
           : plan.sharing == Sharing::Rows  ? plan.sliceRows() * row
                                            : batch;
  }
  int64_t tileBytes() const { return plan.rowsAtOnce() * kRowBytes; }
  Address tiles(int place, const Part &part) const {
    return {units.simd, (half * at.epilogue->places + place) * kTilesBytes + part.first * tileBytes(), {}};
  }

  void move(const QueueWriter &store, const Part &part) const {
    const bool toResult = !at.epilogue;
    const hw::ElemKind to = at.outBytes == 2 ? hw::ElemKind::F16 : hw::ElemKind::F32;
    DmaSpec spec{hw::nameOf(hw::ElemKind::Bfp32), hw::nameOf(to), part.columns};
    spec.dims = {{part.count, obGroup(plan), toResult ? 64 * at.outBytes : tileBytes()},
                 {rows, 256, toResult ? at.outRow : kRowBytes}};
    if (toResult && llvm::popcount(unsigned(part.mask)) > 1)
      spec.targetUnitStep = sliceStep(at.outRow, at.outBytes, at.outSlice);
    store
        .copy({units.ob, half * kObHalf + part.first * obGroup(plan), {}},
              toResult ? at.out.plus((part.skipped + part.first) * 64 * at.outBytes) : tiles(0, part), spec)
        .integer("units", part.mask)
        .create();
  }

  void compute(const QueueWriter &store) const {
    const QueueWriter vector = program.on(Queue::Vector);
    store.signal(kTilesFull + half);
    vector.wait(kTilesFull + half);
    for (const Part &part : parts)
      for (const EpilogueStep &step : at.epilogue->steps)
        function(vector, step, part);
    vector.signal(kTilesFree + half);
  }

  void function(const QueueWriter &vector, const EpilogueStep &step, const Part &part) const {
    SimdOp op{step.function, {llvm::popcount(unsigned(part.mask)), part.count, rows, part.columns}};
    op.imm0 = step.imm0, op.imm1 = step.imm1;
    op.result = step.to >= 0 ? inTiles(step.to, part) : inMemory(resultOf(at), part);
    for (int source : step.sources)
      op.sources.push_back(source >= 0 ? inTiles(source, part) : inMemory(at.beside[-1 - source], part));
    emitShared(vector, op, part.mask);
  }
  SimdOperand inTiles(int place, const Part &part) const {
    return {hw::ElemKind::F16, tiles(place, part), {0, tileBytes(), kRowBytes, 2}};
  }
  SimdOperand inMemory(const Beside &matrix, const Part &part) const {
    const int64_t slice = sliceStep(matrix.row, matrix.column, matrix.slice);
    return {hw::ElemKind::F16,
            matrix.at.plus((part.skipped + part.first) * 64 * matrix.column),
            {slice, 64 * matrix.column, matrix.row, matrix.column}};
  }
  static Beside resultOf(const MatmulOperands &at) { return {at.out, at.outRow, at.outBytes, at.outSlice}; }

  Program &program;
  const ArrayUnits units;
  const Spread &plan;
  const MatmulOperands &at;
  const int64_t rows;
  const int half;
  SmallVector<Part, 4> parts;
};

} // namespace

void dmxc::corsair::drain(Program &program, const ArrayUnits &units, const Spread &plan, const MatmulOperands &at,
                          ArrayRef<Share> shares, int64_t rows, int half) {
  Drain(program, units, plan, at, rows, half).run(shares);
}
