//===- TwoValues.cpp - rules of constant matrices and vectors -------------===//
#include "dmxc/Dialect/DMIR/masks/IndexFunction.h"

#include "dmxc/Support/Tensor.h"

#include <cstring>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

namespace {

/// One end of the runs of a matrix' rows: min(max(slope * row + offset, 0), columns), slope 0 or 1.
struct End {
  int64_t slope = 0, offset = 0;
  int64_t of(int64_t row, int64_t columns) const { return std::clamp<int64_t>(slope * row + offset, 0, columns); }
};

/// The run of one value in each row, [first, last); nothing where a row has several.
class Runs {
public:
  Runs(const Tensor &tensor, int64_t rows, int64_t columns) : rows(rows), columns(columns) {
    bytes = dtypeBits(tensor.dtype()) / 8;
    data = tensor.data();
  }

  bool find(int64_t element) {
    const std::byte *value = data + element * bytes;
    runs.clear();
    for (int64_t row = 0; row < rows; ++row) {
      const std::byte *at = data + row * columns * bytes;
      int64_t first = 0;
      while (first < columns && !same(at + first * bytes, value))
        ++first;
      int64_t last = first;
      while (last < columns && same(at + last * bytes, value))
        ++last;
      for (int64_t rest = last; rest < columns; ++rest)
        if (same(at + rest * bytes, value))
          return false;
      runs.emplace_back(first, last);
    }
    return true;
  }

  /// The ends that all rows agree with.
  std::optional<std::pair<End, End>> ends() const {
    for (End first : candidates(&std::pair<int64_t, int64_t>::first))
      for (End last : candidates(&std::pair<int64_t, int64_t>::second))
        if (fit(first, last))
          return std::make_pair(first, last);
    return std::nullopt;
  }

  /// Whether the elements outside of the runs are all one value; the place of one of them.
  std::optional<int64_t> other() const {
    std::optional<int64_t> place;
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column) {
        if (column >= runs[row].first && column < runs[row].second)
          continue;
        int64_t at = row * columns + column;
        if (place && !same(data + *place * bytes, data + at * bytes))
          return std::nullopt;
        place = place.value_or(at);
      }
    return place;
  }

  /// The first element from a place on that is like none of some others; nothing where there is none.
  std::optional<int64_t> unlike(int64_t from, ArrayRef<int64_t> others) const {
    for (int64_t at = from; at < rows * columns; ++at)
      if (llvm::none_of(others, [&](int64_t other) { return same(data + other * bytes, data + at * bytes); }))
        return at;
    return std::nullopt;
  }

private:
  bool same(const std::byte *a, const std::byte *b) const { return std::memcmp(a, b, bytes) == 0; }

  /// Fixed or moving, through an end that is not the matrix' own.
  SmallVector<End> candidates(int64_t std::pair<int64_t, int64_t>::*end) const {
    for (auto [row, run] : llvm::enumerate(runs))
      if (run.first < run.second && run.*end > 0 && run.*end < columns)
        return {End{0, run.*end}, End{1, run.*end - static_cast<int64_t>(row)}};
    return {End{0, end == &std::pair<int64_t, int64_t>::first ? 0 : columns}};
  }

  bool fit(End first, End last) const {
    for (auto [row, run] : llvm::enumerate(runs)) {
      int64_t from = first.of(row, columns), to = last.of(row, columns);
      bool isEmpty = run.first >= run.second;
      if (isEmpty ? from < to : from != run.first || to != run.second)
        return false;
    }
    return true;
  }

  int64_t rows, columns;
  size_t bytes;
  const std::byte *data;
  SmallVector<std::pair<int64_t, int64_t>> runs;
};

} // namespace

