//===- Constants.cpp - packed forms of a model's constants ----------------===//

#include "Constants.h"
#include "KernelLowering.h"

#include "schemas/corsair/SimdNumbers.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;

//===----------------------------------------------------------------------===//
// TileForm
//===----------------------------------------------------------------------===//

TileForm TileForm::of(const MatmulPlan &plan) {
  TileForm form;
  form.n = plan.n;
  form.kChunks = plan.kChunks;
  form.rounds = plan.rounds();
  form.slices = plan.columnSlices();
  form.groups = plan.groups;
  return form;
}

TileForm TileForm::read(DictionaryAttr form) {
  auto number = [&](StringRef name) { return form.getAs<IntegerAttr>(name).getInt(); };
  TileForm result;
  result.n = number("n");
  result.kChunks = number("k_chunks");
  result.rounds = number("rounds");
  result.slices = number("slices");
  result.groups = number("groups");
  result.strideN = number("stride_n");
  result.valid = number("valid");
  result.quads = number("quads");
  result.alongK = number("along_k");
  result.extents = SmallVector<int64_t>(form.getAs<DenseI64ArrayAttr>("extents").asArrayRef());
  result.strides = SmallVector<int64_t>(form.getAs<DenseI64ArrayAttr>("strides").asArrayRef());
  return result;
}

DictionaryAttr TileForm::write(MLIRContext *context) const {
  Builder b(context);
  NamedAttrList form;
  form.set("form", b.getStringAttr(forms::kTiles));
  form.set("size", b.getI64IntegerAttr(bytes()));
  form.set("n", b.getI64IntegerAttr(n));
  form.set("k_chunks", b.getI64IntegerAttr(kChunks));
  form.set("rounds", b.getI64IntegerAttr(rounds));
  form.set("slices", b.getI64IntegerAttr(slices));
  form.set("groups", b.getI64IntegerAttr(groups));
  form.set("stride_n", b.getI64IntegerAttr(strideN));
  form.set("valid", b.getI64IntegerAttr(valid));
  form.set("quads", b.getI64IntegerAttr(quads));
  form.set("along_k", b.getI64IntegerAttr(alongK));
  form.set("extents", b.getDenseI64ArrayAttr(extents));
  form.set("strides", b.getDenseI64ArrayAttr(strides));
  return form.getDictionary(context);
}

//===----------------------------------------------------------------------===//
// Which form an operand gets
//===----------------------------------------------------------------------===//

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

bool dmxc::corsair::becomesTiles(BlockArgument argument) {
  if (!argument.hasOneUse() || !cast<RankedTensorType>(argument.getType()).getElementType().isF32() ||
      llvm::is_contained(shapeOf(argument), 0))
    return false;
  Operation *user = *argument.getUsers().begin();
  if (user->getNumResults() != 1 || llvm::is_contained(shapeOf(user->getResult(0)), 0))
    return false;
  if (auto matmul = dyn_cast<dmir::MatMulOp>(user))
    return matmul.getRhs() == argument && shapeOf(argument).size() == 2;
  auto conv = dyn_cast<dmir::ConvOp>(user);
  return conv && conv.getWeights() == argument && conv.getGroups() == 1;
}

static TileForm productForm(dmir::MatMulOp matmul, const hw::Machine &machine, const Distribution &deal) {
  ArrayRef<int64_t> shape = shapeOf(matmul.getRhs()), result = shapeOf(matmul.getResult());
  const int64_t columns = deal.columns.lookup(matmul), depth = deal.depth.lookup(matmul);
  const Split split = deal.at(matmul.getResult());
  int64_t rows = packedRows(result);
  if (split && !columns)
    rows = rows / result[split.dim] * split.part;
  TileForm form = TileForm::of(planMatmul(machine, rows, columns ? columns : shape[1], depth ? depth : shape[0]));
  form.quads = columns || depth ? deal.quads : 1;
  form.alongK = depth;
  form.extents = {form.kChunks * 64 * (depth ? form.quads : 1)};
  form.valid = shape[0];
  form.strides = {shape[1]};
  form.strideN = 1;
  return form;
}

