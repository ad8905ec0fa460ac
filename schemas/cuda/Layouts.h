//===- Layouts.h - how tensor cores see tiles and sums ----------*- C++ -*-===//
//
// Where elements of 16 bits lie in shared memory that a tensor map has filled with the swizzle of 128 bytes, how a
// matrix descriptor says that, and which of a thread's registers holds which sum. Formulas of the PTX ISA manual,
// "Asynchronous warpgroup level matrix multiply-accumulate instructions": strides and swizzling modes of shared memory,
// matrix descriptor, register fragments of wgmma.m64nNk16.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>

namespace dmx::cuda {

/// Bytes of a row of a tile, and elements; rows of which the swizzle makes a pattern, and its bytes: tiles begin at
/// multiples of that.
inline constexpr int64_t kTileRowBytes = 128, kTileRowElements = 64, kPatternRows = 8, kPatternBytes = 1024;
/// Terms that one wgmma of 16-bit operands sums, and rows of its result.
inline constexpr int64_t kMmaDepth = 16, kMmaRows = 64;

/// Where the swizzle puts a byte of shared memory.
constexpr uint64_t swizzled(uint64_t address) { return address ^ (address >> 7 & 7) << 4; }

/// A tile whose rows are neighbours along k ("K-major"): r rows of 64 elements of k each.
struct KMajor {
  /// Bytes from the tile's beginning, before the swizzle, of an element.
  static constexpr uint64_t offset(uint64_t row, uint64_t k) { return row * kTileRowBytes + k * 2; }
  /// From one step of kMmaDepth to the next.
  static constexpr uint64_t kStep = kMmaDepth * 2;
  static constexpr uint64_t leading() { return 16; } // unused with this swizzle
};

/// A tile whose rows are neighbours along the other axis ("MN-major"): for each 64 of it, `depth` rows of 64 elements.
struct MnMajor {
  static constexpr uint64_t offset(uint64_t row, uint64_t k, uint64_t depth) {
    return row / kTileRowElements * leading(depth) + k * kTileRowBytes + row % kTileRowElements * 2;
  }
  static constexpr uint64_t kStep = kMmaDepth * kTileRowBytes;
  static constexpr uint64_t leading(uint64_t depth) { return depth * kTileRowBytes; }
};

/// A matrix descriptor without the address, whose bits 4 to 17 are its bits 0 to 13: the leading offset, the stride of
/// patterns, the swizzle of 128 bytes.
constexpr uint64_t descriptorOf(uint64_t leadingBytes) {
  return uint64_t{1} << 62 | (uint64_t{kPatternBytes} >> 4) << 32 | (leadingBytes >> 4) << 16;
}
constexpr uint64_t descriptorAddress(uint64_t address) { return address >> 4 & 0x3fff; }

/// Sum number i of a thread, of a warpgroup's 64 rows: at threadRow + registerRow and threadColumn + registerColumn.
constexpr int64_t threadRow(int64_t thread) { return thread / 32 * 16 + thread % 32 / 4; }
constexpr int64_t threadColumn(int64_t thread) { return thread % 4 * 2; }
constexpr int64_t registerRow(int64_t i) { return i / 2 % 2 * 8; }
constexpr int64_t registerColumn(int64_t i) { return i / 4 * 8 + i % 2; }
/// Of a row half and a column that a thread has (registerRow / 8, registerColumn), the number.
constexpr int64_t registerOf(int64_t half, int64_t column) { return column / 8 * 4 + half * 2 + column % 2; }

} // namespace dmx::cuda
