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

/// Which blocks have something that is not zero: [group][block of k].
using Blocks = std::vector<std::vector<bool>>;

/// Rows or columns are walked as they lie in memory.
Blocks blocksOf(const ConstantMatrix &m, int64_t columns) {
  Blocks kept((m.n + columns - 1) / columns,
              std::vector<bool>((m.k + WeightRuns::kBlock - 1) / WeightRuns::kBlock, false));
  const bool byRows = m.strideN <= m.strideK;
  m.withType([&](auto tag, auto bits) {
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

std::optional<WeightRuns> dmxc::cpu::findRuns(const ConstantMatrix &matrix, int64_t columns, bool quickly) {
  if (matrix.k >= WeightRuns::kBeyond || (quickly && !matrix.mayBeSparse()))
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

/// Writes the two lists of i32, and says where the rows of a run are to lie.
class TableWriter {
public:
  TableWriter(const WeightRuns &runs, int64_t n)
      : groups(runs.groups(n)), table(runs.entriesAt(n) + WeightRuns::kEntry * (runs.runs + groups)),
        entry(table.data() + runs.entriesAt(n)) {
    begin(0);
  }
  /// Runs come in order, groups all of them and none twice.
  void add(int64_t of, int64_t from, int64_t to) {
    begin(of);
    put(from, to);
    row += to - from;
  }
  /// The row of a group's panels that is its first.
  int64_t firstRow(int64_t of) const { return table[2 * of + 1]; }
  /// The last group has all of its runs.
  const std::vector<int32_t> &finish() {
    begin(groups);
    return table;
  }

private:
  void begin(int64_t next) {
    for (; group < next; table[2 * group] = entries, table[2 * group + 1] = static_cast<int32_t>(row)) {
      if (group >= 0)
        put(WeightRuns::kBeyond, WeightRuns::kBeyond);
      ++group;
    }
  }
  void put(int64_t from, int64_t to) {
    const int64_t inGroup = row - firstRow(group);
    for (int64_t number : {from, to, inGroup})
      *entry++ = static_cast<int32_t>(number);
    ++entries;
  }

  int64_t groups, group = -1, row = 0;
  std::vector<int32_t> table;
  int32_t *entry, entries = 0;
};

template <typename T>
void copyRows(const WeightRuns &runs, const ConstantMatrix &m, const Blocks &kept, const std::vector<int32_t> &table,
              std::byte *out) {
  int64_t row = 0;
  visitRuns(kept, m.k, [&](int64_t group, int64_t from, int64_t to) {
    const int64_t first = table[2 * group + 1], rows = table[2 * group + 3] - first, col = group * runs.columns;
    for (int64_t k = from; k < to; ++k, ++row)
      for (int64_t i = 0; i < std::min(runs.columns, m.n - col); ++i) {
        T x = elementAt<T>(m.data, k * m.strideK + (col + i) * m.strideN);
        int64_t at = first * runs.columns + (i / 16 * rows + row - first) * 16 + i % 16;
        std::memcpy(out + at * sizeof(T), &x, sizeof(T));
      }
  });
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
  TableWriter writer(runs, matrix.n);
  visitRuns(kept, matrix.k, [&](int64_t group, int64_t from, int64_t to) { writer.add(group, from, to); });
  const std::vector<int32_t> &table = writer.finish();
  std::memcpy(out.data(), table.data(), table.size() * sizeof(int32_t));
  matrix.withType(
      [&](auto tag, auto) { copyRows<decltype(tag)>(runs, matrix, kept, table, out.data() + runs.rowsAt(matrix.n)); });
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
