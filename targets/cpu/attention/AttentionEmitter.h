//===- AttentionEmitter.h - kernels of attention ----------------*- C++ -*-===//
//
// Two schemes. Rows at once: a block's scores, whole rows, go to scratch. Tiles: scores of some keys at a time, with
// the running greatest score, sum and result of each row, for many keys: what is in scratch then does not grow with
// them. Tiles are visited from the first to the last that a rule keeps something of, or each is asked about
// (AttentionWalk).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Attention.h"

#include "AttentionKeys.h"
#include "KeyClasses.h"
#include "targets/cpu/product/GemmTile.h"
#include "targets/cpu/product/MatmulProduct.h"

#include "targets/common/math/VectorMath.h"

#include "dmxc/Dialect/DMIR/Dims.h"
#include "dmxc/Dialect/DMIR/masks/Columns.h"

#include <cmath>

namespace dmxc::cpu {

/// Key of a strategy, and the decision.
inline constexpr llvm::StringLiteral kBlockRows = "block_rows";
constexpr int64_t kOnlineKeys = 128; ///< of a tile, the most
constexpr int64_t kStripe = 64;      ///< rows that are looked at with keys of no class
constexpr int64_t kOfClass = -2;     ///< in the place of keys of a tile: those of a class
constexpr int64_t kStateBytes = 64;  ///< of AttentionEmitter::state
constexpr int64_t kGreatestKey = 8;  ///< place in it, in floats: the greatest magnitude of keys that are left out
/// Numbers that replace scores are looked for among them up to here, greater ones are weighed without.
constexpr double kMostLookedFor = -1000;

/// Everything about an attention's kernel that does not depend on the level.
struct AttentionDetails {
  kernels::RegionBody body;
  mutable Attention attention; ///< handles, whose accessors are not const
  MatmulProduct scores, result;
  int64_t group = 1;    ///< heads, adjacent batch items, that have the same keys and values: a block has rows of all
  int64_t rows = 0;     ///< of a block: `group` for each place
  bool uniform = false; ///< all blocks have as many
  bool online = false;  ///< tiles
  dmir::MaskOp mask;    ///< whose rule says which keys a block looks at; null: all
  bool all = false;     ///< it does so whatever the rule says
  int64_t keys = kOnlineKeys;        ///< of a tile
  std::optional<KeyClasses> classes; ///< of keys, which are looked at apart
  Units units;                       ///< that products of bf16 are planned for

