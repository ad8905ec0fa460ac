//===- TileEmitter.cpp - f32 products by tiles: the kernel --------------------===//

#include "SumWriter.h"
#include "TileProduct.h"
#include "convolution/WindowTerms.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

namespace {

/// Floats of a load of shared memory, and columns that a thread has side by side.
constexpr int64_t kVector = 4;

class TileEmitter {
public:
  TileEmitter(CudaBuilder &b, const RegionBody &body, const TileProduct &product, const SumTile &tile)
      : b(b), product(product), tile(tile), f32(b.getF32Type()),
        writer(b, body, product, layoutOf(body, product, tile)) {
    if (product.tableBytes())
      table.emplace(b, *product.windows, product.k, tile.sharedBytes());
  }

  void emit();

private:
  using Values = SmallVector<Value>;
  /// What is copied of one side: where in its tile, and in memory.
  struct Panel {
    TileProduct::Side side;
    int64_t rows, pitch, at; ///< of the tile, of a term's row in shared memory, and where in a buffer: floats
    bool rowsFirst;          ///< neighbours in memory are rows, else terms
    Value first, source;     ///< its first row, and where its batch item begins
  };

  static SumLayout layoutOf(const RegionBody &body, const TileProduct &product, const SumTile &tile) {
    return {tile.rows,  tile.columns,
            kVector,    tile.columns * kVector / tile.own(),
            tile.own(), SumWriter::columnsOfStore(body, product) == kVector};
  }
  Panel panel(const TileProduct::Side &side, int64_t rows, int64_t pitch, int64_t at, Value first, Value item);
  void emitTile(Value number);
  Values sums(const Panel &left, const Panel &right);
  /// A loaded number, which nobody looks at before it is put down, and whether it is there; null: it is.
  struct Loaded {
    Value number, has;
  };
  SmallVector<Loaded> load(const Panel &panel, Value firstTerm);
  void put(const Panel &panel, ArrayRef<Loaded> loaded, Value buffer);
  void multiply(Value buffer, Values &sums);
  Values vectorsAt(Value place, int64_t apart);
  /// A number of a panel's elements, which threads have in turn: its row and its term.
  std::pair<Value, Value> placeOf(const Panel &panel, int64_t i);
  int64_t elements(const Panel &panel) const { return panel.rows * tile.terms() / tile.threads(); }
  Value floatAt(Value place) { return b.elementPtr(f32, b.shared(), place); }
  void meet() { NVVM::Barrier0Op::create(b); }