std::optional<Pieces> dmir::readTwoValues(const Tensor &tensor, int64_t rows, int64_t columns, AffineExpr row,
                                          AffineExpr column) {
  Runs runs(tensor, rows, columns);
  SmallVector<int64_t> places{0};
  if (runs.find(0))
    if (std::optional<int64_t> other = runs.other())
      places.push_back(*other);
  if (places.size() == 1) { // the other value may have the runs
    for (int64_t i = 1; i < tensor.numElements() && places.size() == 1; ++i)
      if (tensor.asDouble(i) != tensor.asDouble(0))
        places.push_back(i);
    if (places.size() == 1)
      return Pieces{Piece{{}, Leaf::of(tensor.asDouble(0))}};
  }
  for (int64_t place : places) {
    std::optional<std::pair<End, End>> ends = runs.find(place) ? runs.ends() : std::nullopt;
    std::optional<int64_t> other = ends ? runs.other() : std::nullopt;
    if (!other)
      continue;
    Leaf inside = Leaf::of(tensor.asDouble(place)), outside = Leaf::of(tensor.asDouble(*other));
    AffineExpr past = column - row * ends->first.slope - ends->first.offset,
               before = row * ends->second.slope + ends->second.offset - 1 - column;
    return Pieces{Piece{{{past, false}, {before, false}}, inside}, Piece{{{-past - 1, false}}, outside},
                  Piece{{{past, false}, {-before - 1, false}}, outside}};
  }
  return std::nullopt;
}

std::string dmir::whyNoRuns(const Tensor &tensor, int64_t rows, int64_t columns) {
  Runs runs(tensor, rows, columns);
  const int64_t second = runs.unlike(1, {0}).value_or(0);
  if (tensor.dtype() != DType::Bool && runs.unlike(second + 1, {0, second}))
    return "the constant has more than two different values";
  bool hasRuns = runs.find(0) || runs.find(second);
  return hasRuns ? "the runs of equal elements in rows of the constant end neither at one column nor 1 further each row"
                 : "neither value of the constant fills one run in each row";
}

/// base + (place + shift) mod period.
static std::optional<Pieces> readSaw(const Tensor &vector, AffineExpr place) {
  constexpr double most = 1e12;
  const int64_t count = vector.numElements();
  if (std::abs(vector.asDouble(0)) > most)
    return std::nullopt;
  int64_t last = 0;
  while (last + 1 < count && vector.asInt(last + 1) == vector.asInt(last) + 1)
    ++last;
  if (last + 1 == count || std::abs(vector.asDouble(last + 1)) > most)
    return std::nullopt;
  const int64_t base = vector.asInt(last + 1), period = vector.asInt(last) - base + 1, shift = vector.asInt(0) - base;
  if (period < 2 || shift < 0)
    return std::nullopt;
  for (int64_t i = 0; i < count; ++i)
    if (vector.asInt(i) != base + (i + shift) % period)
      return std::nullopt;
  return Pieces{Piece{{}, Leaf::of((place + shift) % period + base)}};
}

std::optional<Pieces> dmir::readPeriodic(const Tensor &vector, bool isInt, AffineExpr place) {
  if (isInt)
    return readSaw(vector, place);
  const int64_t count = vector.numElements();
  const double other = vector.asDouble(0);
  auto next = [&](int64_t from, bool isOther) {
    while (from < count && (vector.asDouble(from) == other) != isOther)
      ++from;
    return from;
  };
  int64_t first = next(0, false), end = next(first, true), second = next(end, false);
  if (second == count || std::isnan(other) || std::isnan(vector.asDouble(first)))
    return std::nullopt;
  const int64_t period = second - first, width = end - first, start = first % period;
  const double value = vector.asDouble(first);
  for (int64_t i = 0; i < count; ++i)
    if (vector.asDouble(i) != ((i - start + period) % period < width ? value : other))
      return std::nullopt;
  const bool wraps = start + width > period;
  AffineExpr rest = (wraps ? place + (period - start) : place) % period;
  const int64_t low = wraps ? 0 : start;
  Leaf inside = Leaf::of(value), outside = Leaf::of(other);
  Pieces pieces{Piece{{{rest - low, false}, {low + width - 1 - rest, false}}, inside}};
  if (low > 0)
    pieces.push_back(Piece{{{low - 1 - rest, false}}, outside});
  if (low + width < period)
    pieces.push_back(Piece{{{rest - low - width, false}}, outside});
  return pieces;
}