  /// `rows`: 0 for those that are chosen.
  AttentionDetails(const kernels::RegionBody &body, const Attention &attention, int64_t rows, Units units);
  /// Whether both operands of a product are of bf16.
  bool hasPairs() const { return scores.runPairs || result.runPairs; }
  /// Whether a level multiplies a product in pairs.
  bool inPairs(const MatmulProduct &product, const IsaLevel &level) const {
    return specOf(product).at(level).copiesPairs();
  }
  /// `ofTile`: those of a whole tile, kDynamic in the last one, or kOfClass.
  GemmKernel specOf(const MatmulProduct &product, int64_t ofTile = kDynamic) const;
  /// The products that the kernel emits, by their names in a strategy.
  llvm::SmallVector<std::pair<llvm::StringRef, GemmKernel>> products() const;
  /// The name of a product of these.
  llvm::StringRef nameOf(const MatmulProduct &product, int64_t ofTile) const;
  GemmTiles chosenTiles(const GemmKernel &spec, const IsaLevel &level) const;
  mlir::DictionaryAttr chosenTiles(const IsaLevel &level) const;
  GemmTiles readTiles(mlir::DictionaryAttr tiles, llvm::StringRef name, const GemmKernel &spec,
                      const IsaLevel &level) const;
  /// Scratch of products with a level's tiles.
  int64_t gemmBytes(mlir::DictionaryAttr tiles, const IsaLevel &level) const;
  /// What a block may have, and has where nothing is decided.
  Decision rowsDecision() const;
  /// Whether there is no softmax: scores are weights.
  bool isLinear() const { return attention.keep.has_value(); }
  /// What is computed of products of queries and keys.
  mlir::Value weightsSource() const { return isLinear() ? attention.weights() : attention.softmax.getInput(); }
  /// What leaves out keys.
  dmir::Rule rule() const { return isLinear() ? *attention.keep : dmir::ruleOf(mask); }
  double fill() const { return cast<mlir::FloatAttr>(dmir::MaskOp(mask).getFill()).getValueAsDouble(); }
  /// Whether a row may have to look at keys that the rule leaves out: where it sees none, or none above the number that
  /// replaces scores.
  bool looksAgain() const { return mask && !all && std::isfinite(fill()) && !weighs(); }
  bool adds() const { return mask && dmir::MaskOp(mask).getAdds(); }
  /// Whether scores that are left out weigh something, all the same: so many powers of one number, and so many times
  /// the sum of their values.
  bool weighs() const { return mask && !all && !adds() && std::isfinite(fill()) && fill() > kMostLookedFor; }
  /// Whether each tile is asked about, instead of a first and a last one.
  bool asksTiles() const {
    return isLinear() || classes || (online && mask && (needsTiles(mask) || dmir::MaskOp(mask).getKeep().size() > 1));
  }
  /// Whether a run's numbers say which tiles of keys are looked at.
  bool asksNumbers() const { return mask && !all && differsAlongKeys(dmir::ruleOf(mask)); }
  /// Whether something is done about keys that are left out.
  bool countsLeftOut() const { return weighs() || looksAgain(); }
  /// Of a row of scores in scratch, in elements: room for whole tiles, and an odd number of cache lines, so that rows
  /// do not share a set.
  Dim stride() const { return online ? Dim(keys + 16) : Dim::ceilDiv(result.k, 64) * 64 + 16; }
  /// The same of a row of results.
  int64_t resultStride() const { return ceilDivInt(*result.n.known(), 16) * 16 + 16; }
  /// Whether a block's queries are copied to scratch, where their numbers are not in memory as they are multiplied.
  bool copiesQueries() const { return group > 1 || scores.roundsLhs || !scores.lhsElement.isF32(); }
  /// Of a row of these, as of scores.
  Dim queryStride() const { return Dim::ceilDiv(scores.k, 16) * 16 + 16; }
  /// Rows of a head in a block.
  int64_t places() const { return rows / group; }
  /// Whether rows that are looked at with keys of no class are always as many.
  bool isStriped() const { return uniform && rows % kStripe == 0; }
  Dim blocks() const { return Dim::ceilDiv(result.m, places()); }
  Dim groups() const;
  dmir::TileSize tile() const { return {places(), online ? keys : kKeyTile, online ? keys : kKeyPass}; }
  /// Floats of a block's rows, one a row: rounded up to whole vectors.
  int64_t column() const { return ceilDivInt(rows, 16) * 16; }
  /// Bytes, with those of products.
  Dim scratch(int64_t gemm) const;

private:
  llvm::SmallVector<mlir::Operation *> epilogue() const;
  int64_t headsOfGroup() const;
  Dim rowsAtOnce(int64_t ofTile) const;
  bool choosesTiles(dmir::MaskOp last) const;
  /// Whether a mask leaves nothing out unless each tile is asked about.
  static bool needsTiles(dmir::MaskOp mask);
  bool canLeaveOut(dmir::MaskOp last) const;
  int64_t preferredRows() const;
};

/// Bounds of what a row's scores become on the way to the mask, from bounds of their products: of sums, products and
/// quotients with numbers, or with what is the same in all rows, and of tanh. Nothing for other ops, or where `row` is
/// null and they could not be told.
struct ScoreBounds {
  mlir::Value low, high;
};

/// A matrix of a batch item, from a row on.
GemmMatrix matrixWithin(CpuBuilder &b, GemmMatrix matrix, mlir::Value batch, mlir::Value row);

class AttentionEmitter {
public:
  /// `tiles`: the level's, of the strategy.
  AttentionEmitter(CpuBuilder &b, const AttentionDetails &details, mlir::DictionaryAttr tiles);
  void emit();

private:
  using Value = mlir::Value;
  // --- both schemes
  void testRows(Value from, Value count);
  void chooseKeys(llvm::function_ref<void(const AttentionKeys &)> look,
                  llvm::function_ref<Value(Value row)> highestOfRow);
  GemmMatrix queriesOfBlock();
  void copyQueries();
  void emitScores(Value from, Value to, int64_t ofTile = kDynamic);
  GemmTiles tilesOf(const MatmulProduct &product, int64_t ofTile = kDynamic) const;
  Value highestOf(Value row);
  /// `areWeights`: nothing is done to them any more before they are multiplied.
  Value powersOf(Value row, Value shift, bool areWeights);
  void storeWeights(Value weights, Value row, Value column);
  GemmMatrix weightsFrom(Value column);
  Value clearRow(Value row, Value total, Value inverse);
  void writeSums(Value row, kernels::Index column, Value sums);
  Value foldRow(Value row, double first, llvm::function_ref<Value(Value at, Value inside, Value sum)> step,
                llvm::function_ref<Value(Value, Value)> combine);
  GemmCallbacks storing(const std::function<void(Value row, kernels::Index column, Value sums)> &use);
  /// The batch item and the place of a row of the block.
  std::pair<Value, Value> placeOf(Value row);
  kernels::Indices indexOf(Value tensor, Value row, kernels::Index column);
  Value add(Value x, Value y) { return mlir::arith::AddFOp::create(b, x, y); }
  Value mul(Value x, Value y) { return mlir::arith::MulFOp::create(b, x, y); }
  Value max(Value x, Value y) {
    // A NaN is not seen here, but by the sum.
    using namespace mlir::arith;
    return SelectOp::create(b, CmpFOp::create(b, CmpFPredicate::OGT, x, y), x, y);
  }
  // --- rows at once
  void emitRows();
  void emitKeptScores(const AttentionKeys &keys);
  void emitSoftmax(Value row);
  void finishWeights(Value row, Value inverse);
  void emitResult();
  // --- tiles
  void startRows();
  void forEachTile(Value first, Value last, llvm::function_ref<void(Value at, Value end, int64_t keys)> use);
  void emitTiles();
  void lookAtTiles(const AttentionKeys &keys);
  void emitTile(Value at, Value end, Value isFull, int64_t keys, const dmir::Rule *rule = nullptr);
  void emitMaskedScores(Value at, Value end, int64_t keys, const dmir::Rule *rule);
  void fetchMatrices(Value row, Value next, int64_t keys);
  void addToRow(Value row);
  void addResult(Value at, int64_t keys);
  void writeResult(Value row);
  // --- tiles that are each asked about
  struct Visit {
    Value present, full; ///< i1: some row keeps some key; all keep all
  };
  void walkTiles();
  void rangesOf(const dmir::Rule &rule, Value from, Value count);
  void walkClasses();
  void lookAtClass();
  void lookAtOthers();
  void walkOnce(Value isAgain);
  Visit visitOf(Value at, Value end);
  Visit inLists(Value at);
  void leaveOut(Value at, Value end);
  void sumValues(Value at, Value end);
  void boundKeys(Value at, Value end);
  Value greatestOf(const GemmMatrix &matrix, mlir::Type element, Value rows, Value columns, bool sums);
  void boundLines();
  void weighLeftOut(Value row);
  Value mayCount(Value row);
  ScoreBounds boundsOf(Value tensor, Value row, ScoreBounds ofProduct);
  ScoreBounds boundsOfOther(Value tensor, Value whole, Value row);
  Value number(int64_t slot) { return b.load(b.getI64Type(), state, b.idx(slot)); }
  void setNumber(int64_t slot, Value value) { b.store(value, state, b.idx(slot)); }

