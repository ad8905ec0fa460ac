//===- Shadow.h - what the simulator knows of every byte --------*- C++ -*-===//
//
// Beside its bytes a memory has, per byte: its element kind or that it is
// undefined, who wrote it last and who has read it since. Bytes with equal
// answers share a segment; segments are kept per page of 4 KiB. Races are found
// as FastTrack does: an access is an epoch (a thread's clock), and it is ordered
// before another when the other's vector clock has reached it. "Thread" here is
// a queue of a quad.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "schemas/corsair/Isa.h"

#include "Fault.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace dmxrt::corsair {

namespace isa = dmx::corsair;
using isa::ElemKind;
using isa::Memory;

/// 32 quads of 4 queues, and the host.
constexpr int kThreads = 129;
constexpr uint16_t kHostThread = 128;
using VectorClock = std::array<uint32_t, kThreads>;

inline void join(VectorClock &into, const VectorClock &other) {
  for (int i = 0; i < kThreads; ++i)
    into[i] = into[i] < other[i] ? other[i] : into[i];
}

/// One access: thread and its clock, and the position in its stream for reports.
struct Epoch {
  uint32_t clock = 0, position = 0;
  uint16_t thread = kHostThread;
  bool operator==(const Epoch &) const = default;
};

/// Who accesses. The host's accesses lie before or after everything else.
struct Actor {
  Epoch epoch;
  const VectorClock *clock = nullptr; ///< null: the host
  bool after(const Epoch &other) const { return !clock || other.clock <= (*clock)[other.thread]; }
};

/// Why an access is refused.
struct Problem {
  FaultKind kind = FaultKind::Race;
  uint64_t address = 0; ///< first byte concerned
  Epoch other;          ///< Race: the other access
  bool otherWrote = false;
  ElemKind found = ElemKind::Raw; ///< FormatMismatch
};

/// The shadow of one unit of memory. Callers lock where units are shared.
class Shadow {
public:
  /// The kind of bytes that were never written.
  static constexpr ElemKind kUndefined = static_cast<ElemKind>(0xff);

  void resize(uint64_t bytes) { chunks.resize((bytes + kPage * kChunk - 1) / (kPage * kChunk)); }

  /// Checks and records a read; `kind` Raw accepts every defined byte.
  bool read(uint64_t begin, uint64_t size, ElemKind kind, const Actor &actor, Problem &problem);
  /// Checks and records a write of bytes of one kind (or that makes them undefined).
  bool write(uint64_t begin, uint64_t size, ElemKind kind, const Actor &actor, Problem &problem);
  /// Calls visit(begin, size, kind) for the runs of one kind in a range, all defined.
  template <typename Visit> void kinds(uint64_t begin, uint64_t size, Visit visit);
  /// Everything undefined, no accesses.
  void forget() {
    for (auto &chunk : chunks)
      chunk.reset();
  }

private:
  static constexpr uint64_t kPage = 4096, kChunk = 256; ///< bytes of a page, pages that are made together

  struct Cell {
    Epoch writer, reader;
    bool hasReader = false;
    ElemKind kind = kUndefined;
    std::unique_ptr<std::vector<Epoch>> more; ///< further readers that are not ordered

    Cell() = default;
    Cell(Cell &&) noexcept = default;
    Cell &operator=(Cell &&) noexcept = default;
    Cell(const Cell &other) { *this = other; }
    Cell &operator=(const Cell &other);
    bool same(const Cell &other) const {
      return kind == other.kind && writer == other.writer && hasReader == other.hasReader && reader == other.reader &&
             !more && !other.more;
    }
  };
  struct Segment {
    uint32_t begin; ///< in the page; ends where the next one begins
    Cell cell;
  };
  using Page = std::vector<Segment>;           ///< empty: all undefined
  std::vector<std::unique_ptr<Page[]>> chunks; ///< made when first touched: footprints may be huge

  Page &pageOf(uint64_t address) {
    std::unique_ptr<Page[]> &chunk = chunks[address / (kPage * kChunk)];
    if (!chunk)
      chunk = std::make_unique<Page[]>(kChunk);
    return chunk[address / kPage % kChunk];
  }

  static size_t find(const Page &page, uint32_t offset);
  static size_t split(Page &page, uint32_t offset);
  static void merge(Page &page, size_t first, size_t last);
  static bool readCell(Cell &cell, ElemKind kind, const Actor &actor, Problem &problem);
  static bool checkWrite(const Cell &cell, const Actor &actor, Problem &problem);
  bool readPage(Page &page, uint32_t begin, uint32_t end, ElemKind kind, const Actor &actor, Problem &problem);
  bool writePage(Page &page, uint32_t begin, uint32_t end, ElemKind kind, const Actor &actor, Problem &problem);
};

template <typename Visit> void Shadow::kinds(uint64_t begin, uint64_t size, Visit visit) {
  for (uint64_t at = begin, end = begin + size; at < end;) {
    Page &page = pageOf(at);
    uint64_t base = at / kPage * kPage;
    uint64_t pageEnd = end < base + kPage ? end : base + kPage;
    for (size_t i = page.empty() ? 0 : find(page, static_cast<uint32_t>(at - base)); i < page.size() && at < pageEnd;
         ++i) {
      uint64_t stop = i + 1 < page.size() ? base + page[i + 1].begin : base + kPage;
      stop = stop < pageEnd ? stop : pageEnd;
      visit(at, stop - at, page[i].cell.kind);
      at = stop;
    }
    at = pageEnd;
  }
}

} // namespace dmxrt::corsair
