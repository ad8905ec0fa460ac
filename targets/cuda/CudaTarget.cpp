//===- CudaTarget.cpp - the target's answers to the phases --------------------===//

#include "code/Hopper.h"
#include "code/LaunchTable.h"
#include "code/Ptx.h"

#include "targets/common/code/CompileQueue.h"
#include "targets/common/element/ElementExpr.h"
#include "targets/common/roots/Answers.h"

#include "dmxc/Target/TargetBackend.h"

#include "llvm/Support/FileSystem.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

namespace {

const KernelTable &table() {
  static const KernelTable table = [] {
    KernelTable roots;
    registerRoots(roots);
    return roots;
  }();
  return table;
}

class CudaTarget final : public TargetBackend {
public:
  explicit CudaTarget(TargetOptions options) : options(std::move(options)) {}

  StringRef name() const override { return "cuda"; }
  void registerDialects(DialectRegistry &registry) const override { registerKernelDialects(registry); }

  std::optional<std::string> refuses(Operation *op) const override;
  bool fusesProducer(Operation *root, OpOperand &use, Operation *producer) const override {
    return answers.fusesProducer(root, use, producer);
  }
  bool yieldsProducer(Operation *root, Operation *producer) const override {
    return answers.yieldsProducer(root, producer);
  }
  bool fusesConsumer(Operation *root, Value result, Operation *consumer) const override {
    return answers.fusesConsumer(root, result, consumer);
  }
  Result<DictionaryAttr> chooseStrategy(dmir::RegionOp region) const override {
    Result<KernelPlan> plan = table().plan(region.getBlock(), {Hopper::get(), {}});
    if (!plan)
      return plan.takeError();
    return answers.strategyOf(region, *plan);
  }
  Status pack(DictionaryAttr, const Tensor &, std::span<std::byte>) const override {
    return Error{ErrorKind::Internal, "the cuda target packs no constants"};
  }
  Result<std::vector<CodeEntry>> emit(ArrayRef<Operation *> kernels) const override;
  std::string describe() const override {
    return "cuda: PTX for NVIDIA GPUs of compute capability 9.0 (H100, H200), a thread an element\n"
           "  sm_90a: PTX 8.0; runs on a simulator where there is no such GPU\n";
  }

private:
  Result<CompiledKernel> compile(const std::string &text, MLIRContext &context) const;

  TargetOptions options;
  Answers answers{"cuda", table()};
};

std::optional<std::string> CudaTarget::refuses(Operation *op) const {
  // Neighbours that share a byte would be written by two threads.
  auto shares = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getElementType().isIntOrFloat() && isPacked(tensor.getElementType());
  };
  if (llvm::any_of(op->getOperandTypes(), shares) || llvm::any_of(op->getResultTypes(), shares))
    return "the cuda target has no kernels for elements of fewer than 8 bits";
  return answers.refuses(op);
}

Result<CompiledKernel> CudaTarget::compile(const std::string &text, MLIRContext &context) const {
  Result<ParsedKernel> source = parseKernel(text, context);
  if (!source)
    return source.takeError();
  dlir::KernelOp kernel = source->kernel;
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  auto contract = table().emit(*module, kernel, {Hopper::get(), kernel.getStrategy()}, Hopper::get());
  if (!contract)
    return contract.takeError();
  CompiledKernel compiled = describeLaunch(kernel, std::move(*contract));
  PtxOptions ptx{static_cast<unsigned>(options.optLevel), compiled.block, options.saveTempsDir};
  Result<std::string> code = compileKernel(*module, ptx);
  if (!code)
    return code.takeError();
  compiled.ptx = std::move(*code);
  return compiled;
}

Result<std::vector<CodeEntry>> CudaTarget::emit(ArrayRef<Operation *> kernels) const {
  if (kernels.empty())
    return std::vector<CodeEntry>();
  if (!options.saveTempsDir.empty())
    if (std::error_code failed = llvm::sys::fs::create_directories(options.saveTempsDir))
      return ioError("cannot make the folder '" + options.saveTempsDir + "': " + failed.message());
  std::vector<std::string> texts, names;
  for (Operation *kernel : kernels) {
    texts.push_back(kernelText(kernel));
    names.push_back(SymbolTable::getSymbolName(kernel).str());
  }
  auto compiled = compileAll<CompiledKernel>(
      names, options.jobs, [&](size_t i, MLIRContext &context) { return compile(texts[i], context); });
  if (!compiled)
    return compiled.takeError();
  std::string text = launchTable(*compiled) + ptxHeader();
  for (const CompiledKernel &kernel : *compiled)
    text += kernel.ptx;
  return std::vector<CodeEntry>{
      {"code/cuda/sm_90a/kernels.ptx", "sm_90a", {}, std::vector<char>(text.begin(), text.end())}};
}

} // namespace

namespace dmxc {
Result<std::unique_ptr<TargetBackend>> createCudaTarget(const TargetOptions &options) {
  for (const std::string &level : options.levels)
    if (level != "sm_90a")
      return usageError(
          "the cuda target has no level '" + level + "'; it has sm_90a" +
          (StringRef(level).starts_with("sm_90") || level == "hopper" ? "; did you mean cuda:sm_90a?" : ""));
  if (!options.numerics.empty() && options.numerics != "strict")
    return usageError("the cuda target has no numerics mode '" + options.numerics + "'; it has strict");
  return std::unique_ptr<TargetBackend>(new CudaTarget(options));
}
} // namespace dmxc
