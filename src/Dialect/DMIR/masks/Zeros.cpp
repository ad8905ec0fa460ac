//===- Zeros.cpp - rules of where a constant is zero ----------------------===//
//
// A few thousand elements tell whether there is anything to find; then the constant is read once, into one bit for each
// element of a matrix. Every rule is a bound that all elements were seen to keep.
//
//===----------------------------------------------------------------------===//
#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/masks/Sparsity.h"

#include "llvm/ADT/BitVector.h"

#include <cstring>
#include <numeric>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::dmir;

// A rule that leaves out less than a sixteenth pays for nothing.
static constexpr int64_t kShare = 16, kSamples = 4096, kMostElements = int64_t(1) << 30;

namespace {

/// The places of a matrix where some matrix of the constant is not zero.
class Places {
public:
  Places(const Tensor &tensor, int64_t rows, int64_t columns)
      : rows(rows), columns(columns), bytes(dtypeBits(tensor.dtype()) / 8), data(tensor.data()),
        items(tensor.numElements() / (rows * columns)) {
    isReal = isFloat(tensor.dtype());
  }

  bool isZero(int64_t element) const {
    const std::byte *at = data + element * static_cast<int64_t>(bytes);
    uint64_t bits = 0;
    std::memcpy(&bits, at, bytes);
    return (isReal ? bits & ~(uint64_t(1) << (8 * bytes - 1)) : bits) == 0; // of either sign
  }

  bool looksSparse() const {
    int64_t all = items * rows * columns, count = std::min(all, kSamples), zeros = 0;
    int64_t step = all / count; // an odd step meets all columns
    step -= step > 1 && step % 2 == 0;
    for (int64_t i = 0; i < count; ++i)
      zeros += isZero(i * step);
    return zeros * kShare >= count;
  }

  void read() {
    bits.resize(rows * columns);
    switch (bytes) {
    case 1:
      return readAs<uint8_t>();
    case 2:
      return readAs<uint16_t>();
    case 4:
      return readAs<uint32_t>();
    default:
      return readAs<uint64_t>();
    }
  }

  int64_t rows, columns;
  llvm::BitVector bits;

private:
  template <typename T> void readAs() {
    const T *at = reinterpret_cast<const T *>(data);
    const T sign = isReal ? static_cast<T>(T(1) << (8 * sizeof(T) - 1)) : T(0), mask = static_cast<T>(~sign);
    constexpr int64_t word = 64;
    for (int64_t item = 0; item < items; ++item)
      for (int64_t row = 0; row < rows; ++row, at += columns)
        for (int64_t first = 0; first < columns; first += word) {
          int64_t last = std::min(first + word, columns);
          T any = 0;
          for (int64_t column = first; column < last; ++column)
            any |= at[column] & mask;
          for (int64_t column = first; any && column < last; ++column)
            if (at[column] & mask)
              bits.set(row * columns + column);
        }
  }

  size_t bytes;
  const std::byte *data;
  int64_t items;
  bool isReal = false;
};

/// The runs of ones of a list of bits.
SmallVector<Run> runsOf(const llvm::BitVector &bits) {
  SmallVector<Run> runs;
  for (int first = bits.find_first(); first >= 0;) {
    int last = bits.find_next_unset(first);
    runs.emplace_back(first, last < 0 ? bits.size() : last);
    first = last < 0 ? -1 : bits.find_next(last);
  }
  return runs;
}

/// Finds what all places have in common.
class ZeroRule {
public:
  ZeroRule(Places &places, MLIRContext *context)
      : places(places), i(getAffineDimExpr(0, context)), j(getAffineDimExpr(1, context)), kept(places.rows),
        keptColumns(places.columns) {}

  std::optional<SmallVector<Conditions>> find() {
    for (int64_t row = 0; row < places.rows; ++row)
      readRow(row);
    if (kept.none())
      return SmallVector<Conditions>();
    Conditions common;
    if (!addBlocks(common))
      addEnds(common);
    addStrides(common);
    SmallVector<Conditions> cases{common};
    cases = withRuns(cases, kept, i, places.rows);
    cases = withRuns(cases, keptColumns, j, places.columns);
    if (llvm::any_of(cases, [](const Conditions &one) { return one.empty(); }))
      return std::nullopt;
    return cases;
  }

private:
  void readRow(int64_t row) {
    int64_t begin = row * places.columns, end = begin + places.columns;
    int64_t from = places.bits.find_first_in(begin, end), to = places.bits.find_last_in(begin, end);
    if (from < 0)
      return;
    kept.set(row);
    first.push_back({row, from - begin});
    last.push_back({row, to - begin});
    for (int64_t at = from; at >= 0; at = places.bits.find_first_in(at + 1, end)) {
      keptColumns.set(at - begin);
      if (stride != 1)
        stride = std::gcd(stride, std::abs(at - begin - row - first[0].second + first[0].first));
    }
  }

