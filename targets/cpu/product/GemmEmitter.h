//===- GemmEmitter.h - state of one product being emitted -------*- C++ -*-===//
//
// Private to Gemm.cpp (loops, register tiles, results), GemmOperands.cpp
// (copies of the operands to scratch; what one row meets where it lies), attention/KeyPairs.cpp (those in pairs),
// GemmBlocks.cpp (right operands of few bits), GemmBytes.cpp (which rows of as few bits meet), GemmRuns.cpp (those
// without what is zero), GemmUnits.cpp (tiles of AMX) and user/MicroTile.cpp (tiles that a user's code computes).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Gemm.h"
#include "GemmTile.h"

namespace dmxc::cpu {

/// Where the register tile finds its vectors of B: vector v of depth k is at
/// base + k*kStride + vectorOffset(v).
struct RightSource {
  mlir::Value base;
  mlir::Type element;
  mlir::Value kStride;
  llvm::SmallVector<mlir::Value> vectorOffset;
};

/// The scale of a block's columns and its zero points (null: none), as f32 vectors.
struct BlockScale {
  mlir::Value scale, zeros;
};

class GemmEmitter {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;
  using ValueList = llvm::ArrayRef<Value>;

  GemmEmitter(CpuBuilder &b, const GemmKernel &spec, const GemmTiles &tiles, const GemmMatrix &a,
              const GemmMatrix &bMatrix, const GemmCallbacks &callbacks, const GemmExtents &extents,
              int64_t scratchOffset);
  void emit();

private:
  struct Item {
    Value batch, block, column; ///< column: first of the group
    Value firstRow, lastRow;    ///< of a dynamic m's block
    Value aBase, bBase;         ///< with the batch item's offset
    int64_t vectors;            ///< of this group
    int64_t tailColumns;        ///< valid columns when static and not full; 0 otherwise
    bool dynamicTail;           ///< every vector needs a run-time mask
    Value next;                 ///< where to prefetch this pass, or null
    Value panelRows;            ///< of a panel of a packed B
    Value run;                  ///< of a B in runs: the number of the first that this pass may have
  };
  struct RowTile {
    Value row;     ///< first row
    Value inBlock; ///< the same, counted from the block's first row
    Value index;   ///< number of the tile in its block; null of the last ones of a dynamic m
    int64_t rows;
    bool guarded; ///< rows beyond m are computed from row m-1 and not stored
    Value share;  ///< of a dynamic m: the part of its block that a tile is, times 2^16; else null
  };
  using TileFn = llvm::function_ref<void(const RowTile &)>;

