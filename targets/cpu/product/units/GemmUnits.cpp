//===- GemmUnits.cpp - products of bf16 and of bytes by AMX's tiles -------===//
//
// A tile is a register of up to 16 rows of 64 bytes. tdpbf16ps adds the product of a tile of A (rows of pairs along k)
// and a tile of B (a row a pair, 16 columns) to a tile of sums, tdpbusd that of fours of u8 and of s8. Eight of them
// hold one or two tiles of A beneath each other, as many of B as fit, and the sums, which stay where they are from the
// first k to the last. Tiles are configured where the kernel begins and released where it ends; they hold nothing in
// between calls.
//
//===----------------------------------------------------------------------===//

#include "targets/cpu/product/GemmEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

#include <array>

using namespace dmxc::cpu;
using namespace mlir;

namespace {

void tileOp(CpuBuilder &b, StringRef name, ArrayRef<int64_t> tiles, ValueRange operands = {}) {
  SmallVector<Value> all;
  for (int64_t tile : tiles)
    all.push_back(b.constantInt(b.getI8Type(), tile));
  llvm::append_range(all, operands);
  LLVM::CallIntrinsicOp::create(b, b.getStringAttr("llvm.x86." + name), all);
}

/// Which register is what.
struct Roles {
  int64_t down;
  static constexpr int64_t firstLeft = 4, registers = 8;

  int64_t sum(int64_t row, int64_t column) const { return row * 2 + column; } ///< 0 to 3, in one or two rows
  int64_t left(int64_t row) const { return firstLeft + row; }
  int64_t right(int64_t column) const { return firstLeft + down + column % (registers - firstLeft - down); }
};

/// What ldtilecfg reads (palette 1): bytes of a row of each register at 16, two bytes each, rows of each at 48.
std::array<uint8_t, 64> configuration(const Roles &roles, int64_t rows, int64_t steps) {
  std::array<uint8_t, 64> bytes{};
  bytes[0] = 1;
  for (int64_t tile = 0; tile < Roles::registers; ++tile) {
    bool isSum = tile < Roles::firstLeft, isLeft = !isSum && tile < Roles::firstLeft + roles.down;
    bytes[16 + 2 * tile] = isLeft ? 4 * steps : kTileRowBytes;
    bytes[48 + tile] = isSum || isLeft ? rows : steps;
  }
  return bytes;
}

} // namespace

void dmxc::cpu::releaseTiles(CpuBuilder &b) { tileOp(b, "tilerelease", {}); }

void GemmEmitter::configureTiles() {
  std::array<uint8_t, 64> bytes = configuration({t.tilesDown()}, t.tileRows(), spec.tileDepth().steps);
  Value room = b.tileBuffer();
  for (int64_t word = 0; word < 8; ++word) {
    uint64_t value = 0;
    for (int64_t i = 0; i < 8; ++i)
      value |= uint64_t(bytes[8 * word + i]) << 8 * i;
    b.store(b.constantInt(b.getI64Type(), static_cast<int64_t>(value)), room, b.idx(word));
  }
  tileOp(b, "ldtilecfg", {}, room);
}

/// A block of A as tiles, [tile of rows][tile of k][row], each row kTileRowBytes; elements beyond k are zeros, and so
/// are those that the last tile has again. Rows beyond m are arbitrary.
void GemmEmitter::packTiles(const Item &item) {
  auto [steps, tiles, again] = spec.tileDepth();
  int64_t perStep = spec.fours ? 4 : 2, lanes = kTileRowBytes * perStep / 4, depth = perStep * steps;
  int64_t elements = spec.fours ? 4 * (spec.depth() - 1) + spec.lastFour : spec.depth(),
          rest = elements - (tiles - 1) * depth;
  int64_t height = t.tileRows(), wholes = rest == depth ? tiles : tiles - 1;
  Type word = b.getIntegerType(32 / perStep);
  b.forLoop(item.firstRow, item.lastRow, b.idx(1), [&](Value row) {
    Value inBlock = b.sub(row, item.firstRow), from = b.mul(row, a.rowStride);
    Value tile = b.floorDiv(inBlock, b.idx(height)), inTile = b.rem(inBlock, b.idx(height));
    Value to = b.mulC(b.add(b.mulC(tile, tiles * height), inTile), lanes);
    auto load = [&](Value number, int64_t valid) {
      Value at = b.add(from, b.mulC(number, depth));
      return valid == lanes ? b.load(word, item.aBase, at, lanes)
                            : b.maskedLoad(word, item.aBase, at, b.headMask(lanes, valid));
    };
    auto placeOf = [&](Value number) { return b.add(to, b.mulC(number, height * lanes)); };
    b.forLoop(b.idx(0), b.idx(wholes), b.idx(1),
              [&](Value number) { b.store(load(number, depth), packedLeft, placeOf(number)); });
    if (wholes == tiles)
      return;
    Value last = b.idx(wholes), place = placeOf(last), given = load(last, rest);
    if (!again)
      return b.store(given, packedLeft, place);
    b.store(b.constant(b.laneType(word, lanes), 0), packedLeft, place);
    b.maskedStore(given, packedLeft, b.addC(place, again * perStep), b.headMask(lanes, rest));
  });
}