  CudaBuilder &b;
  const TileProduct &product;
  const SumTile &tile;
  Type f32;
  SumWriter writer;
  std::optional<TermTable> table; ///< of windows
  Value ownRow, ownColumn;        ///< of the tile
};

void TileEmitter::emit() {
  Value across = b.idx(tile.columns / tile.own());
  ownRow = b.mulC(b.floorDiv(b.threadInBlock(), across), tile.own());
  ownColumn = b.mulC(b.rem(b.threadInBlock(), across), kVector);
  if (table)
    table->fill(tile.threads());
  b.forItems(product.tiles(tile), [&](Value number) { emitTile(number); });
}

TileEmitter::Panel TileEmitter::panel(const TileProduct::Side &side, int64_t rows, int64_t pitch, int64_t at,
                                      Value first, Value item) {
  Value source = b.idx(side.offset);
  for (size_t axis = product.joined ? 0 : product.batchDims.size(); axis-- > 0;) {
    Value size = b.idx(product.batchDims[axis]);
    source = b.add(source, b.mulC(axis ? b.rem(item, size) : item, side.batch[axis]));
    item = axis ? b.floorDiv(item, size) : item;
  }
  return {side, rows, pitch, at, side.windows || !side.kStride.is(1), first, source};
}

void TileEmitter::emitTile(Value number) {
  Value down = b.idx(Dim::ceilDiv(product.m, tile.rows)), across = b.idx(Dim::ceilDiv(product.n, tile.columns));
  Value row = b.rem(number, down), rest = b.floorDiv(number, down), column = b.rem(rest, across),
        item = product.batch.is(1) ? b.idx(0) : b.floorDiv(rest, across);
  row = b.mulC(row, tile.rows);
  column = b.mulC(column, tile.columns);
  Panel left = panel(product.left(), tile.rows, tile.rowPitch(), 0, row, item),
        right = panel(product.right(), tile.columns, tile.columnPitch(), tile.terms() * tile.rowPitch(), column, item);
  Values all = sums(left, right);
  for (int64_t i = 0; i < tile.own(); ++i)
    writer.write(ArrayRef(all).slice(static_cast<size_t>(i * tile.own()), static_cast<size_t>(tile.own())), item,
                 b.add(row, b.addC(ownRow, i)), b.add(column, ownColumn));
}

/// While a step's terms are multiplied, the next one's are under way; the last one loads the first one's again.
TileEmitter::Values TileEmitter::sums(const Panel &left, const Panel &right) {
  meet(); // who computed the tile before may still read
  put(left, load(left, b.idx(0)), b.idx(0));
  put(right, load(right, b.idx(0)), b.idx(0));
  meet();
  Value terms = b.idx(product.k);
  Values init(static_cast<size_t>(tile.own() * tile.own()), b.constant(f32, 0));
  init.push_back(b.idx(0));
  Values last = b.forLoop(b.idx(0), terms, b.idx(tile.terms()), init, [&](Value term, ValueRange carried) {
    Values own(carried.drop_back());
    Value buffer = carried.back(), next = b.addC(term, tile.terms()), other = b.sub(b.idx(tile.buffer()), buffer);
    next = arith::SelectOp::create(b, b.cmp(arith::CmpIPredicate::slt, next, terms), next, b.idx(0));
    SmallVector<Loaded> ofLeft = load(left, next), ofRight = load(right, next);
    multiply(buffer, own);
    put(left, ofLeft, other);
    put(right, ofRight, other);
    meet();
    own.push_back(other);
    return own;
  });
  last.pop_back();
  return last;
}

std::pair<Value, Value> TileEmitter::placeOf(const Panel &panel, int64_t i) {
  Value number = b.addC(b.threadInBlock(), i * tile.threads());
  Value size = b.idx(panel.rowsFirst ? panel.rows : tile.terms());
  Value inner = b.rem(number, size), outer = b.floorDiv(number, size);
  return panel.rowsFirst ? std::pair(inner, outer) : std::pair(outer, inner);
}

/// What is not there is 0 along the terms; of rows that are not there, the last one, whose sums nobody stores.
SmallVector<TileEmitter::Loaded> TileEmitter::load(const Panel &panel, Value firstTerm) {
  const TileProduct::Side &side = panel.side;
  Value lastRow = b.idx(side.rows - 1), lastTerm = b.idx(product.k - 1);
  bool isWhole = side.rows.known() && *side.rows.known() % panel.rows == 0,
       termsAreWhole = *product.k.known() % tile.terms() == 0;
  struct Place {
    Value buffer, at, has;
  };
  SmallVector<Place> places;
  for (int64_t i = 0; i < elements(panel); ++i) {
    auto [ownRow, ownTerm] = placeOf(panel, i);
    Value row = b.add(panel.first, ownRow), term = b.add(firstTerm, ownTerm), has;
    if (!isWhole)
      row = b.minS(row, lastRow);
    if (!termsAreWhole) {
      has = b.cmp(arith::CmpIPredicate::sle, term, lastTerm);
      term = b.minS(term, lastTerm);
    }
    Value place = panel.source, buffer = b.buffer(side.buffer);
    if (side.windows) {
      auto [offset, isInside] = table->look(pixelOf(b, *side.windows, row), term);
      has = has ? Value(arith::AndIOp::create(b, has, isInside)) : isInside;
      // Of the image there may be nothing to read instead, of the weights there is.
      buffer = arith::SelectOp::create(b, isInside, buffer, b.buffer(product.left().buffer));
      place = arith::SelectOp::create(b, isInside, b.add(place, offset), b.idx(0));
    } else {
      place = b.add(b.add(place, b.mulC(row, side.rowStride)), b.mulC(term, side.kStride));
    }
    places.push_back({buffer, place, has});
  }
  SmallVector<Loaded> loaded;
  for (const Place &place : places)
    loaded.push_back({b.load(f32, place.buffer, place.at), place.has});
  return loaded;
}

void TileEmitter::put(const Panel &panel, ArrayRef<Loaded> loaded, Value buffer) {
  for (auto [i, each] : llvm::enumerate(loaded)) {
    auto [row, term] = placeOf(panel, static_cast<int64_t>(i));
    Value place = b.add(b.add(b.mulC(term, panel.pitch), row), b.addC(buffer, panel.at));
    Value number =
        each.has ? Value(arith::SelectOp::create(b, each.has, each.number, b.constant(f32, 0))) : each.number;
    LLVM::StoreOp::create(b, number, floatAt(place), /*alignment=*/4);
  }
}

/// A thread's rows or columns of a term: runs of four, so far apart.
TileEmitter::Values TileEmitter::vectorsAt(Value place, int64_t apart) {
  Values values;
  auto type = VectorType::get({kVector}, f32);
  for (int64_t first = 0; first < tile.own(); first += kVector) {
    Value vector = LLVM::LoadOp::create(b, type, floatAt(b.addC(place, first / kVector * apart)), /*alignment=*/16);
    for (int64_t i = 0; i < kVector; ++i)
      values.push_back(vector::ExtractOp::create(b, vector, i));
  }
  return values;
}

void TileEmitter::multiply(Value buffer, Values &sums) {
  Value columns = b.addC(buffer, tile.terms() * tile.rowPitch());
  for (int64_t term = 0; term < tile.terms(); ++term) {
    Values x = vectorsAt(b.add(b.addC(buffer, term * tile.rowPitch()), ownRow), kVector),
           y = vectorsAt(b.add(b.addC(columns, term * tile.columnPitch()), ownColumn),
                         tile.columns * kVector / tile.own());
    for (size_t i = 0; i < x.size(); ++i)
      for (size_t j = 0; j < y.size(); ++j)
        sums[i * y.size() + j] = b.fma(x[i], y[j], sums[i * y.size() + j]);
  }
}

} // namespace

void dmxc::cuda::emitTiles(CudaBuilder &b, const RegionBody &body, const TileProduct &product, const SumTile &tile) {
  TileEmitter(b, body, product, tile).emit();
}
