//===- Constants.cpp - packed forms of a model's constants ----------------===//

#include "Constants.h"
#include "Ops.h"

#include "dmxc/Support/ElementAt.h"
#include "schemas/blockfp/BlockFloat.h"
#include "schemas/corsair/SimdFunctions.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"

#include <cstring>
#include <numeric>

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

//===----------------------------------------------------------------------===//
// TileForm
//===----------------------------------------------------------------------===//

bool dmxc::corsair::isTiles(DictionaryAttr form) {
  auto name = form ? form.getAs<StringAttr>("form") : StringAttr();
  return name && name.getValue() == forms::kTiles;
}

int64_t TileForm::blocksBefore(int64_t round) const {
  int64_t sum = kept.empty() ? round * kChunks : 0;
  for (const auto &blocks : ArrayRef(kept).take_front(kept.empty() ? 0 : round))
    sum += static_cast<int64_t>(blocks.size());
  return sum;
}

TileForm TileForm::of(const Spread &plan) {
  TileForm form;
  form.n = plan.n;
  form.kChunks = plan.kChunks;
  form.rounds = plan.rounds();
  form.slices = plan.columnSlices();
  form.groups = plan.groups;
  return form;
}

/// The numbers of a form by their keys; counts are 1 at least, and so few that their products fit.
static constexpr struct {
  StringLiteral key;
  int64_t TileForm::*number;
  bool isCount;
} kNumbers[] = {{"n", &TileForm::n, true},
                {"k_chunks", &TileForm::kChunks, true},
                {"rounds", &TileForm::rounds, true},
                {"slices", &TileForm::slices, true},
                {"groups", &TileForm::groups, true},
                {"quads", &TileForm::quads, true},
                {"products", &TileForm::products, true},
                {"stride_n", &TileForm::strideN, false},
                {"valid", &TileForm::valid, false},
                {"along_k", &TileForm::alongK, false}};

TileForm TileForm::read(DictionaryAttr form) {
  TileForm result;
  for (const auto &[key, number, isCount] : kNumbers)
    result.*number = form.getAs<IntegerAttr>(key).getInt();
  result.extents = SmallVector<int64_t>(form.getAs<DenseI64ArrayAttr>("extents").asArrayRef());
  result.strides = SmallVector<int64_t>(form.getAs<DenseI64ArrayAttr>("strides").asArrayRef());
  if (Attribute kept = form.get(kKeptKey))
    if (std::optional<Rounds> rounds = readRounds(kept, result.rounds, result.kChunks))
      result.kept = std::move(*rounds);
  return result;
}

std::optional<TileForm> TileForm::parse(DictionaryAttr form, const hw::Machine &machine) {
  constexpr int64_t most = 1 << 20;
  auto isNumber = [&](StringRef key, bool isCount) {
    auto number = form.getAs<IntegerAttr>(key);
    return number && number.getType().isInteger(64) && (!isCount || (number.getInt() >= 1 && number.getInt() <= most));
  };
  if (!llvm::all_of(kNumbers, [&](const auto &each) { return isNumber(each.key, each.isCount); }) ||
      !isNumber("size", false) || !form.getAs<DenseI64ArrayAttr>("extents") ||
      !form.getAs<DenseI64ArrayAttr>("strides"))
    return std::nullopt;
  TileForm result = read(form);
  const bool isKept = !form.get(kKeptKey) || (!result.kept.empty() && !result.alongK && result.products == 1);
  const bool fits = isKept && result.slices <= machine.slices && result.quads <= machine.quadCount() &&
                    static_cast<double>(result.rounds) * result.groups * result.kChunks * result.products < 1e9 &&
                    result.bytes() == form.getAs<IntegerAttr>("size").getInt();
  return fits ? std::optional(result) : std::nullopt;
}

DictionaryAttr TileForm::write(MLIRContext *context) const {
  Builder b(context);
  NamedAttrList form;
  form.set("form", b.getStringAttr(forms::kTiles));
  form.set("size", b.getI64IntegerAttr(bytes()));
  for (const auto &[key, number, isCount] : kNumbers)
    form.set(key, b.getI64IntegerAttr(this->*number));
  form.set("extents", b.getDenseI64ArrayAttr(extents));
  form.set("strides", b.getDenseI64ArrayAttr(strides));
  if (!kept.empty())
    form.set(kKeptKey, attributeOf(kept, context));
  return form.getDictionary(context);
}

