//===- Product.cpp - wgmma ----------------------------------------------------===//

#include "Product.h"
#include "Block.h"

#include <algorithm>
#include <cstring>

namespace dmxrt::cuda {
namespace {

constexpr uint32_t kRows = 16;  ///< of a warp
constexpr uint32_t kChunk = 16; ///< bytes that a swizzle moves together

/// Where an accumulator's register of a lane is in the warp's rows (PTX ISA, wgmma register fragments).
uint32_t rowOf(uint32_t lane, uint32_t index) { return lane / 4 + 8 * (index / 2 % 2); }
uint32_t columnOf(uint32_t lane, uint32_t index) { return 8 * (index / 4) + 2 * (lane % 4) + index % 2; }

/// The same as widenHalf, without branches: the exponent's bias is 112 less, and a product by a power of 2 is exact.
float floatOfHalf(uint32_t bits) {
  float magnitude = fromBits<float>((bits & 0x7fff) << 13) * 0x1p112f;
  auto word = static_cast<uint32_t>(toBits(magnitude));
  word |= (bits & 0x7c00) == 0x7c00 ? 0x7f800000u : 0u;
  return fromBits<float>(word | (bits & 0x8000) << 16);
}

float valueOf(uint32_t bits, ProductForm::Type type) {
  switch (type) {
  case ProductForm::Bf16:
    return fromBits<float>(uint64_t(bits) << 16);
  case ProductForm::F16:
    return floatOfHalf(bits);
  default:
    return fromBits<float>(bits & 0xffffe000u); // tf32: the upper 19 bits
  }
}

/// The floats of 16 bytes; how many they are.
template <ProductForm::Type T> [[gnu::always_inline]] inline uint32_t widen(const std::byte *from, float *to) {
  if constexpr (T == ProductForm::Tf32) {
    uint32_t words[4];
    std::memcpy(words, from, sizeof words);
    for (uint32_t i = 0; i < 4; ++i)
      to[i] = valueOf(words[i], T);
    return 4;
  }
  uint16_t halves[8];
  std::memcpy(halves, from, sizeof halves);
  for (uint32_t i = 0; i < 8; ++i)
    to[i] = T == ProductForm::Bf16 ? fromBits<float>(uint32_t(halves[i]) << 16) : floatOfHalf(halves[i]);
  return 8;
}

/// Calls each with the type as a constant.
template <typename Each> void forType(ProductForm::Type type, Each each) {
  if (type == ProductForm::Bf16)
    each(std::integral_constant<ProductForm::Type, ProductForm::Bf16>());
  else if (type == ProductForm::F16)
    each(std::integral_constant<ProductForm::Type, ProductForm::F16>());
  else
    each(std::integral_constant<ProductForm::Type, ProductForm::Tf32>());
}

} // namespace

MatrixDescriptor::MatrixDescriptor(uint64_t bits)
    : begin((bits & 0x3fff) << 4), leading((bits >> 16 & 0x3fff) << 4), stride((bits >> 32 & 0x3fff) << 4),
      baseOffset(static_cast<uint32_t>(bits >> 49 & 7)) {
  constexpr uint32_t spans[4] = {0, 128, 64, 32};
  span = spans[bits >> 62];
}

[[gnu::always_inline]] inline uint64_t MatrixDescriptor::chunkAt(bool isMnMajor, uint32_t line, uint32_t chunk) const {
  if (span == 0) { // blocks of 8 lines of 16 bytes
    uint64_t along = isMnMajor ? stride : leading, across = isMnMajor ? leading : stride;
    return begin + line / 8 * across + line % 8 * kChunk + chunk * along;
  }
  uint32_t shift = static_cast<uint32_t>(std::countr_zero(span)) - 4; // of the chunks of a line
  uint64_t at = begin + line / 8 * stride + line % 8 * uint64_t(span);
  return isMnMajor ? at + (chunk >> shift) * leading + (chunk & ((1u << shift) - 1)) * kChunk : at + chunk * kChunk;
}

void ProductUnit::reset(Block &of) {
  block = &of;
  queues.assign(of.actors.own, {});
}

/// Marks registers as those of a wgmma that is not done; what is in them counts as written when it is.
void ProductUnit::mark(Warp &w, const ProductForm &form, bool flies) const {
  for (const std::vector<uint32_t> *list : {&form.d, &form.a})
    for (uint32_t slot : *list)
      w.flying[slot] = flies ? w.flying[slot] + 1 : w.flying[slot] - 1;
}

/// Whether a wgmma that is not done has these very registers as its accumulator, or none has any of them.
bool ProductUnit::maySumInto(const Warp &w, const ProductForm &form) const {
  bool flies = std::any_of(form.d.begin(), form.d.end(), [&](uint32_t slot) { return w.flying[slot] != 0; });
  const auto &waiting = queues[w.number].waiting;
  return !flies ||
         std::any_of(waiting.begin(), waiting.end(), [&](const Pending &each) { return each.form->d == form.d; });
}

/// A wgmma may take an accumulator from the one before; what else was put into its registers needs a fence.
bool ProductUnit::checkRegisters(Warp &w, const ProductForm &form) const {
  if (!maySumInto(w, form))
    return w.fail(0,
                  "wgmma-fence: some registers of its accumulator are those of another wgmma that was not waited for");
  for (const std::vector<uint32_t> *list : {&form.d, &form.a})
    for (uint32_t slot : *list) {
      if (w.stamps[slot] == w.fences)
        return w.fail(0, "wgmma-fence: something was put into its registers, and no wgmma.fence came behind it");
      if (list == &form.a && w.flying[slot])
        return w.fail(0, "wgmma-fence: it reads a register of a wgmma that was not waited for");
      if (w.written[slot] != kAllLanes && list == &form.a)
        return w.fail(0, "uninit: it reads a register that nothing was put into");
    }
  return true;
}

/// Calls each(line, chunk) for the 16 bytes that a warp reads of a matrix; false where that does.
template <typename Each> static bool forChunks(const ProductForm &form, bool isA, uint32_t warp, Each each) {
  bool isMnMajor = isA ? form.aIsMnMajor : form.bIsMnMajor;
  uint32_t first = isA ? warp % 4 * kRows : 0, count = isA ? kRows : form.columns;
  if (!isMnMajor) { // each line two chunks
    for (uint32_t line = first; line < first + count; ++line)
      if (!each(line, 0) || !each(line, 1))
        return false;
    return true;
  }
  for (uint32_t k = 0; k < form.depth(); ++k) // 8 elements a chunk
    for (uint32_t chunk = first / 8; chunk < (first + count) / 8; ++chunk)
      if (!each(k, chunk))
        return false;
  return true;
}

/// Calls each(address, bytes) for the same, as few as they are: a swizzle moves the chunks of a line among themselves,
/// and pairs of them with each other, where all lines begin at multiples of theirs.
template <typename Each>
[[gnu::always_inline]] static inline bool forRuns(const ProductForm &form, const MatrixDescriptor &matrix, bool isA,
                                                  uint32_t warp, Each each) {
  bool isMnMajor = isA ? form.aIsMnMajor : form.bIsMnMajor;
  uint32_t chunks = matrix.span / kChunk;
  auto areMultiples = [](uint64_t of, std::initializer_list<uint64_t> all) {
    return std::ranges::all_of(all, [&](uint64_t each) { return each % of == 0; });
  };
  bool hasPairs = !isMnMajor && chunks && areMultiples(2 * kChunk, {matrix.begin, matrix.stride}),
       hasLines = isMnMajor && !isA && chunks && form.columns / 8 % chunks == 0 &&
                  areMultiples(matrix.span, {matrix.begin, matrix.stride, matrix.leading});
  uint32_t together = hasPairs ? 2 : hasLines ? chunks : 1;
  return forChunks(form, isA, warp, [&](uint32_t line, uint32_t chunk) __attribute__((always_inline)) {
    if (chunk & (together - 1))
      return true;
    uint64_t at = swizzled(matrix.chunkAt(isMnMajor, line, chunk), matrix.span), bytes = uint64_t(together) * kChunk;
    return each(at & ~(bytes - 1), bytes);
  });
}

bool ProductUnit::checkMatrix(Warp &w, const ProductForm &form, uint64_t bits, bool isA) {
  MatrixDescriptor matrix(bits);
  if (matrix.baseOffset)
    return w.fail(0, "desc-layout: a descriptor has a base offset; tiles are to begin at multiples of 1024");
  SharedMemory &shared = block->shared;
  const Knowledge &knows = block->knows[w.number];
  uint32_t actor = block->actors.ofProducts(w.number), tick = queues[w.number].open + 1;
  return forRuns(form, matrix, isA, w.number, [&](uint64_t at, uint64_t bytes) __attribute__((always_inline)) {
    if (shared.holds(at, bytes) && shared.readSettled(at, bytes, actor, tick, knows))
      return !shared.isLaidOtherwise(at, bytes, matrix.span) ||
             w.fail(0, cat("desc-layout: its descriptor says a swizzle of ", matrix.span,
                           " bytes, and the bulk load that wrote byte ", at, " of shared memory had another"));
    if (!shared.holds(at, bytes))
      return w.fail(0, cat("bounds: its descriptor leads to byte ", at, " of shared memory, which is not there"));
    return w.fail(0, shared.readAsync(at, bytes, actor, tick, knows));
  });
}

bool ProductUnit::issue(Warp &w, const ProductForm &form, uint64_t first, uint64_t second, bool adds) {
  if (w.active != kAllLanes)
    return w.fail(0, "diverged: it is for all threads of a warp, and some have ended");
  if (!checkRegisters(w, form))
    return false;
  if (adds)
    for (uint32_t slot : form.d)
      if (w.written[slot] != kAllLanes)
        return w.fail(0, "uninit: it adds to a register that nothing was put into");
  if ((!form.aInRegisters && !checkMatrix(w, form, first, true)) || !checkMatrix(w, form, second, false))
    return false;
  queues[w.number].waiting.push_back({&form, first, second, adds, queues[w.number].open});
  mark(w, form, true);
  w.anyFlying = true;
  for (uint32_t slot : form.d)
    w.written[slot] = kAllLanes;
  return true;
}

/// Where an accumulator is at hand: those of a warp that take turns are not put back in between.
ProductUnit::Tile &ProductUnit::tileOf(Warp &w, const ProductForm &form) {
  for (Tile &tile : tiles)
    if (tile.form && (tile.form == &form || tile.form->d == form.d))
      return tile;
  for (Tile &tile : tiles)
    if (!tile.form) {
      loadD(w, form, tile);
      return tile;
    }
  // All are taken; registers of different accumulators may be the same ones.
  putBack(w);
  loadD(w, form, tiles[0]);
  return tiles[0];
}

void ProductUnit::putBack(Warp &w) {
  for (Tile &tile : tiles) {
    if (tile.form)
      storeD(w, tile);
    tile.form = nullptr;
  }
}

bool ProductUnit::wait(Warp &w, uint32_t left) {
  Queue &queue = queues[w.number];
  while (!queue.waiting.empty() && queue.waiting.front().group + left < queue.open) {
    Pending pending = queue.waiting.front();
    queue.waiting.pop_front();
    compute(w, pending);
    mark(w, *pending.form, false);
  }
  putBack(w);
  w.anyFlying = !queue.waiting.empty();
  if (queue.open > left) {
    uint32_t &seen = block->knows[w.number].seen[block->actors.ofProducts(w.number)];
    seen = std::max(seen, queue.open - left);
  }
  return true;
}

void ProductUnit::loadD(Warp &w, const ProductForm &form, Tile &tile) {
  tile.form = &form;
  for (uint32_t i = 0; i < form.d.size(); ++i)
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      tile.d[columnOf(lane, i) * kRows + rowOf(lane, i)] = fromBits<float>(w.slots[form.d[i]][lane]);
}

void ProductUnit::storeD(Warp &w, const Tile &tile) {
  for (uint32_t i = 0; i < tile.form->d.size(); ++i)
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      w.slots[tile.form->d[i]][lane] = toBits(tile.d[columnOf(lane, i) * kRows + rowOf(lane, i)]);
}

/// a[k][row]
void ProductUnit::loadA(Warp &w, const Pending &pending) {
  const ProductForm &form = *pending.form;
  float sign = form.negatesA ? -1.0f : 1.0f, values[8];
  if (form.aInRegisters) { // two elements a register, of tf32 one (PTX ISA, fragments of A)
    bool isWord = form.type == ProductForm::Tf32;
    for (uint32_t i = 0; i < form.a.size(); ++i)
      for (uint32_t lane = 0; lane < kLanes; ++lane) {
        auto word = static_cast<uint32_t>(w.slots[form.a[i]][lane]);
        uint32_t row = lane / 4 + 8 * (i % 2), k = isWord ? lane % 4 + 4 * (i / 2) : 2 * (lane % 4) + 8 * (i / 2);
        a[k * kRows + row] = sign * valueOf(isWord ? word : word & 0xffff, form.type);
        if (!isWord)
          a[(k + 1) * kRows + row] = sign * valueOf(word >> 16, form.type);
      }
    return;
  }
  MatrixDescriptor matrix(pending.a);
  uint32_t first = w.number % 4 * kRows;
  forType(form.type, [&](auto type) {
    forChunks(form, true, w.number, [&](uint32_t line, uint32_t chunk) __attribute__((always_inline)) {
      uint64_t at = swizzled(matrix.chunkAt(form.aIsMnMajor, line, chunk), matrix.span);
      uint32_t count = widen<type()>(block->shared.at(at), values);
      for (uint32_t i = 0; i < count; ++i)
        a[form.aIsMnMajor ? line * kRows + chunk * 8 + i - first : (chunk * count + i) * kRows + line - first] =
            sign * values[i];
      return true;
    });
  });
}

/// b[column][k]
void ProductUnit::loadB(const ProductForm &form, uint64_t bits) {
  MatrixDescriptor matrix(bits);
  uint32_t depth = form.depth();
  float values[8];
  forType(form.type, [&](auto type) {
    forChunks(form, false, 0, [&](uint32_t line, uint32_t chunk) __attribute__((always_inline)) {
      const std::byte *from = block->shared.at(swizzled(matrix.chunkAt(form.bIsMnMajor, line, chunk), matrix.span));
      if (!form.bIsMnMajor) {
        widen<type()>(from, &b[line * depth + chunk * depth / 2]);
        return true;
      }
      widen<type()>(from, values);
      for (uint32_t i = 0; i < 8; ++i)
        b[(chunk * 8 + i) * depth + line] = values[i];
      return true;
    });
  });
  if (form.negatesB)
    for (uint32_t i = 0; i < form.columns * depth; ++i)
      b[i] = -b[i];
}

void ProductUnit::compute(Warp &w, const Pending &pending) {
  block->idle += pending.form->columns * pending.form->depth() / 8;
  const ProductForm &form = *pending.form;
  loadA(w, pending);
  loadB(form, pending.b);
  Tile &tile = tileOf(w, form);
  if (!pending.adds)
    std::fill_n(tile.d, form.columns * kRows, 0.0f);
  multiplyTile(tile.d, a, b, form.columns, form.depth());
}

} // namespace dmxrt::cuda
