//===- Shadow.h - what the simulator knows of every byte --------*- C++ -*-===//
//
// Beside its bytes a memory has, per byte: what it is or that it is undefined,
// who wrote it last and who has read it since. Bytes with equal answers share a
// segment; segments are kept per page of 4 KiB. Races are found as FastTrack does:
// an access is an epoch (a thread's clock), and it is ordered before another when
// the other's vector clock has reached it. What a "thread" is, and how many there
// are, is the device's: a queue, a DMA channel, a core.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace dmxrt::sim {

/// The host, whose accesses lie before or after everything else.
constexpr uint16_t kHostThread = 0xffff;

/// How far each thread is known to be; those behind the end are at 0.
class VectorClock {
public:
  VectorClock() = default;
  explicit VectorClock(size_t threads) : clocks(threads) {}
  uint32_t of(uint16_t thread) const { return thread < clocks.size() ? clocks[thread] : 0; }
  uint32_t &operator[](uint16_t thread) { return clocks[thread]; }
  size_t threads() const { return clocks.size(); }
  void join(const VectorClock &other) {
    if (clocks.size() < other.clocks.size())
      clocks.resize(other.clocks.size());
    for (size_t i = 0; i < other.clocks.size(); ++i)
      clocks[i] = clocks[i] < other.clocks[i] ? other.clocks[i] : clocks[i];
  }

private:
  std::vector<uint32_t> clocks;
};

/// One access: thread and its clock, and the position in its stream for reports.
struct Epoch {
  uint32_t clock = 0, position = 0;
  uint16_t thread = kHostThread;
  bool operator==(const Epoch &) const = default;
};

/// Who accesses.
struct Actor {
  Epoch epoch;
  const VectorClock *clock = nullptr; ///< null: the host
  bool after(const Epoch &other) const { return !clock || other.clock <= clock->of(other.thread); }
};

/// What a byte is; the numbers between these two are the device's.
using ByteKind = uint8_t;
constexpr ByteKind kAnyKind = 0, kUndefined = 0xff;

/// Why an access is refused.
struct Problem {
  enum Why : uint8_t { Race, Undefined, OtherKind };
  Why why = Race;
  uint64_t address = 0; ///< first byte concerned
  Epoch other;          ///< Race: the other access
  bool otherWrote = false;
  ByteKind found = kAnyKind; ///< OtherKind
};

/// The shadow of one unit of memory. Callers lock where units are shared.
class Shadow {
public:
  void resize(uint64_t bytes) { chunks.resize((bytes + kPage * kChunk - 1) / (kPage * kChunk)); }

  /// Checks and records a read; kAnyKind accepts every defined byte.
  bool read(uint64_t begin, uint64_t size, ByteKind kind, const Actor &actor, Problem &problem);
  /// Checks and records a write of bytes of one kind (or that makes them undefined).
  bool write(uint64_t begin, uint64_t size, ByteKind kind, const Actor &actor, Problem &problem);
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
    ByteKind kind = kUndefined;
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
  static bool readCell(Cell &cell, ByteKind kind, const Actor &actor, Problem &problem);
  static bool checkWrite(const Cell &cell, const Actor &actor, Problem &problem);
  bool readPage(Page &page, uint32_t begin, uint32_t end, ByteKind kind, const Actor &actor, Problem &problem);
  bool writePage(Page &page, uint32_t begin, uint32_t end, ByteKind kind, const Actor &actor, Problem &problem);
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

} // namespace dmxrt::sim