  using ItemFn = llvm::function_ref<void(const Item &)>;
  void emitGroups();
  void emitFullOrTail(const Item &item, Value isFull, ItemFn emitOne);
  Value batchBase(const GemmMatrix &matrix, mlir::Type element, Value batch);
  void emitItem(Item item);
  void onePass(Item &item);
  void severalPasses(Item &item);
  void forEachPass(Item &item, llvm::function_ref<void(Value k0)> pass);
  std::pair<Value, Value> rowsOfItem(const Item &item);
  using Depths = std::optional<std::pair<Value, Value>>;
  Depths depthsOf(const Item &item, Value row, Value rows);
  Depths depthsOfRows(const Item &item, const RowTile &tile);
  Depths depthsOfItem(const Item &item);
  Depths depthsOfTile(const Item &item, const RowTile &tile, Value k0);
  void forEachTile(const Item &item, TileFn fn);
  void staticTiles(const Item &item, TileFn fn);
  void dynamicTiles(const Item &item, TileFn fn);
  void packLeft(const Item &item);
  void packLeftTile(const Item &item, const RowTile &tile);
  Value loadLeft(Value base, Value offset, int64_t lanes = 1);
  Value rightElements(Value raw);
  Value leftRow(const RowTile &tile, int64_t r);
  Value partialStep(const Item &item, Value row);
  Value leftDepth(Value k) {
    int64_t elements = spec.elementsOfStep();
    return elements > 1 ? b.mulC(k, elements) : b.mul(k, a.colStride);
  }
  Values loadLeftVectors(const Item &item, const RowTile &tile, Value kk);
  /// Row of a panel of B that has depth k, which is even where B's pairs are multiplied as floats.
  Value rightRow(Value k) { return asFloats() ? b.floorDiv(k, b.idx(2)) : k; }
  Value rowsOfPanels() { return spec.packedB && spec.depth() >= 0 ? b.idx(spec.panelRows()) : k; }
  bool asFloats() const { return spec.pairs && !spec.dots(); }
  RightSource rightSource(const Item &item, Value k0, Value depth);
  void packRight(const Item &item, Value k0, Value depth);
  void packVector(const Item &item, Value k0, Value depth, int64_t v);
  void packTransposed(const Item &item, Value k0, Value depth, int64_t v);
  void packPairs(const Item &item, Value k0, Value depth, int64_t v);
  void packPairsOfRows(const Item &item, Value k0, Value depth, int64_t v);
  void packPairsTransposed(const Item &item, Value k0, Value depth, int64_t v);
  Value adjacentPairs(const Item &item, Value offset, int64_t lanes);
  Value shortBits(Value raw);
  Value pairsOfBits(Value low, Value high);
  Value panelOffset(const Item &item, int64_t v, int64_t depth);
  BlockScale scaleOfBlock(const Item &item, int64_t v, Value block);
  Values wordsAt(const Item &item, Value word);
  Value ofWord(Value word, int64_t i);
  /// Where an element of a word is read: from this bit on, once the word is moved to the right by so many.
  struct WordPlace {
    int64_t by, at;
  };
  using WordPlaces = llvm::ArrayRef<WordPlace>;
  struct UnpackedScale : BlockScale {
    llvm::SmallDenseMap<int64_t, Value> rest; ///< by the bit that elements begin at
  };
  Value floatsAt(Value words, int64_t at);
  llvm::SmallVector<WordPlace> wordPlaces() const;
  Value shifted(Value words, int64_t by);
  UnpackedScale unpackedScale(const Item &item, int64_t v, Value block, WordPlaces places);
  Values scaledElements(Value words, const UnpackedScale &scale, WordPlaces places);
  void unpackBlocks(const Item &item, Value k0, Value from, Value to);
  using RangeSum = llvm::function_ref<Values(Value from, Value to, mlir::ValueRange sums)>;
  Values sumUnpacking(const Item &item, const RowTile &tile, Value k0, Value low, Value high, mlir::ValueRange init,
                      RangeSum loop);
  /// Whether a panel is unpacked as tiles come to it: all of it is read by the first one.
  bool unpacksByTile() const { return spec.blocks && spec.copiesB() && !callbacks.depths && !spec.micro; }
  int64_t chainsOfBlock(int64_t rows) const;
  Values sumOfBlocks(const Item &item, const RowTile &tile);
  void sumOfBlock(const Item &item, const RowTile &tile, Value block, int64_t depth, ValueList rows,
                  llvm::MutableArrayRef<Value> totals);
  void fewRowsOfBlocks(const Item &item);
  void packBytes(const Item &item);
  void packByteBlock(Value from, Value to, Value block, int64_t depth);
  Value leftVector(Value from, int64_t valid);
  Values sumOfBytes(const Item &item, const RowTile &tile);
  void sumOfByteBlock(const Item &item, Value rows, int64_t count, Value block, int64_t words,
                      llvm::MutableArrayRef<Value> totals);
  void byteStep(const Item &item, Value rows, int64_t count, Value word, llvm::MutableArrayRef<Value> sums);
  using RunSteps = llvm::function_ref<Values(Value shift, Value kk, mlir::ValueRange sums)>;
  Value runNumber(Value entry, int64_t which);
  Value groupNumber(Value group, int64_t which);
  void findRuns(Item &item);
  Value runBeyond(Value run, Value end);
  Value hasRunBefore(Value run, Value end);
  Value runSlot(const Item &item);
  Values sumOfRuns(Value next, Value k0, Value low, Value high, int64_t step, mlir::ValueRange init, RunSteps steps);
  /// Rows of a dynamic m that an item of few has.
  Value rowsOf(const Item &item) { return spec.grouped ? b.sub(item.lastRow, item.firstRow) : m; }
  Value streamSums(bool ofAll, int64_t chain);
  void forVectors(Value count, llvm::function_ref<void(Value at, Value mask)> body);
  void addStreams(const Item &item, Value kk, int64_t depths, Value count, bool ofAll);
  void endStretch(Value count);
  void streamItem(const Item &item, Value count);
  void emitStreams();
  Values columnSums(const Item &item, const RowTile &tile);
  Values columnsBeside(const Item &item, Value left, Value first, int64_t count);
  Values reduce(const Item &item, const RowTile &tile, const RightSource &source, Value k0, Value depth, Values acc);
  void step(const Item &item, const RowTile &tile, const RightSource &source, ValueList rowBase, Value kk, Value shift,
            int64_t u, const RegisterTile &regs, llvm::MutableArrayRef<Value> acc);
  void configureTiles();
  void packTiles(const Item &item);
  void itemOfTiles(const Item &item);
  void sumOfTiles(const Item &item, Value tile, int64_t down);
  /// Whether a user's code computes the tile.
  bool callsMicro(const Item &item, const RowTile &tile) const {
    return spec.micro && tile.rows == t.rows && !tile.guarded && !item.tailColumns && !item.dynamicTail;
  }
  void microTile(const Item &item, const RowTile &tile, const RightSource &source, Value k0, Value depth, Value sums,
                 bool adds);
  Values rowPointers(const Item &item, const RowTile &tile, Value k0);
  void prefetchNext(const Item &item, const RowTile &tile, Value k, Value depth);
  void prefetchRows(const Item &item, const RightSource &source, Value kk);
  void finishTile(const Item &item, const RowTile &tile, ValueList acc);
  void storeTile(const Item &item, const RowTile &tile, ValueList acc);
  void storeRow(const Item &item, Value row, llvm::function_ref<Value(int64_t)> value);
  void epilogueLoop(const Item &item, Value row, Value inBlock, Value count);

