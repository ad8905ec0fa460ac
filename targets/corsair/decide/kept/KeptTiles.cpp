//===- KeptTiles.cpp - tiles of weights that are not all zero -------------===//

#include "KeptTiles.h"
#include "targets/common/roots/ConstantMatrix.h"
#include "targets/corsair/decide/Spread.h"

#include "dmxc/Support/ElementAt.h"

#include "mlir/IR/Builders.h"

#include <numeric>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

static constexpr int64_t kBlock = 64;

std::shared_ptr<const KeptColumns> KeptColumns::of(const Tensor &matrix) {
  if (matrix.dtype() != DType::F32 || matrix.shape().size() != 2 || !matrix.numElements())
    return nullptr;
  const int64_t k = matrix.shape()[0], n = matrix.shape()[1];
  if (!kernels::ConstantMatrix{matrix.data(), k, n, n, 1, sizeof(float), /*isFloat=*/true}.mayBeSparse())
    return nullptr;
  auto made = std::make_shared<KeptColumns>();
  made->kept.assign((k + kBlock - 1) / kBlock, std::vector<bool>(n, false));
  for (int64_t row = 0; row < k; ++row) {
    std::vector<bool> &block = made->kept[row / kBlock];
    for (int64_t column = 0; column < n; ++column)
      if (elementAt<float>(matrix.data(), row * n + column) != 0) // NaN is kept, too
        block[column] = true;
  }
  return made;
}

std::shared_ptr<const KeptColumns> KeptColumns::folded(int64_t columns) const {
  auto made = std::make_shared<KeptColumns>();
  for (const std::vector<bool> &block : kept) {
    std::vector<bool> &part = made->kept.emplace_back(columns, false);
    for (size_t column = 0; column < block.size(); ++column)
      if (block[column])
        part[column % columns] = true;
  }
  return made;
}

bool KeptColumns::any(int64_t block, int64_t from, int64_t to) const {
  const std::vector<bool> &row = kept[block];
  const auto end = row.begin() + std::min<int64_t>(to, static_cast<int64_t>(row.size()));
  return std::find(row.begin() + std::min<int64_t>(from, static_cast<int64_t>(row.size())), end, true) != end;
}

Rounds dmxc::corsair::roundsOf(const Spread &plan, const KeptColumns &columns, bool all) {
  Rounds rounds;
  const int64_t width = plan.tilesARound() * kBlock;
  for (int64_t round = 0; round < plan.rounds(); ++round) {
    SmallVector<int64_t> taken(plan.kChunks);
    std::iota(taken.begin(), taken.end(), 0);
    auto rest = std::stable_partition(taken.begin(), taken.end(), [&](int64_t block) {
      return columns.any(block, round * width, (round + 1) * width);
    });
    if (!all) // a sum over nothing has no instruction
      taken.truncate(std::max<size_t>(rest - taken.begin(), 1));
    rounds.push_back(std::move(taken));
  }
  return rounds;
}

ArrayAttr dmxc::corsair::attributeOf(const Rounds &rounds, MLIRContext *context) {
  Builder b(context);
  return b.getArrayAttr(
      llvm::map_to_vector(rounds, [&](ArrayRef<int64_t> round) -> Attribute { return b.getDenseI64ArrayAttr(round); }));
}

std::optional<Rounds> dmxc::corsair::readRounds(Attribute given, int64_t rounds, int64_t blocks) {
  auto lists = dyn_cast_or_null<ArrayAttr>(given);
  if (!lists || static_cast<int64_t>(lists.size()) != rounds)
    return std::nullopt;
  Rounds made;
  for (Attribute each : lists) {
    auto list = dyn_cast<DenseI64ArrayAttr>(each);
    if (!list || list.empty() || list.size() > blocks)
      return std::nullopt;
    std::vector<bool> seen(blocks, false);
    for (int64_t block : list.asArrayRef()) {
      if (block < 0 || block >= blocks || seen[block])
        return std::nullopt;
      seen[block] = true;
    }
    made.emplace_back(list.asArrayRef());
  }
  return made;
}

std::optional<std::string> dmxc::corsair::outOfOrder(ArrayRef<int64_t> blocks,
                                                     llvm::function_ref<bool(int64_t)> isZero) {
  for (size_t i = 1; i < blocks.size(); ++i) {
    const bool zeros = isZero(blocks[i]), before = isZero(blocks[i - 1]);
    if (zeros == before ? blocks[i] < blocks[i - 1] : before)
      return "block " + std::to_string(blocks[i]) + " behind block " + std::to_string(blocks[i - 1]) +
             ": they are in the order of K, those of zeros behind the others";
  }
  return std::nullopt;
}
