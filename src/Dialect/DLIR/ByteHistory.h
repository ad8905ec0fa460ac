//===- ByteHistory.h - who touched a buffer's bytes last --------*- C++ -*-===//
#pragma once

#include "dmxc/Dialect/DLIR/Order.h"

#include <map>

namespace dmxc::dlir {

/// For each queue of each unit the time up to which its tasks have happened.
using Clock = std::vector<uint32_t>;

/// A touch: a task of a queue, at the queue's own time; at 0 it has happened for all.
struct Moment {
  uint32_t queue = 0, time = 0;
  mlir::Operation *task = nullptr;
  bool operator==(const Moment &) const = default;
};

/// What is known of adjacent bytes.
struct Stretch {
  static constexpr uint32_t kNothing = ~0U;
  uint32_t write = kNothing; ///< number of the write whose bytes they are
  bool isFree = false;       ///< their slot was freed since
  Moment writer;
  llvm::SmallVector<Moment, 1> readers; ///< since then
  bool isWritten() const { return write != kNothing; }
};

/// Steps in ascending order, none of them over what adjoins.
ByteRuns normalized(ByteRuns runs);
/// From the first byte to behind the last one.
std::pair<int64_t, int64_t> hullOf(const ByteRuns &normalized);

/// The bytes of a buffer in one unit of its memory. Where all that touches them has the same rows, one row stands for
/// all: columns that units deal out are thousands of runs.
class ByteHistory {
public:
  explicit ByteHistory(int64_t size) : size(size) { stretches.emplace(0, Stretch()); }

  /// Calls `visit(begin, stretch)` for each stretch of the runs, which are cut there.
  template <typename Visit> void each(const ByteRuns &runs, Visit visit) {
    eachRun(fitted(runs), [&](int64_t begin, int64_t end) {
      auto at = cut(begin);
      cut(end);
      for (; at != stretches.end() && at->first < end; ++at)
        visit(at->first, at->second);
    });
  }
  template <typename Visit> void each(Visit visit) {
    for (auto &[begin, stretch] : stretches)
      visit(begin, stretch);
  }
  /// Makes each of the runs one stretch.
  void set(const ByteRuns &runs, const Stretch &to);
  /// All that was has happened before all that follows. Which write it was matters in slots alone.
  void settle(bool isSlot);

private:
  using Stretches = std::map<int64_t, Stretch>;
  static void eachRun(const ByteRuns &runs, llvm::function_ref<void(int64_t, int64_t)> visit);
  ByteRuns fitted(const ByteRuns &runs);
  void unfold();
  int64_t width() const { return rows ? pitch : size; }
  Stretches::iterator cut(int64_t at);
  void set(int64_t begin, int64_t end, Stretch to);

  int64_t size;
  int64_t rows = 0, pitch = 0; ///< the stretches are of one of so many rows; 0: of all bytes
  Stretches stretches;
  Stretch rest; ///< behind the rows
};

} // namespace dmxc::dlir