/// Kernel positions, then channels in blocks of 64: the order in which CONV walks over a window.
static TileForm convForm(dmir::ConvOp conv, const hw::Machine &machine, const Distribution &deal) {
  ArrayRef<int64_t> shape = shapeOf(conv.getWeights()), result = shapeOf(conv.getResult());
  const int64_t columns = deal.columns.lookup(conv);
  const Split split = deal.at(conv.getResult());
  int64_t pixels = 1, kernel = 1;
  for (size_t dim = 2; dim < result.size(); ++dim)
    pixels *= split.dim == static_cast<int>(dim) ? split.part : result[dim];
  for (int64_t dim : shape.drop_front(2))
    kernel *= dim;
  const int64_t blocks = (shape[1] + 63) / 64;
  TileForm form = TileForm::of(planConv(machine, pixels, columns ? columns : shape[0], kernel * blocks));
  form.quads = columns ? deal.quads : 1;
  form.strideN = shape[1] * kernel;
  form.extents = {kernel, blocks * 64};
  form.valid = shape[1];
  form.strides = {1, kernel};
  return form;
}

DictionaryAttr dmxc::corsair::packedForms(Block *body, const hw::Machine &machine, const Distribution &deal,
                                          llvm::function_ref<bool(unsigned)> constant) {
  MLIRContext *context = body->getParentOp()->getContext();
  Builder b(context);
  NamedAttrList all;
  for (BlockArgument argument : body->getArguments()) {
    if (!constant(argument.getArgNumber()))
      continue;
    std::string key = std::to_string(argument.getArgNumber());
    if (becomesTiles(argument)) {
      Operation *user = *argument.getUsers().begin();
      auto matmul = dyn_cast<dmir::MatMulOp>(user);
      TileForm form = matmul ? productForm(matmul, machine, deal) : convForm(cast<dmir::ConvOp>(user), machine, deal);
      all.set(key, form.write(context));
      continue;
    }
    auto type = cast<RankedTensorType>(argument.getType());
    int64_t bytes = hw::elementBytes(*deviceKind(type.getElementType()));
    for (int64_t dim : type.getShape())
      bytes *= dim;
    all.set(key, b.getDictionaryAttr({b.getNamedAttr("form", b.getStringAttr(forms::kPlain)),
                                      b.getNamedAttr("size", b.getI64IntegerAttr(bytes))}));
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

/// Where row k of the matrix begins in the constant; -1 for rows of zeros.
static std::vector<int64_t> rowOffsets(const TileForm &form) {
  std::vector<int64_t> offsets(form.kChunks * 64 * (form.alongK ? form.quads : 1));
  for (size_t k = 0; k < offsets.size(); ++k) {
    int64_t rest = static_cast<int64_t>(k);
    if (rest % form.extents.back() >= form.valid) {
      offsets[k] = -1;
      continue;
    }
    for (size_t i = form.extents.size(); i-- > 0; rest /= form.extents[i])
      offsets[k] += rest % form.extents[i] * form.strides[i];
  }
  return offsets;
}

static Status packTiles(const TileForm &form, const Tensor &constant, std::span<std::byte> out) {
  const hw::TileShape shape = *hw::tileOf(hw::ElemKind::Bfp16C);
  const float *values = constant.as<float>();
  const std::vector<int64_t> offsets = rowOffsets(form);
  std::array<float, 64> run;
  std::byte *tile = out.data();
  for (int64_t quad = 0; quad < form.quads; ++quad) {
    const int64_t firstColumn = form.alongK ? 0 : quad * form.n, firstRow = form.alongK ? quad * form.kChunks * 64 : 0;
    for (int64_t slice = 0; slice < form.slices; ++slice)
      for (int64_t round = 0; round < form.rounds; ++round)
        for (int64_t group = 0; group < form.groups; ++group)
          for (int64_t chunk = 0; chunk < form.kChunks; ++chunk, tile += shape.bytes())
            for (int64_t column = 0; column < 64; ++column) {
              int64_t n = ((round * form.slices + slice) * form.groups + group) * 64 + column;
              for (int64_t i = 0; i < 64; ++i) {
                int64_t offset = offsets[firstRow + chunk * 64 + i];
                run[i] = n < form.n && offset >= 0 ? values[(firstColumn + n) * form.strideN + offset] : 0;
              }
              if (!hw::quantizeRun(shape, run.data(), hw::Rounding::Nearest, nullptr,
                                   tile + column * shape.scaleBytes() / 64,
                                   tile + shape.scaleBytes() + column * shape.runBytes()))
                return Error{ErrorKind::Internal, "a run of weights has no code"};
            }
  }
  return Status::ok();
}

Status dmxc::corsair::packConstant(DictionaryAttr form, const Tensor &constant, std::span<std::byte> out) {
  if (form.getAs<StringAttr>("form").getValue() == forms::kPlain)
    return packPlain(constant, out);
  return packTiles(TileForm::read(form), constant, out);
}