  CpuBuilder &b;
  const AttentionDetails &d;
  mlir::DictionaryAttr tiles;
  kernels::ElementExpr e;
  kernels::ResultWriter writer;
  mlir::Type f32;
  Value table, inverses;         ///< scratch: scores of the block; inverses of the sums of its rows
  Value highest, totals, scales; ///< scratch of tiles: a row's greatest score and sum so far, and what scales these
  Value results;                 ///< scratch of tiles: what the block's results are so far
  Value stride;                  ///< of a row of the table
  Value queries;                 ///< scratch, where they are copied: the block's rows of Q
  Value state;                   ///< scratch, where keys are chosen: the keys, and whether to look again
  Value leftOut;                 ///< scratch of what weighs all the same: the sum of the values
  llvm::SmallVector<dmir::ColumnRange<Value>> cases; ///< of the block, where tiles are asked about
  llvm::DenseMap<Value, ScoreBounds> lineBounds;     ///< of the block: of what is the same in all rows
  Value batch, first, rows;                          ///< the block: the first item and place, and its rows
  /// Numbers first, first + step, ... that are looked at; null: all of them.
  struct Line {
    Value first;
    int64_t step = 1;
    Value count;
  };
  Line rowLine, keyLine; ///< rows of the block, keys of the matrix
  bool anyCount = false; ///< the table's rows may end within a vector
  Value at(const Line &line, Value number) {
    return line.first ? b.add(line.first, b.mulC(number, line.step)) : number;
  }
  Value rowCount() { return rowLine.count ? rowLine.count : rows; }
  Value from, to;                ///< its keys in the table
  Value origin;                  ///< the key that the table begins with
  std::optional<KeyTests> tests; ///< of the block's rows
};

} // namespace dmxc::cpu