  /// Ends that move with the row: triangles and bands.
  void addEnds(Conditions &common) {
    int64_t low = places.columns, high = -places.rows;
    for (size_t at = 0; at < first.size(); ++at) {
      low = std::min(low, first[at].second - first[at].first);
      high = std::max(high, last[at].second - last[at].first);
    }
    // What a bound leaves out is a triangle in a corner of the box of all places.
    auto pays = [&](int64_t leg) { return leg > 0 && leg * leg / 2 * kShare >= places.rows * places.columns; };
    if (pays(low - keptColumns.find_first() + kept.find_last())) // j - i >= low
      common.push_back({j - i - low, false});
    if (pays(keptColumns.find_last() - kept.find_first() - high)) // j - i <= high
      common.push_back({i - j + high, false});
  }

  /// As many blocks along the diagonal as there can be.
  bool addBlocks(Conditions &common) {
    int64_t most = std::gcd(places.rows, places.columns);
    for (int64_t blocks = std::min<int64_t>(most, 512); blocks > 1; --blocks) {
      if (most % blocks)
        continue;
      int64_t tall = places.rows / blocks, wide = places.columns / blocks;
      bool holds = llvm::all_of(llvm::zip(first, last), [&](auto pair) {
        auto [from, to] = pair;
        int64_t block = from.first / tall;
        return from.second >= block * wide && to.second < (block + 1) * wide;
      });
      if (!holds)
        continue;
      common.push_back({i.floorDiv(tall) - j.floorDiv(wide), true});
      return true;
    }
    return false;
  }

  /// Every n-th diagonal.
  void addStrides(Conditions &common) {
    if (stride > 1)
      common.push_back({(j - i - (first[0].second - first[0].first)) % stride, true});
  }

  /// Of every kind of places the ones that hold something: every n-th, or up to four runs.
  static SmallVector<Conditions> withRuns(ArrayRef<Conditions> cases, const llvm::BitVector &bits, AffineExpr dim,
                                          int64_t extent) {
    int64_t dead = extent - static_cast<int64_t>(bits.count()), begin = bits.find_first(), by = 0;
    for (int64_t at : bits.set_bits())
      by = std::gcd(by, at - begin);
    SmallVector<Run> runs = runsOf(bits);
    SmallVector<Conditions> result(cases);
    if (dead * kShare < extent)
      return result;
    if (by > 1) {
      for (Conditions &one : result)
        one.push_back({(dim - begin) % by, true});
      return result;
    }
    constexpr size_t mostRuns = 4;
    if (runs.size() > mostRuns)
      runs = {{runs.front().first, runs.back().second}};
    result.clear();
    for (const Conditions &one : cases)
      for (auto [from, to] : runs) {
        result.push_back(one);
        if (from > 0)
          result.back().push_back({dim - from, false});
        if (to < extent)
          result.back().push_back({-dim + (to - 1), false});
      }
    return result;
  }

  Places &places;
  AffineExpr i, j;
  llvm::BitVector kept, keptColumns;
  SmallVector<std::pair<int64_t, int64_t>> first, last; ///< row and column
  int64_t stride = 0;
};

} // namespace

std::optional<Known> dmir::knownOfConstant(Value constant, int64_t least) {
  auto type = cast<RankedTensorType>(constant.getType());
  if (type.getRank() < 1 || type.getNumElements() < std::max<int64_t>(least, 1) ||
      type.getNumElements() > kMostElements || type.getEncoding() || !hostFormOf(type))
    return std::nullopt;
  std::optional<Tensor> tensor = constantTensor(constant);
  if (!tensor || dtypeBits(tensor->dtype()) < 8)
    return std::nullopt;
  unsigned rank = type.getRank();
  int64_t columns = type.getShape().back(), rows = rank > 1 ? type.getShape()[rank - 2] : 1;
  Places places(*tensor, rows, columns);
  if (!places.looksSparse())
    return std::nullopt;
  places.read();
  MLIRContext *context = constant.getContext();
  std::optional<SmallVector<Conditions>> cases = ZeroRule(places, context).find();
  if (!cases)
    return std::nullopt;
  Known known;
  known.keep.rank = rank;
  SmallVector<AffineExpr> own{getAffineConstantExpr(0, context), getAffineDimExpr(rank - 1, context)};
  if (rank > 1)
    own[0] = getAffineDimExpr(rank - 2, context);
  for (const Conditions &one : *cases) {
    Conditions conditions;
    for (const Condition &condition : one)
      conditions.push_back({condition.expr.replaceDims(own), condition.isEq});
    known.keep.cases.push_back(caseOf(rank, 0, conditions));
  }
  return known;
}