void GemmEmitter::itemOfTiles(const Item &item) {
  if (spec.copiesB())
    packRight(item, b.idx(0), b.idx(spec.panelRows()));
  Value count = b.sub(item.lastRow, item.firstRow);
  b.forLoop(b.idx(0), count, b.idx(t.rows), [&](Value row) {
    Value tile = b.floorDiv(row, b.idx(t.tileRows()));
    if (t.tilesDown() == 1)
      sumOfTiles(item, tile, 1);
    else
      b.ifThen(
          b.cmp(arith::CmpIPredicate::slt, b.addC(row, t.tileRows()), count), [&] { sumOfTiles(item, tile, 2); },
          [&] { sumOfTiles(item, tile, 1); });
    epilogueLoop(item, b.add(item.firstRow, row), b.idx(0), b.minS(b.idx(t.rows), b.sub(count, row)));
  });
}

/// The sums of `down` tiles of rows, from `tile` of the block on, and the item's columns: to `partials`.
void GemmEmitter::sumOfTiles(const Item &item, Value tile, int64_t down) {
  Roles roles{t.tilesDown()};
  auto [steps, tiles, again] = spec.tileDepth();
  const int64_t leftBytes = t.tileRows() * kTileRowBytes, lastStep = steps * (tiles - 1) - again;
  StringRef product = spec.fours ? "tdpbusd" : "tdpbf16ps";
  Type byte = b.getI8Type();
  Value left = b.elementPtr(byte, packedLeft, b.mulC(tile, tiles * leftBytes)), stride = b.idx(kTileRowBytes);
  // Panels lie one behind the other, columns that are copied beside each other.
  const bool copied = spec.copiesB();
  const int64_t rightRow = copied ? t.columns() * 4 : kTileRowBytes;
  Value right = copied ? packed : item.bBase, rightStride = b.idx(rightRow);
  for (int64_t r = 0; r < down; ++r)
    for (int64_t v = 0; v < item.vectors; ++v)
      tileOp(b, "tilezero", roles.sum(r, v));
  b.forLoop(0, tiles, 1, [&](Value number) {
    auto load = [&](int64_t to, Value base, Value offset) {
      tileOp(b, "tileloadd64", to, {b.elementPtr(byte, base, offset), base == left ? stride : rightStride});
    };
    Value step = b.mulC(number, steps), leftAt = b.mulC(number, leftBytes);
    Value rightAt = b.mulC(again ? b.minS(step, b.idx(lastStep)) : step, rightRow);
    // Each is loaded just before it is used first: products wait for less.
    for (int64_t r = 0; r < down; ++r) {
      load(roles.left(r), left, b.addC(leftAt, r * tiles * leftBytes));
      for (int64_t v = 0; v < item.vectors; ++v) {
        if (r == 0)
          load(roles.right(v), right, b.addC(rightAt, v * (copied ? 1 : spec.panelRows()) * kTileRowBytes));
        tileOp(b, product, {roles.sum(r, v), roles.left(r), roles.right(v)});
      }
    }
  });
  Value rowBytes = b.idx(t.columns() * 4);
  for (int64_t r = 0; r < down; ++r)
    for (int64_t v = 0; v < item.vectors; ++v) {
      Value to = b.elementPtr(spec.accType, partials, b.idx(r * t.tileRows() * t.columns() + v * t.lanes));
      tileOp(b, "tilestored64", roles.sum(r, v), {to, rowBytes});
    }
}
