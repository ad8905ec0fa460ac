//===- KeptSteps.cpp - weights without steps of zeros -------------------------===//
#include "KeptSteps.h"

#include "schemas/cuda/Layouts.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

#include <cstring>

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

static constexpr int64_t kTerms = dmx::cuda::kTileRowElements, kElementBytes = 2, kWordBytes = 4;
static constexpr StringLiteral kColumns = "columns", kKept = "kept";

static int64_t allSteps(int64_t k) { return llvm::divideCeil(k, kTerms); }

KeptSteps::KeptSteps(const kernels::NonZeros &matrix, int64_t columns) : columns(columns) {
  for (int64_t column = 0; column < matrix.columns(); column += columns) {
    auto runs = matrix.rowRuns({column, column + columns}, kTerms);
    tiles.emplace_back(runs.begin(), runs.end());
  }
}

int64_t KeptSteps::steps() const {
  int64_t count = 0;
  for (const auto &runs : tiles)
    count += kernels::lengthOf(runs);
  return count;
}

int64_t KeptSteps::stepsOf(int64_t tile) const { return kernels::lengthOf(tiles[static_cast<size_t>(tile)]); }

bool KeptSteps::areTogether() const {
  return llvm::all_of(tiles, [](const auto &runs) { return runs.size() <= 1; });
}

bool KeptSteps::pay(int64_t k) const { return 10 * steps() <= 9 * allSteps(k) * static_cast<int64_t>(tiles.size()); }

int64_t KeptSteps::elements(int64_t k, int64_t n) const {
  int64_t count = 0;
  for (auto [tile, runs] : llvm::enumerate(tiles))
    for (auto [from, to] : runs)
      count += std::min(columns, n - static_cast<int64_t>(tile) * columns) * (std::min(k, to * kTerms) - from * kTerms);
  return count;
}

int64_t KeptSteps::wordsAt() const { return rows() * kTerms * kElementBytes; }

int64_t KeptSteps::bytes() const {
  constexpr int64_t unit = 16;
  int64_t words = entriesAt() + std::max<int64_t>(1, steps());
  return static_cast<int64_t>(llvm::alignTo(wordsAt() + words * kWordBytes, unit));
}

Result<KeptSteps> KeptSteps::of(DictionaryAttr form, int64_t k, int64_t n) {
  auto wrong = [](const std::string &why) {
    return modelError("its packed form '" + kForm.str() +
                      "' has for each of its columns of tiles steps of 64 terms "
                      "from, to, from, to, ...: " +
                      why);
  };
  KeptSteps kept;
  auto columns = form.getAs<IntegerAttr>(kColumns);
  auto lists = form.getAs<ArrayAttr>(kKept);
  if (!columns || columns.getInt() < 1 || columns.getInt() > n + kTerms * kTerms || !lists)
    return wrong("'columns' and 'kept' say them");
  kept.columns = columns.getInt();
  if (static_cast<int64_t>(lists.size()) != static_cast<int64_t>(llvm::divideCeil(n, kept.columns)))
    return wrong("there are " + std::to_string(llvm::divideCeil(n, kept.columns)) + " of " +
                 std::to_string(kept.columns) + " columns, 'kept' has " + std::to_string(lists.size()));
  std::optional<std::vector<kernels::RunList>> tiles = kernels::readRuns(lists);
  if (!tiles)
    return wrong("'kept' has something else");
  for (const kernels::RunList &runs : *tiles)
    if (const dmir::Run *run = kernels::firstOutOfOrder(runs, allSteps(k)))
      return wrong("they ascend, apart, to " + std::to_string(allSteps(k)) + ", and some are from " +
                   std::to_string(run->first) + " to " + std::to_string(run->second));
  kept.tiles = std::move(*tiles);
  return kept;
}

void KeptSteps::write(NamedAttrList &form, MLIRContext *context) const {
  Builder b(context);
  form.set(kColumns, b.getI64IntegerAttr(columns));
  form.set(kKept, kernels::writeRuns(context, tiles));
}

Status KeptSteps::pack(const kernels::ConstantMatrix &m, std::span<std::byte> out) const {
  std::memset(out.data(), 0, out.size());
  const kernels::NonZeros held(m);
  auto word = [&](int64_t index, int64_t value) {
    auto bits = static_cast<int32_t>(value);
    std::memcpy(out.data() + wordsAt() + index * kWordBytes, &bits, sizeof(bits));
  };
  int64_t packed = 0;
  auto copy = [&](int64_t step, int64_t first) {
    for (int64_t column = first; column < std::min(m.n, first + columns); ++column)
      for (int64_t k = step * kTerms; k < std::min(m.k, (step + 1) * kTerms); ++k) {
        int64_t to = (packed * columns + column - first) * kTerms + k % kTerms;
        std::memcpy(out.data() + to * kElementBytes, m.data + (k * m.strideK + column * m.strideN) * kElementBytes,
                    kElementBytes);
      }
    word(entriesAt() + packed++, step);
  };
  for (auto [tile, runs] : llvm::enumerate(tiles)) {
    const int64_t first = static_cast<int64_t>(tile) * columns;
    const int64_t words = static_cast<int64_t>(tile) * kTileWords;
    word(words, packed);
    word(words + 1, packed + kernels::lengthOf(runs));
    word(words + 2, runs.empty() ? 0 : runs[0].first);
    for (auto [from, to] : held.rowRuns({first, first + columns}, kTerms))
      if (llvm::none_of(runs, [&](const dmir::Run &run) { return run.first <= from && to <= run.second; }))
        return modelError("'kept' of a packed form leaves out of columns " + std::to_string(first) + " to " +
                          std::to_string(std::min(m.n, first + columns) - 1) + " some of steps " +
                          std::to_string(from) + " to " + std::to_string(to - 1) +
                          ", which are not zero; leave the form out of the strategy and it is derived");
    for (auto [from, to] : runs)
      for (int64_t step = from; step < to; ++step)
        copy(step, first);
  }
  return Status::ok();
}
