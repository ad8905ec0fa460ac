//===- UserModule.cpp - functions in MLIR that users wrote -----------------===//
//
// What upstream's lowering leaves to be done is done here; targets/cuda/README.md has why, "Kernels in MLIR".
//
//===----------------------------------------------------------------------===//

#include "UserModule.h"
#include "UserSignature.h"

#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

void dmxc::cuda::registerTextDialects(DialectRegistry &registry) {
  registry.insert<affine::AffineDialect, gpu::GPUDialect, index::IndexDialect, memref::MemRefDialect,
                  nvgpu::NVGPUDialect, NVVM::NVVMDialect>();
}

bool dmxc::cuda::isModule(const UserText &from) { return StringRef(from.file).ends_with(".mlir"); }

namespace {

/// Keeps the first error that is said of a context's ops, with its place.
class FirstError {
public:
  explicit FirstError(MLIRContext &context)
      : handler(&context, [this](mlir::Diagnostic &said) {
          if (said.getSeverity() != DiagnosticSeverity::Error || !text.empty())
            return success(said.getSeverity() != DiagnosticSeverity::Error || !text.empty());
          if (auto place = said.getLocation()->findInstanceOf<FileLineColLoc>())
            text = (place.getFilename().getValue() + ":" + Twine(place.getLine()) + ": ").str();
          text += said.str();
          return success();
        }) {}
  std::string text;

private:
  ScopedDiagnosticHandler handler;
};

void loadAll(MLIRContext &context) {
  DialectRegistry registry;
  registerTextDialects(registry);
  registerNVVMDialectTranslation(registry);
  registerGPUDialectTranslation(registry);
  arith::registerConvertArithToLLVMInterface(registry);
  cf::registerConvertControlFlowToLLVMInterface(registry);
  registerConvertFuncToLLVMInterface(registry);
  index::registerConvertIndexToLLVMInterface(registry);
  registerConvertMathToLLVMInterface(registry);
  registerConvertMemRefToLLVMInterface(registry);
  registerConvertNVVMToLLVMInterface(registry);
  ub::registerConvertUBToLLVMInterface(registry);
  vector::registerConvertVectorToLLVMInterface(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
}

/// The one function of the name, wherever it stands.
Result<FunctionOpInterface> functionOf(ModuleOp module, const UserText &from) {
  SmallVector<FunctionOpInterface> found;
  std::string others;
  module.walk([&](FunctionOpInterface function) {
    if (function.isExternal())
      return;
    if (function.getName() == from.symbol)
      found.push_back(function);
    else
      others += (others.empty() ? "" : ", ") + function.getName().str();
  });
  if (found.size() == 1 && isa<func::FuncOp, gpu::GPUFuncOp, LLVM::LLVMFuncOp>(found[0]))
    return found[0];
  return from.refusal(found.empty()
                          ? "it has no function '" + from.symbol + "'" + (others.empty() ? "" : "; it has " + others)
                          : "it has no single func.func, gpu.func or llvm.func '" + from.symbol + "'");
}

/// A kernel of gpu.func in the place of a func.func.
void makeKernel(func::FuncOp function) {
  OpBuilder b(function);
  auto kernel = gpu::GPUFuncOp::create(b, function.getLoc(), function.getName(), function.getFunctionType());
  kernel.getBody().takeBody(function.getBody());
  kernel.walk([](func::ReturnOp back) {
    OpBuilder(back).create<gpu::ReturnOp>(back.getLoc());
    back.erase();
  });
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  function.erase();
}

/// Maps come as addresses.
void takeMaps(FunctionOpInterface function) {
  Type pointer = LLVM::LLVMPointerType::get(function.getContext());
  OpBuilder b(function.getContext());
  Block &entry = function.getFunctionBody().front();
  b.setInsertionPointToStart(&entry);
  for (BlockArgument argument : entry.getArguments()) {
    Type type = argument.getType();
    if (!isa<nvgpu::TensorMapDescriptorType>(type))
      continue;
    argument.setType(pointer);
    auto seen = UnrealizedConversionCastOp::create(b, argument.getLoc(), type, ValueRange(argument));
    argument.replaceAllUsesExcept(seen.getResult(0), seen);
  }
  if (!isa<LLVM::LLVMFuncOp>(function.getOperation()))
    function.setType(FunctionType::get(function.getContext(), entry.getArgumentTypes(), {}));
}

/// Functions of the device library that a GPU has instructions for.
void replaceMath(Operation *root) {
  root->walk([](Operation *op) {
    StringRef function = isa<math::FmaOp>(op)    ? "llvm.fma"
                         : isa<math::SqrtOp>(op) ? "llvm.sqrt"
                         : isa<math::AbsFOp>(op) ? "llvm.fabs"
                                                 : "";
    if (function.empty())
      return;
    OpBuilder b(op);
    auto made = LLVM::CallIntrinsicOp::create(b, op->getLoc(), op->getResult(0).getType(), b.getStringAttr(function),
                                              op->getOperands());
    op->replaceAllUsesWith(made);
    op->erase();
  });
}

/// The text's module as one gpu.module.
OwningOpRef<ModuleOp> wrapped(ModuleOp module, FunctionOpInterface function) {
  OwningOpRef<ModuleOp> whole = ModuleOp::create(module.getLoc());
  if (auto inside = function->getParentOfType<gpu::GPUModuleOp>()) {
    inside->moveBefore(whole->getBody(), whole->getBody()->end());
    return whole;
  }
  OpBuilder b = OpBuilder::atBlockEnd(whole->getBody());
  auto inner = gpu::GPUModuleOp::create(b, module.getLoc(), "user");
  Block *from = function->getBlock();
  inner.getBody()->getOperations().splice(inner.getBody()->begin(), from->getOperations());
  return whole;
}

/// Assembly that passes sums through.
Value passed(OpBuilder &b, Location place, Value sums, StringRef instruction) {
  auto type = cast<LLVM::LLVMStructType>(sums.getType());
  SmallVector<Value> each;
  std::string outputs, inputs;
  for (auto [i, part] : llvm::enumerate(type.getBody())) {
    each.push_back(LLVM::ExtractValueOp::create(b, place, sums, ArrayRef<int64_t>(static_cast<int64_t>(i))));
    outputs += part.isF32() ? "=f," : "=r,";
    inputs += std::to_string(i) + ",";
  }
  return LLVM::InlineAsmOp::create(b, place, type, each, instruction, outputs + inputs + "~{memory}",
                                   /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::TailCallKind::None,
                                   LLVM::AsmDialectAttr(), ArrayAttr())
      .getRes();
}

/// Puts what a value is made of in front of an op of its block. False where a product gives it, or memory.
bool hoist(Value value, Operation *front) {
  Operation *made = value.getDefiningOp();
  if (!made || made->getBlock() != front->getBlock() || made->isBeforeInBlock(front))
    return true;
  if (!isMemoryEffectFree(made) || isa<NVVM::WgmmaMmaAsyncOp>(made) ||
      !llvm::all_of(made->getOperands(), [&](Value operand) { return hoist(operand, front); }))
    return false;
  made->moveBefore(front);
  return true;
}

/// LLVM does not know that products write registers later than they stand, and puts values into these between the fence
/// and the first product: what passes the sums through keeps them in front of it.
void passThroughFences(Operation *root) {
  root->walk([](NVVM::WgmmaFenceAlignedOp fence) {
    OpBuilder b(fence);
    bool isPassed = false;
    for (Operation *op = fence->getNextNode(); op && !isa<NVVM::WgmmaGroupSyncAlignedOp>(op); op = op->getNextNode()) {
      auto product = dyn_cast<NVVM::WgmmaMmaAsyncOp>(op);
      if (!product || !isa<LLVM::LLVMStructType>(product.getInouts().getType()) || !hoist(product.getInouts(), fence))
        continue;
      Value sums = passed(b, fence.getLoc(), product.getInouts(), "wgmma.fence.sync.aligned;");
      product.getInoutsMutable().assign(sums);
      isPassed = true;
    }
    if (isPassed)
      fence.erase();
  });
}

LogicalResult lower(ModuleOp module) {
  PassManager first(module.getContext(), ModuleOp::getOperationName());
  first.nest<gpu::GPUModuleOp>().addPass(createConvertNVGPUToNVVMPass());
  if (failed(first.run(module)))
    return failure();
  passThroughFences(module);
  PassManager passes(module.getContext(), ModuleOp::getOperationName());
  OpPassManager &inner = passes.nest<gpu::GPUModuleOp>();
  inner.addPass(createConvertVectorToSCFPass());
  inner.addPass(createSCFToControlFlowPass());
  inner.addPass(createConvertNVVMToLLVMPass());
  inner.addPass(memref::createExpandStridedMetadataPass());
  inner.addPass(createLowerAffinePass());
  ConvertGpuOpsToNVVMOpsOptions options;
  options.useBarePtrCallConv = true;
  inner.addPass(createConvertGpuOpsToNVVMOps(options));
  inner.addPass(createCanonicalizerPass());
  inner.addPass(createCSEPass());
  inner.addPass(createReconcileUnrealizedCastsPass());
  return passes.run(module);
}

/// Loops stay as they are written: peeled, they wait for each wgmma. What cf.br had of it is no attribute of llvm.br.
void keepLoops(Operation *root) {
  root->walk([](Operation *op) {
    auto kept = op->getAttrOfType<LLVM::LoopAnnotationAttr>("llvm.loop_annotation");
    if (auto branch = dyn_cast<LLVM::BrOp>(op); branch && kept)
      branch.setLoopAnnotationAttr(kept);
    if (auto branch = dyn_cast<LLVM::CondBrOp>(op); branch && kept)
      branch.setLoopAnnotationAttr(kept);
    op->removeAttr("llvm.loop_annotation");
  });
}

void finishArguments(LLVM::LLVMFuncOp kernel, int64_t buffers, int64_t maps) {
  OpBuilder b(kernel);
  constexpr int64_t bytes = 128, alignment = 64;
  unsigned count = kernel.getNumArguments();
  for (unsigned i = count - static_cast<unsigned>(maps); i < count; ++i) {
    kernel.setArgAttr(i, LLVM::LLVMDialect::getByValAttrName(),
                      TypeAttr::get(LLVM::LLVMArrayType::get(b.getI8Type(), bytes)));
    kernel.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(alignment));
    kernel.setArgAttr(i, NVVM::NVVMDialect::getGridConstantAttrName(), b.getUnitAttr());
  }
  for (unsigned i = 0; i < buffers; ++i)
    if (isa<LLVM::LLVMPointerType>(kernel.getArgument(i).getType()))
      kernel.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(), b.getUnitAttr());
}

