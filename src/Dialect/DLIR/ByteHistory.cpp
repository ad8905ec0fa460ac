//===- ByteHistory.cpp - who touched a buffer's bytes last ----------------===//
#include "ByteHistory.h"

using namespace dmxc::dlir;

ByteRuns dmxc::dlir::normalized(ByteRuns runs) {
  llvm::SmallVector<ByteRuns::Step, 4> steps;
  for (ByteRuns::Step step : runs.steps) {
    if (step.count < 1)
      runs.bytes = 0;
    if (step.bytes < 0) {
      runs.begin += (step.count - 1) * step.bytes;
      step.bytes = -step.bytes;
    }
    if (step.count > 1 && step.bytes)
      steps.push_back(step);
  }
  llvm::sort(steps, [](const auto &a, const auto &b) { return a.bytes < b.bytes; });
  runs.steps.clear();
  for (const ByteRuns::Step &step : steps) {
    ByteRuns::Step *last = runs.steps.empty() ? nullptr : &runs.steps.back();
    if (!last && step.bytes <= runs.bytes)
      runs.bytes += (step.count - 1) * step.bytes;
    else if (last && last->bytes * last->count == step.bytes)
      last->count *= step.count;
    else
      runs.steps.push_back(step);
  }
  return runs;
}

std::pair<int64_t, int64_t> dmxc::dlir::hullOf(const ByteRuns &normalized) {
  int64_t end = normalized.begin + normalized.bytes;
  for (const ByteRuns::Step &step : normalized.steps)
    end += (step.count - 1) * step.bytes;
  return {normalized.begin, end};
}

void ByteHistory::eachRun(const ByteRuns &runs, llvm::function_ref<void(int64_t, int64_t)> visit) {
  int64_t count = runs.bytes > 0;
  for (const ByteRuns::Step &step : runs.steps)
    count *= step.count;
  for (int64_t number = 0; number < count; ++number) {
    int64_t at = runs.begin, rest = number;
    for (const ByteRuns::Step &step : runs.steps) {
      at += rest % step.count * step.bytes;
      rest /= step.count;
    }
    visit(at, at + runs.bytes);
  }
}

/// The runs as of one row, where they are the same in all rows; else all rows are told apart from now on.
ByteRuns ByteHistory::fitted(const ByteRuns &runs) {
  if (!rows && stretches.size() == 1 && !runs.steps.empty()) {
    const ByteRuns::Step &last = runs.steps.back();
    if (last.bytes * last.count <= size) {
      rows = last.count;
      pitch = last.bytes;
      rest = stretches.begin()->second;
    }
  }
  if (!rows)
    return runs;
  if (runs.steps.empty() && runs.begin == 0 && runs.bytes == rows * pitch)
    return {0, pitch, {}};
  ByteRuns row = runs;
  for (auto *step = row.steps.begin(); step != row.steps.end(); ++step)
    if (step->bytes == pitch && step->count == rows) {
      row.steps.erase(step);
      if (hullOf(row).second <= pitch)
        return row;
      break;
    }
  unfold();
  return runs;
}

void ByteHistory::unfold() {
  Stretches all;
  for (int64_t row = 0; row < rows; ++row)
    for (const auto &[begin, stretch] : stretches)
      all.emplace_hint(all.end(), row * pitch + begin, stretch);
  if (rows * pitch < size)
    all.emplace_hint(all.end(), rows * pitch, rest);
  rows = 0;
  stretches = std::move(all);
}

ByteHistory::Stretches::iterator ByteHistory::cut(int64_t at) {
  if (at >= width())
    return stretches.end();
  auto next = stretches.lower_bound(at);
  if (next != stretches.end() && next->first == at)
    return next;
  return stretches.emplace_hint(next, at, std::prev(next)->second);
}

static bool isSame(const Stretch &a, const Stretch &b) {
  return a.write == b.write && a.isFree == b.isFree && a.writer == b.writer && a.readers.empty() && b.readers.empty();
}

void ByteHistory::set(int64_t begin, int64_t end, Stretch to) {
  auto last = cut(end), first = cut(begin);
  auto keep = first;
  first->second = std::move(to);
  ++first;
  stretches.erase(first, last);
  if (keep != stretches.begin() && isSame(std::prev(keep)->second, keep->second))
    keep = std::prev(stretches.erase(keep));
  if (last != stretches.end() && isSame(last->second, keep->second))
    stretches.erase(last);
}

void ByteHistory::set(const ByteRuns &runs, const Stretch &to) {
  eachRun(fitted(runs), [&](int64_t begin, int64_t end) { set(begin, end, to); });
}

void ByteHistory::settle(bool isSlot) {
  auto change = [&](Stretch &stretch) {
    stretch.writer.queue = stretch.writer.time = 0;
    stretch.readers.clear();
    if (!isSlot && stretch.isWritten())
      stretch.write = 0;
  };
  change(rest);
  for (auto at = stretches.begin(); at != stretches.end();) {
    change(at->second);
    auto before = at == stretches.begin() ? at : std::prev(at);
    const Stretch &a = before->second, &b = at->second;
    if (before != at && a.write == b.write && a.isFree == b.isFree)
      at = stretches.erase(at);
    else
      ++at;
  }
  if (rows && stretches.size() == 1) { // no rows any more; what is behind them is told apart
    stretches.emplace(rows * pitch, rest);
    if (rows * pitch >= size || (rest.write == stretches.begin()->second.write))
      stretches.erase(std::next(stretches.begin()));
    rows = 0;
  }
}