  Value mask(const Item &item, int64_t v);
  RegisterTile registers(const Item &item, int64_t rows) const {
    return {rows, item.vectors, t.lanes, spec.accType, spec.fours, chains(), 0, spec.dots()};
  }
  /// The same in every tile, so that equal rows and columns have equal results wherever they are.
  int64_t chains() const {
    return std::min(t.unroll, chainsThatFit(b.isa(), {t.rows, t.vectors, t.lanes, spec.accType, spec.fours}));
  }
  /// Steps of a stretch of a tile's sums.
  int64_t stretch() const {
    return stepsOfStretch(productStretch(spec.depth(), spec.skinny()) * chains(), 1, t.unroll);
  }
  /// Rows of a known number as tiles: `high` of `tall` rows come first, then those of `low` rows.
  struct RowCut {
    int64_t high, tall, low;
  };
  RowCut cutRows() const;
  Value firstRowOf(Value tile);
  int64_t numTiles() const { return std::max<int64_t>(1, ceilDivInt(spec.rows(), t.rows)); }
  bool staticM() const { return spec.rows() >= 0; }

  CpuBuilder &b;
  const GemmKernel spec; ///< the level's
  const GemmTiles &t;
  const GemmMatrix &a, &right;
  const GemmCallbacks &callbacks;
  Value batch, m, n, k;
  Value elements;   ///< of k, where that counts pairs of a run
  Value packedLeft; ///< scratch for a block of A: [tile][k][row of the tile]
  Value packed;     ///< scratch for a block of a run-time B, in accumulator elements
  Value partials;   ///< scratch for sums, [row in block][columns()]
  Value runRoom;    ///< stack slot of runSlot, made on demand
};

/// Ends what GemmEmitter::configureTiles began.
void releaseTiles(CpuBuilder &b);

} // namespace dmxc::cpu