/// What upstream's passes leave to us. The kernel is then in a module of its own.
Result<OwningOpRef<ModuleOp>> finished(ModuleOp lowered, const UserText &from, int64_t buffers, int64_t maps,
                                       const PtxOptions &options) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(lowered.getLoc());
  auto inner = *lowered.getOps<gpu::GPUModuleOp>().begin();
  module->getBody()->getOperations().splice(module->getBody()->begin(), inner.getBody()->getOperations());
  for (auto global : module->getOps<LLVM::GlobalOp>())
    if (global.getSymName().starts_with("__dynamic_shmem__")) {
      // Of what is internal and of no size the assembler makes a byte, and puts other variables into the first tile.
      global.setLinkage(LLVM::Linkage::External);
      global.setAlignment(1024);
    }
  for (auto function : llvm::make_early_inc_range(module->getOps<LLVM::LLVMFuncOp>()))
    if (!function.isExternal() && function.getName() != from.symbol)
      return from.refusal("it has the function '" + function.getName().str() + "' beside '" + from.symbol +
                          "', and no functions are called here: inline it");
  auto kernel = module->lookupSymbol<LLVM::LLVMFuncOp>(from.symbol);
  OpBuilder b(kernel);
  kernel->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), b.getUnitAttr());
  kernel.setLinkage(LLVM::Linkage::External);
  for (StringRef known : {NVVM::NVVMDialect::getMaxntidAttrName(), NVVM::NVVMDialect::getReqntidAttrName()})
    kernel->removeAttr(known);
  kernel->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                  b.getDenseI32ArrayAttr({static_cast<int32_t>(options.block), 1, 1}));
  // Without it the assembler sees no cap of registers at the entry, and ignores who takes and gives.
  if (kernel.walk([](NVVM::SetMaxRegisterOp) { return WalkResult::interrupt(); }).wasInterrupted())
    kernel->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), b.getI32IntegerAttr(1));
  finishArguments(kernel, buffers, maps);
  keepLoops(*module);
  PassManager passes(module->getContext());
  LLVM::DIScopeForLLVMFuncOpPassOptions places;
  places.emissionKind = LLVM::DIEmissionKind::DebugDirectivesOnly;
  passes.addPass(LLVM::createDIScopeForLLVMFuncOpPass(places));
  if (failed(passes.run(*module)))
    return from.refusal("places in sources could not be noted");
  return module;
}

} // namespace