//===----------------------------------------------------------------------===//
// Which form an operand gets
//===----------------------------------------------------------------------===//

bool dmxc::corsair::becomesTiles(BlockArgument argument) {
  auto type = cast<RankedTensorType>(argument.getType());
  if (llvm::all_of(argument.getUsers(), makesNothing) || !isa<FloatType>(type.getElementType()) ||
      type.getNumElements() == 0 || !servesAsTiles(argument))
    return false;
  return llvm::all_of(argument.getUsers(), [&](Operation *user) {
    return makesNothing(user) || isa<dmir::ConvOp>(user) || (type.getElementType().isF32() && type.getRank() == 2);
  });
}

static TileForm productForm(dmir::MatMulOp matmul, const Distribution &deal) {
  ArrayRef<int64_t> shape = shapeOf(matmul.getRhs());
  const int64_t columns = deal.columns.lookup(matmul), depth = deal.depth.lookup(matmul);
  TileForm form = TileForm::of(planOf(matmul, deal));
  form.quads = columns || depth ? deal.quads : 1;
  form.alongK = depth != 0;
  form.extents = {form.kChunks * 64 * (depth ? form.quads : 1)};
  form.valid = shape[0];
  form.strides = {shape[1]};
  form.strideN = 1;
  if (std::optional<Rounds> rounds = readRounds(matmul->getAttr(lldmir::kKeptAttr), form.rounds, form.kChunks))
    form.kept = std::move(*rounds);
  return form;
}

/// Kernel positions, then channels in blocks of 64: the order in which CONV walks over a window. By whole windows
/// channels are without gaps.
static TileForm convForm(dmir::ConvOp conv, const Distribution &deal) {
  ArrayRef<int64_t> shape = shapeOf(conv.getWeights());
  const auto groups = static_cast<int64_t>(conv.getGroups());
  const int64_t kernel = ShapedType::getNumElements(shape.drop_front(2)), blocks = (shape[1] + 63) / 64;
  const Spread plan = planOf(conv, deal);
  TileForm form = TileForm::of(plan);
  form.products = groups;
  form.quads = deal.columns.contains(conv) ? deal.quads : 1;
  form.strideN = shape[1] * kernel;
  form.extents = {kernel, plan.windows ? shape[1] : blocks * 64};
  form.valid = shape[1];
  form.strides = {1, kernel};
  return form;
}

static TileForm tileForm(Operation *product, const Distribution &deal) {
  auto matmul = dyn_cast<dmir::MatMulOp>(product);
  return matmul ? productForm(matmul, deal) : convForm(cast<dmir::ConvOp>(product), deal);
}

/// The product that an argument is the bias of.
static Operation *biasedProduct(BlockArgument argument, const Distribution &deal) {
  for (auto [product, add] : deal.biases)
    if (argument.hasOneUse() && *argument.getUsers().begin() == add)
      return product;
  return nullptr;
}

