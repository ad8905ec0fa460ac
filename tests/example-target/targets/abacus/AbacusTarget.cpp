//===- AbacusTarget.cpp - the target's answers to the phases --------------===//
#include "Abacus.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Target/TargetBackend.h"
#include "targets/common/queues/QueueCode.h"

using namespace mlir;
using namespace dmxc;

namespace {

class AbacusTarget final : public TargetBackend {
public:
  StringRef name() const override { return "abacus"; }
  void registerDialects(DialectRegistry &registry) const override { abacus::registerDevice(registry); }

  std::optional<std::string> refuses(Operation *op) const override {
    auto product = dyn_cast<dmir::MatMulOp>(op);
    if (!product)
      return "the abacus only multiplies matrices";
    const kernels::Contraction matrices(product);
    bool fixed = matrices.batchDims.empty();
    for (Dim size : {matrices.m, matrices.n, matrices.k})
      fixed &= size.valueOr(0) > 0;
    for (Value value : {product.getLhs(), product.getRhs(), product.getResult()}) {
      auto type = cast<RankedTensorType>(value.getType());
      if (!fixed || !type.getElementType().isF32() || !type.hasStaticShape())
        return "the abacus multiplies matrices of f32 with fixed sizes";
      if (dmir::isConstant(value) && type.getNumElements() == 1) // it would be part of the kernel
        return "the abacus has no numbers in its programs";
    }
    if (product.getLhs() == product.getRhs())
      return "the abacus multiplies two matrices, not one with itself";
    if (abacus::bytesInDram(matrices) > dmx::abacus::kMemories[0].size)
      return "the matrices do not fit the DRAM of the abacus";
    return std::nullopt;
  }
  bool fusesProducer(Operation *, OpOperand &, Operation *) const override { return false; }
  bool fusesConsumer(Operation *, Value, Operation *) const override { return false; }

  /// What a schedule may decide. Results do not depend on one another: either order gives the same bits.
  std::vector<Decision> decisions(dmir::RegionOp region, DictionaryAttr) const override {
    auto product = dyn_cast<dmir::MatMulOp>(region.getBlock()->front());
    if (!product || !abacus::hasOrders(kernels::Contraction(product)))
      return {};
    Builder b(region.getContext());
    Attribute rows = b.getStringAttr("rows"), columns = b.getStringAttr("columns");
    return {
        {abacus::kOrder.str(), "", Domain::oneOf({rows, columns}), rows, Effect::Bits, "what the outer loop is over"}};
  }

  Result<DictionaryAttr> chooseStrategy(dmir::RegionOp region) const override {
    auto product = dyn_cast<dmir::MatMulOp>(region.getBlock()->front());
    if (!product || region.getBlock()->getOperations().size() != 2)
      return Error{ErrorKind::Model, "a region of the abacus is one product"};
    const kernels::Contraction sizes(product);
    int64_t m = *sizes.m.known(), n = *sizes.n.known(), k = *sizes.k.known();
    Builder b(region.getContext());
    NamedAttrList list;
    list.set(strategy::kAlgorithm, b.getStringAttr("tiles of 16 x 16"));
    DictionaryAttr given = region.getStrategyAttr();
    auto decided = given ? given.getAs<DictionaryAttr>(strategy::kDecided) : given; // checked
    Attribute order = decided ? decided.get(abacus::kOrder) : Attribute();
    list.set(abacus::kOrder, order ? order : b.getStringAttr("rows"));
    const std::pair<StringRef, int64_t> figures[] = {{strategy::kWork, 1},
                                                     {strategy::kGrain, 1},
                                                     {strategy::kScratch, 0},
                                                     {strategy::kFlops, 2 * m * n * k},
                                                     {strategy::kBytes, 4 * (m * k + k * n + m * n)}};
    for (auto [key, value] : figures)
      list.set(key, b.getI64IntegerAttr(value));
    return list.getDictionary(region.getContext());
  }

  Status pack(DictionaryAttr, const Tensor &, std::span<std::byte>) const override {
    return Error{ErrorKind::Internal, "the abacus packs no constants"};
  }

  Status schedule(ArrayRef<Operation *> kernels) const override {
    for (Operation *kernel : kernels) {
      abacus::writeProgram(cast<dlir::KernelOp>(kernel)); // there are no stages that make something else of it
      kernel->erase();
    }
    return Status::ok();
  }

  Result<std::vector<CodeEntry>> emit(ArrayRef<Operation *> kernels) const override {
    Result<std::vector<char>> code = encodeQueues(kernels, dmx::abacus::kMachine);
    if (!code)
      return code.takeError();
    return std::vector<CodeEntry>{{"code/abacus/abacus/kernels.queues", "abacus", {}, std::move(*code)}};
  }

  std::string describe() const override { return "DRAM 256 MiB, SRAM 16 KiB, an engine for tiles of 16 x 16 f32\n"; }
};

} // namespace

namespace dmxc {
Result<std::unique_ptr<TargetBackend>> createAbacusTarget(const TargetOptions &options) {
  if (!options.levels.empty())
    return usageError("'" + options.levels.front() + "' is no option of the abacus target; it takes none");
  if (!options.numerics.empty())
    return usageError("the abacus target has no numerics mode '" + options.numerics + "'");
  return std::unique_ptr<TargetBackend>(new AbacusTarget);
}
} // namespace dmxc
