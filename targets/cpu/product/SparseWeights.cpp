//===- SparseWeights.cpp - constant matrices of which what is zero is left out ===//

#include "SparseWeights.h"

#include "dmxc/Support/ElementAt.h"

#include "mlir/IR/Builders.h"

#include <cstring>
#include <limits>
#include <vector>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

//===----------------------------------------------------------------------===//
// What is zero
//===----------------------------------------------------------------------===//

namespace {

template <typename T> constexpr T kSign = static_cast<T>(T(1) << (8 * sizeof(T) - 1));

/// Calls f(an element's type, the bits of it that are not zero in numbers that are not).
template <typename F> auto withType(const ConstantMatrix &m, F f) {
  auto of = [&](auto tag) {
    using T = decltype(tag);
    return f(tag, static_cast<T>(m.isFloat ? ~kSign<T> : ~T(0)));
  };
  switch (m.bytes) {
  case 1:
    return of(uint8_t());
  case 2:
    return of(uint16_t());
  case 4:
    return of(uint32_t());
  default:
    return of(uint64_t());
  }
}

/// Whether so many elements are zero that some blocks may be, by a look at few: most weights have none.
bool mayBeSparse(const ConstantMatrix &m) {
  constexpr int64_t looks = 1024, stride = 7919; // a prime, so that no pattern goes along with it
  const int64_t elements = m.k * m.n, count = std::min(elements, looks);
  return withType(m, [&](auto tag, auto bits) {
    int64_t zeros = 0;
    for (int64_t i = 0, at = 0; i < count; ++i, at = (at + elements / count * 3 + stride) % elements)
      zeros += !(elementAt<decltype(tag)>(m.data, at / m.n * m.strideK + at % m.n * m.strideN) & bits);
    return zeros * 20 >= count;
  });
}

/// Which blocks have something that is not zero: [group][block of k].
using Blocks = std::vector<std::vector<bool>>;

/// Rows or columns are walked as they lie in memory.
Blocks blocksOf(const ConstantMatrix &m, int64_t columns) {
  Blocks kept((m.n + columns - 1) / columns,
              std::vector<bool>((m.k + WeightRuns::kBlock - 1) / WeightRuns::kBlock, false));
  const bool byRows = m.strideN <= m.strideK;
  withType(m, [&](auto tag, auto bits) {
    using T = decltype(tag);
    auto look = [&](int64_t row, int64_t col, int64_t count, int64_t stride) {
      T any = 0;
      for (int64_t i = 0; i < count; ++i)
        any |= elementAt<T>(m.data, row * m.strideK + col * m.strideN + i * stride);
      if (any & bits)
        kept[col / columns][row / WeightRuns::kBlock] = true;
    };
    if (byRows)
      for (int64_t row = 0; row < m.k; ++row)
        for (int64_t col = 0; col < m.n; col += columns)
          look(row, col, std::min(columns, m.n - col), m.strideN);
    else
      for (int64_t col = 0; col < m.n; ++col)
        for (int64_t row = 0; row < m.k; row += WeightRuns::kBlock)
          look(row, col, std::min(WeightRuns::kBlock, m.k - row), m.strideK);
  });
  return kept;
}

/// Calls visit(group, first k, the one behind the last) for all runs, those of a group one after the other.
template <typename Visit> void visitRuns(const Blocks &kept, int64_t k, Visit visit) {
  for (size_t group = 0; group < kept.size(); ++group) {
    const std::vector<bool> &blocks = kept[group];
    for (size_t from = 0, to; from < blocks.size(); from = to) {
      to = from + 1;
      if (!blocks[from])
        continue;
      while (to < blocks.size() && blocks[to])
        ++to;
      visit(static_cast<int64_t>(group), static_cast<int64_t>(from) * WeightRuns::kBlock,
            std::min(k, static_cast<int64_t>(to) * WeightRuns::kBlock));
    }
  }
}

WeightRuns count(const Blocks &kept, int64_t k, int64_t columns) {
  WeightRuns runs{columns};
  visitRuns(kept, k, [&](int64_t, int64_t from, int64_t to) { ++runs.runs, runs.rows += to - from; });
  return runs;
}

} // namespace

bool WeightRuns::pay(int64_t k, int64_t n) const {
  constexpr int64_t costOfRun = 2; // rows that a tile multiplies in the time that it takes to find one
  return 10 * (rows + costOfRun * runs) <= 9 * k * groups(n);
}

