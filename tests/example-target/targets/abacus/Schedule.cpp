//===- Schedule.cpp - a product as a program of the abacus ----------------===//
#include "Abacus.h"

#include "targets/common/queues/ProgramWriter.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace dmxc;
using dmx::abacus::kTile;
using dmx::abacus::kTileBytes;

namespace {

/// Sizes of a product, padded to whole tiles in pairs.
struct Sizes {
  int64_t rows, depth, pairs; ///< tiles along m, fours of them along k, pairs along n
  explicit Sizes(const kernels::Contraction &product)
      : rows(llvm::divideCeil(*product.m.known(), kTile)), depth(llvm::divideCeil(*product.k.known(), 4 * kTile)),
        pairs(llvm::divideCeil(*product.n.known(), 2 * kTile)) {}
  /// Bytes of a row, and of a matrix.
  int64_t aRow() const { return depth * 4 * kTile * 4; }
  int64_t bRow() const { return pairs * 2 * kTile * 4; }
  int64_t aBytes() const { return rows * kTile * aRow(); }
  int64_t bBytes() const { return depth * 4 * kTile * bRow(); }
  int64_t cBytes() const { return rows * kTile * bRow(); }
};

/// c = a * b. Two halves of SRAM take turns, each with two tiles of a and of b along k: while the engine has one, the
/// other is filled; results take turns as well. Tiles of a are copied; those of b are put by one queue and got by
/// another. A token counts tiles: the engine waits for two of each.
class ProductProgram {
public:
  ProductProgram(ProgramWriter &writer, dmir::MatMulOp product, bool byColumns)
      : writer(writer), product(product), s(kernels::Contraction(product)), byColumns(byColumns) {}

  void write(bool swapped) {
    if (swapped) // the kernel's first argument is b
      b = matrix(dlir::ArgumentRole::input, "b", product.getRhs(), s.bBytes(), s.bRow());
    a = matrix(dlir::ArgumentRole::input, "a", product.getLhs(), s.aBytes(), s.aRow());
    if (!swapped)
      b = matrix(dlir::ArgumentRole::input, "b", product.getRhs(), s.bBytes(), s.bRow());
    c = matrix(dlir::ArgumentRole::output, "c", product.getResult(), s.cBytes(), s.bRow());
    tilesA = writer.memory("SRAM", "tiles of a", 4 * kTileBytes);
    tilesB = writer.memory("SRAM", "tiles of b", 4 * kTileBytes);
    tilesC = writer.memory("SRAM", "tiles of c", 2 * kTileBytes);
    writer.channel("b", 2);
    writer.graph("main", 1);
    aFull = writer.token(), aFree = writer.token(4);
    bFull = writer.token(), bFree = writer.token(4);
    cFull = writer.token(), cFree = writer.token(2);
    writer.queue("abacus", "dma", 0, [&] { loadA(); });
    writer.queue("abacus", "dma", 1, [&] { putB(); });
    writer.queue("abacus", "dma", 2, [&] { getB(); });
    writer.queue("abacus", "multiplier", 0, [&] { multiply(); });
    writer.queue("abacus", "dma", 3, [&] { storeC(); });
  }

private:
  /// An argument and its buffer, row by row.
  Value matrix(dlir::ArgumentRole role, StringRef name, Value tensor, int64_t bytes, int64_t row) {
    auto type = cast<RankedTensorType>(tensor.getType());
    writer.argument(role, name, type, "f32");
    Value memory = writer.memory("DRAM", name, bytes);
    writer.piece(memory, name, 0, 0, {0, 0}, type.getShape(), {row, 4});
    return memory;
  }

  /// A tile is 16 rows that are so far apart.
  Value tile(int64_t source, int64_t target) {
    return writer.descriptor({"f32", {}, kTile, {{kTile, source, target}}});
  }
  static constexpr int64_t kRow = kTile * 4; ///< of a tile in SRAM