DictionaryAttr dmxc::corsair::packedForms(Block *body, const Distribution &deal,
                                          llvm::function_ref<bool(unsigned)> constant) {
  MLIRContext *context = body->getParentOp()->getContext();
  Builder b(context);
  NamedAttrList all;
  auto setForm = [&](StringRef key, StringRef name, int64_t bytes) {
    all.set(key, b.getDictionaryAttr({b.getNamedAttr("form", b.getStringAttr(name)),
                                      b.getNamedAttr("size", b.getI64IntegerAttr(bytes))}));
  };
  for (BlockArgument argument : body->getArguments()) {
    if (!constant(argument.getArgNumber()))
      continue;
    std::string key = std::to_string(argument.getArgNumber());
    if (becomesTiles(argument)) {
      all.set(key, tileForm(*llvm::find_if_not(argument.getUsers(), makesNothing), deal).write(context));
      continue;
    }
    auto type = cast<RankedTensorType>(argument.getType());
    if (Operation *product = biasedProduct(argument, deal)) {
      // The last round of a quad reads whole tiles.
      const TileForm form = tileForm(product, deal);
      setForm(key, forms::kBias, 4 * (type.getNumElements() - form.n + form.rounds * form.slices * form.groups * 64));
      continue;
    }
    setForm(key, forms::kPlain, type.getNumElements() * hw::elementBytes(*deviceKind(type.getElementType())));
  }
  return all.getDictionary(context);
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

static Status packPlain(const Tensor &constant, std::span<std::byte> out) {
  if (dtypeBits(constant.dtype()) * constant.numElements() / 8 == static_cast<int64_t>(out.size()) &&
      constant.dtype() != DType::F16 && constant.dtype() != DType::BF16) {
    std::memcpy(out.data(), constant.data(), out.size());
    return Status::ok();
  }
  auto *half = reinterpret_cast<uint16_t *>(out.data());
  for (int64_t i = 0; i < constant.numElements(); ++i)
    half[i] = hw::f16Round(constant.asDouble(i));
  return Status::ok();
}

static Status packBias(const Tensor &constant, std::span<std::byte> out) {
  std::fill(out.begin(), out.end(), std::byte());
  auto *values = reinterpret_cast<float *>(out.data());
  for (int64_t i = 0; i < constant.numElements(); ++i)
    values[i] = hw::roundToBfp32(static_cast<float>(constant.asDouble(i)));
  return Status::ok();
}

/// Where row k of the matrix begins in the constant; -1 for rows of zeros.
static std::vector<int64_t> rowOffsets(const TileForm &form) {
  std::vector<int64_t> offsets(form.kChunks * 64 * (form.alongK ? form.quads : 1));
  const int64_t rows = std::accumulate(form.extents.begin(), form.extents.end(), int64_t(1), std::multiplies<>());
  for (size_t k = 0; k < offsets.size(); ++k) {
    int64_t rest = static_cast<int64_t>(k);
    if (rest >= rows || rest % form.extents.back() >= form.valid) {
      offsets[k] = -1;
      continue;
    }
    for (size_t i = form.extents.size(); i-- > 0; rest /= form.extents[i])
      offsets[k] += rest % form.extents[i] * form.strides[i];
  }
  return offsets;
}

namespace {

/// Writes the tiles of a constant one after the other.
class TilePacker {
public:
  TilePacker(const TileForm &form, const Tensor &constant, std::byte *out)
      : form(form), constant(constant), offsets(rowOffsets(form)), tile(out) {}

  Status pack() {
    for (int64_t quad = 0; quad < form.quads; ++quad)
      for (int64_t slice = 0; slice < form.slices; ++slice)
        for (int64_t at = 0; at < form.products * form.rounds * form.groups; ++at) {
          const int64_t product = at / (form.rounds * form.groups), round = at / form.groups % form.rounds;
          first = ((round * form.slices + slice) * form.groups + at % form.groups) * 64;
          firstColumn = (form.alongK ? 0 : quad * form.n) + product * form.n;
          firstRow = form.alongK ? quad * form.kChunks * 64 : 0;
          if (Status done = packGroup(round); !done)
            return done;
        }
    for (int64_t round = 0; round < static_cast<int64_t>(form.kept.size()); ++round)
      if (std::optional<std::string> why =
              outOfOrder(form.kept[round], [&](int64_t block) { return !holding.contains({round, block}); }))
        return modelError("'kept' of the form of a constant has in round " + std::to_string(round) + " " + *why);
    return Status::ok();
  }

private:
  Status packGroup(int64_t round) {
    if (form.kept.empty()) {
      for (int64_t block = 0; block < form.kChunks; ++block)
        if (!packTile(block))
          return Error{ErrorKind::Internal, "a run of weights has no code"};
      return Status::ok();
    }
    std::vector<bool> has(form.kChunks, false);
    for (int64_t block : form.kept[round]) {
      has[block] = true;
      if (!holding.contains({round, block}) && !isZero(block))
        holding.insert({round, block});
      if (!packTile(block))
        return Error{ErrorKind::Internal, "a run of weights has no code"};
    }
    for (int64_t block = 0; block < form.kChunks; ++block)
      if (!has[block] && !isZero(block))
        return modelError("the form of a constant leaves out block " + std::to_string(block) +
                          " of 64 along K of round " + std::to_string(round) +
                          " of its columns, where it has other numbers than zeros; leave "
                          "'kept' out of the text of partition, and it is derived");
    return Status::ok();
  }

  float element(int64_t at) const {
    return constant.dtype() == DType::F32 ? elementAt<float>(constant.data(), at)
                                          : static_cast<float>(constant.asDouble(at));
  }
  /// The numbers of a tile's column; zeros beyond the matrix.
  void read(int64_t block, int64_t column) {
    const int64_t n = first + column, place = (firstColumn + n) * form.strideN;
    for (int64_t i = 0; i < 64; ++i) {
      const int64_t offset = offsets[firstRow + block * 64 + i];
      run[i] = n < form.n && offset >= 0 ? element(place + offset) : 0;
    }
  }
  bool isZero(int64_t block) {
    for (int64_t column = 0; column < 64; ++column) {
      read(block, column);
      if (llvm::any_of(run, [](float number) { return number != 0; }))
        return false;
    }
    return true;
  }
  bool packTile(int64_t block) {
    for (int64_t column = 0; column < 64; ++column) {
      read(block, column);
      if (!hw::quantizeRun(shape, run.data(), hw::Rounding::Nearest, nullptr, tile + column * shape.scaleBytes() / 64,
                           tile + shape.scaleBytes() + column * shape.runBytes()))
        return false;
    }
    tile += shape.bytes();
    return true;
  }

  const TileForm &form;
  const Tensor &constant;
  const std::vector<int64_t> offsets;
  const hw::TileShape shape = *hw::tileOf(hw::ElemKind::Bfp16C);
  std::byte *tile; ///< the next one
  int64_t first = 0, firstColumn = 0, firstRow = 0;
  std::array<float, 64> run;
  llvm::DenseSet<std::pair<int64_t, int64_t>> holding; ///< blocks of rounds that are not all zero
};

} // namespace

/// Whether the tiles are of numbers that the constant has.
static bool isWithin(const TileForm &form, const Tensor &constant) {
  const int64_t columns = form.n * form.products * (form.alongK ? 1 : form.quads);
  const int64_t depth = form.kChunks * 64 * (form.alongK ? form.quads : 1);
  double last = static_cast<double>(columns - 1) * static_cast<double>(form.strideN), rows = 1;
  if (form.strideN < 0 || form.extents.empty() || form.extents.size() != form.strides.size())
    return false;
  for (auto [extent, stride] : llvm::zip(form.extents, form.strides)) {
    if (extent < 1 || stride < 0)
      return false;
    rows *= static_cast<double>(extent);
    const int64_t reached = &extent == &form.extents.back() ? std::min(extent, form.valid) : extent;
    last += static_cast<double>(std::max<int64_t>(reached - 1, 0)) * static_cast<double>(stride);
  }
  return rows <= static_cast<double>(depth) && rows > static_cast<double>(depth - 64) &&
         last < static_cast<double>(constant.numElements());
}

Status dmxc::corsair::packConstant(DictionaryAttr form, const Tensor &constant, std::span<std::byte> out,
                                   const hw::Machine &machine) {
  auto named = form.getAs<StringAttr>("form");
  const StringRef name = named ? named.getValue() : StringRef();
  const auto bytes = static_cast<int64_t>(out.size()), count = constant.numElements();
  const int64_t plain = static_cast<int64_t>(dtypeBytes(constant.dtype(), static_cast<uint64_t>(count)));
  if (name == forms::kPlain && (bytes == 2 * count || bytes == plain))
    return packPlain(constant, out);
  if (name == forms::kBias && 4 * count <= bytes)
    return packBias(constant, out);
  if (std::optional<TileForm> tiles = name == forms::kTiles ? TileForm::parse(form, machine) : std::nullopt;
      tiles && tiles->bytes() == bytes && isWithin(*tiles, constant))
    return TilePacker(*tiles, constant, out.data()).pack();
  std::string text;
  llvm::raw_string_ostream(text) << form;
  return Error{ErrorKind::Model,
               "a constant of " + shapeString(constant.shape()) + " does not fit its form for the device, " + text};
}