std::optional<WeightRuns> dmxc::cpu::findRuns(const ConstantMatrix &matrix, int64_t columns) {
  if (matrix.k >= WeightRuns::kBeyond || !mayBeSparse(matrix))
    return std::nullopt;
  WeightRuns runs = count(blocksOf(matrix, columns), matrix.k, columns);
  const int64_t most = std::numeric_limits<int32_t>::max() / 4;
  if (runs.rows == matrix.k * runs.groups(matrix.n) || runs.rows > most || runs.groups(matrix.n) > most)
    return std::nullopt;
  return runs;
}

//===----------------------------------------------------------------------===//
// The packed form
//===----------------------------------------------------------------------===//

namespace {

template <typename T>
void copyRows(const ConstantMatrix &m, int64_t col, int64_t count, int64_t from, int64_t to, int64_t columns,
              std::byte *out) {
  for (int64_t row = from; row < to; ++row, out += columns * sizeof(T))
    for (int64_t i = 0; i < count; ++i) {
      T x = elementAt<T>(m.data, row * m.strideK + (col + i) * m.strideN);
      std::memcpy(out + i * sizeof(T), &x, sizeof(T));
    }
}

} // namespace

Status dmxc::cpu::packRuns(const WeightRuns &runs, const ConstantMatrix &matrix, std::span<std::byte> out) {
  Blocks kept = blocksOf(matrix, runs.columns);
  WeightRuns found = count(kept, matrix.k, runs.columns);
  if (found.runs != runs.runs || found.rows != runs.rows ||
      runs.bytes(matrix.n, matrix.bytes) != static_cast<int64_t>(out.size()))
    return modelError("a packed form has " + std::to_string(runs.runs) + " runs of " + std::to_string(runs.rows) +
                      " rows in " + std::to_string(out.size()) + " bytes, but its constant " +
                      std::to_string(found.runs) + " of " + std::to_string(found.rows) + " in " +
                      std::to_string(found.bytes(matrix.n, matrix.bytes)) +
                      "; leave the form out of the strategy, and it is derived");
  std::memset(out.data(), 0, out.size());
  std::vector<int32_t> table(runs.entriesAt(matrix.n) + WeightRuns::kEntry * (runs.runs + runs.groups(matrix.n)));
  int64_t entry = 0, row = 0, group = -1;
  auto put = [&](int64_t from, int64_t to) {
    int32_t *at = table.data() + runs.entriesAt(matrix.n) + WeightRuns::kEntry * entry++;
    at[0] = static_cast<int32_t>(from), at[1] = static_cast<int32_t>(to), at[2] = static_cast<int32_t>(row);
  };
  auto begin = [&](int64_t next) { // ends the groups before it, too
    while (group < next) {
      if (group >= 0)
        put(WeightRuns::kBeyond, WeightRuns::kBeyond);
      if (++group < runs.groups(matrix.n))
        table[group] = static_cast<int32_t>(entry);
    }
  };
  visitRuns(kept, matrix.k, [&](int64_t of, int64_t from, int64_t to) {
    begin(of);
    put(from, to);
    std::byte *rows = out.data() + runs.rowsAt(matrix.n) + row * runs.columns * matrix.bytes;
    const int64_t col = of * runs.columns, width = std::min(runs.columns, matrix.n - col);
    withType(matrix,
             [&](auto tag, auto) { copyRows<decltype(tag)>(matrix, col, width, from, to, runs.columns, rows); });
    row += to - from;
  });
  begin(runs.groups(matrix.n));
  std::memcpy(out.data(), table.data(), table.size() * sizeof(int32_t));
  return Status::ok();
}

std::optional<WeightRuns> dmxc::cpu::runsOfForm(DictionaryAttr form) {
  WeightRuns runs;
  for (auto [key, to] : {std::pair("columns", &runs.columns), {"runs", &runs.runs}, {"rows", &runs.rows}}) {
    auto number = form.getAs<IntegerAttr>(key);
    if (!number || number.getInt() < 0 || number.getInt() > std::numeric_limits<int32_t>::max())
      return std::nullopt;
    *to = number.getInt();
  }
  const bool isGroup = runs.columns >= 16 && runs.columns <= 64 && llvm::isPowerOf2_64(runs.columns);
  return isGroup ? std::optional(runs) : std::nullopt;
}

void dmxc::cpu::writeRuns(const WeightRuns &runs, NamedAttrList &form, MLIRContext *context) {
  Builder b(context);
  form.set("columns", b.getI64IntegerAttr(runs.columns));
  form.set("runs", b.getI64IntegerAttr(runs.runs));
  form.set("rows", b.getI64IntegerAttr(runs.rows));
}