  /// Tiles in SRAM: two halves of two.
  static Sum quarter(const Sum &half, const Sum &t) { return half * (2 * kTileBytes) + t * kTileBytes; }
  void halves(function_ref<void(Sum half, Sum t)> body) {
    writer.loop(2, [&](const Sum &half) { writer.loop(2, [&](const Sum &t) { body(half, t); }); });
  }
  /// All tiles of the result, two of a row after each other.
  void results(function_ref<void(Sum i, Sum pair, Sum turn)> body) {
    auto both = [&](const Sum &i, const Sum &pair) { writer.loop(2, [&](const Sum &turn) { body(i, pair, turn); }); };
    if (byColumns)
      writer.loop(s.pairs, [&](const Sum &pair) { writer.loop(s.rows, [&](const Sum &i) { both(i, pair); }); });
    else
      writer.loop(s.rows, [&](const Sum &i) { writer.loop(s.pairs, [&](const Sum &pair) { both(i, pair); }); });
  }
  /// All pairs of tiles that are multiplied; `at` counts along k.
  void steps(function_ref<void(Sum i, Sum j, Sum at, Sum quarter)> body) {
    results([&](const Sum &i, const Sum &pair, const Sum &turn) {
      writer.loop(s.depth, [&](const Sum &p) {
        halves(
            [&](const Sum &half, const Sum &t) { body(i, pair * 2 + turn, p * 4 + half * 2 + t, quarter(half, t)); });
      });
    });
  }

  void loadA() {
    steps([&](const Sum &i, const Sum &, const Sum &at, const Sum &quarter) {
      writer.group("load a", aFree, aFull, [&] {
        writer.copy("DRAM", "SRAM")
            .buffer(a, i * (kTile * s.aRow()) + at * kRow)
            .buffer(tilesA, quarter)
            .with(tile(s.aRow(), kRow))
            .create();
      });
    });
  }

  void putB() {
    steps([&](const Sum &, const Sum &j, const Sum &at, const Sum &) {
      writer.group("put b", {}, {}, [&] {
        writer.put("b").buffer(b, j * kRow + at * (kTile * s.bRow())).with(tile(s.bRow(), kRow)).create();
      });
    });
  }

  void getB() {
    writer.loop(s.rows * 2 * s.pairs * s.depth, [&](const Sum &) {
      halves([&](const Sum &half, const Sum &t) {
        writer.group("get b", bFree, bFull,
                     [&] { writer.get("b").buffer(tilesB, quarter(half, t)).with(tile(s.bRow(), kRow)).create(); });
      });
    });
  }

  void multiply() {
    auto result = [&](const Sum &turn) {
      writer.loop(s.depth, [&](const Sum &p) {
        writer.loop(2, [&](const Sum &half) {
          writer.tokens(writer.builder, {aFull, bFull}, {}, 2);
          writer.loop(2, [&](const Sum &t) {
            writer.task("abacus.multiply")
                .buffer(tilesA, quarter(half, t))
                .buffer(tilesB, quarter(half, t))
                .buffer(tilesC, turn * kTileBytes)
                .sum("accumulate", p + half + t)
                .create();
          });
          writer.tokens(writer.builder, {}, {aFree, bFree}, 2);
        });
      });
    };
    writer.loop(s.rows * s.pairs, [&](const Sum &) {
      writer.loop(2, [&](const Sum &turn) { writer.group("multiply", cFree, cFull, [&] { result(turn); }); });
    });
  }

  void storeC() {
    auto store = [&](const Sum &i, const Sum &j, const Sum &turn) {
      writer.copy("SRAM", "DRAM")
          .buffer(tilesC, turn * kTileBytes)
          .buffer(c, i * (kTile * s.bRow()) + j * (2 * kRow) + turn * kRow)
          .with(tile(kRow, s.bRow()))
          .create();
    };
    results([&](const Sum &i, const Sum &pair, const Sum &turn) {
      writer.group("store c", cFull, cFree, [&] { store(i, pair, turn); });
    });
  }

  ProgramWriter &writer;
  dmir::MatMulOp product;
  Sizes s;
  bool byColumns;
  Value a, b, c, tilesA, tilesB, tilesC, aFull, aFree, bFull, bFree, cFull, cFree;
};

} // namespace

bool abacus::hasOrders(const kernels::Contraction &product) {
  Sizes sizes(product);
  return sizes.rows > 1 && sizes.pairs > 1;
}

int64_t abacus::bytesInDram(const kernels::Contraction &product) {
  Sizes sizes(product);
  return sizes.aBytes() + sizes.bBytes() + sizes.cBytes();
}

void abacus::writeProgram(dlir::KernelOp kernel) {
  auto product = cast<dmir::MatMulOp>(kernel.getBlock()->front());
  OpBuilder builder(kernel);
  ProgramWriter writer(builder, kernel.getLoc(), kernel.getSymName(), "abacus");
  auto order = kernel.getStrategy().getAs<StringAttr>(kOrder); // text may have left it out
  bool byColumns = order && order == "columns";
  ProductProgram(writer, product, byColumns).write(product.getLhs() != kernel.getBlock()->getArgument(0));
}