Result<std::string> dmxc::cuda::lowerModule(const UserText &from, dmir::ExternOp op, int64_t maps,
                                            const PtxOptions &options) {
  MLIRContext &context = *op.getContext();
  loadAll(context);
  FirstError said(context);
  auto refused = [&](const std::string &otherwise) { return from.refusal(said.text.empty() ? otherwise : said.text); };
  OwningOpRef<ModuleOp> text = parseSourceString<ModuleOp>(from.text, ParserConfig(&context), from.file);
  if (!text)
    return refused("it is no MLIR text");
  Result<FunctionOpInterface> found = functionOf(*text, from);
  if (!found)
    return found.takeError();
  if (Status fits = checkSignature(from, *found, op, maps); !fits)
    return fits.takeError();
  if (Status known = checkTraps(from, *found, options.block); !known)
    return known.takeError();
  takeMaps(*found);
  replaceMath(*found);
  OwningOpRef<ModuleOp> whole = wrapped(*text, *found);
  if (auto function = dyn_cast<func::FuncOp>(found->getOperation()))
    makeKernel(function);
  else if (auto function = dyn_cast<gpu::GPUFuncOp>(found->getOperation()))
    function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), UnitAttr::get(&context));
  if (failed(lower(*whole)))
    return refused("upstream's passes do not lower it");
  int64_t buffers = int64_t(op.getNumOperands()) + int64_t(op.getNumResults());
  Result<OwningOpRef<ModuleOp>> module = finished(*whole, from, buffers, maps, options);
  if (!module)
    return module.takeError();
  llvm::LLVMContext llvmContext;
  auto llvmModule = translateModuleToLLVMIR(**module, llvmContext, from.symbol);
  if (!llvmModule)
    return refused("what upstream's passes make of it is no LLVM IR");
  return assemble(*llvmModule, from.symbol, options);
}
