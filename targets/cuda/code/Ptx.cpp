//===- Ptx.cpp - a kernel module to PTX ---------------------------------------===//

#include "Ptx.h"

#include "targets/common/code/KernelDialects.h"
#include "targets/common/code/SaveTemps.h"

#include "dmxc/Support/ShellWord.h"

#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace dmxc;
using namespace dmxc::cuda;
using namespace mlir;

static Error internalError(const llvm::Twine &message) { return {ErrorKind::Internal, message.str()}; }

static constexpr StringLiteral kHeader = ".version 8.0\n.target sm_90a\n.address_size 64\n";

static constexpr StringLiteral kProcessor = "sm_90a", kFeatures = "+ptx80";

std::string dmxc::cuda::ptxCommands(const std::string &folder, const std::string &kernel, unsigned optLevel) {
  const std::string stem = folder + "/" + kernel;
  std::string lines = std::string(DMXC_LLVM_TOOLS) + "/llc -O" + (optLevel == 0 ? "0" : "3") +
                      " -mcpu=" + kProcessor.str() + " -mattr=" + kFeatures.str() + " " + shellWord(stem + ".ll") +
                      " -o " + shellWord(stem + ".ptx") + "\n";
  if (llvm::ErrorOr<std::string> assembler = llvm::sys::findProgramByName("ptxas"))
    lines += shellWord(*assembler) + " -arch=" + kProcessor.str() + " " + shellWord(stem + ".ptx") + " -o " +
             shellWord(stem + ".cubin") + "\n";
  return lines;
}

std::string dmxc::cuda::ptxHeader(unsigned version) {
  return (".version " + llvm::Twine(version / 10) + "." + llvm::Twine(version % 10) +
          kHeader.substr(kHeader.find('\n')))
      .str();
}

static Result<std::unique_ptr<llvm::TargetMachine>> makeTargetMachine(unsigned optLevel) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string message;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return internalError("this LLVM has no back end for PTX: " + message);
  // The oldest PTX that has sm_90a: the driver may be older than this compiler.
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, kProcessor, kFeatures, {}, std::nullopt, std::nullopt,
                                  optLevel == 0 ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Aggressive));
  if (!machine)
    return internalError("LLVM made no target machine for sm_90a");
  return machine;
}

static void optimize(llvm::Module &module, llvm::TargetMachine &machine, unsigned optLevel) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopInterleaving = tuning.LoopVectorization = tuning.SLPVectorization = false;
  tuning.LoopUnrolling = false;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  const llvm::OptimizationLevel levels[] = {llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1,
                                            llvm::OptimizationLevel::O2, llvm::OptimizationLevel::O3};
  llvm::OptimizationLevel level = levels[std::min(optLevel, 3u)];
  llvm::ModulePassManager passes =
      optLevel == 0 ? builder.buildO0DefaultPipeline(level) : builder.buildPerModuleDefaultPipeline(level);
  passes.run(module, modules);
}

/// Makes functions entries of the grid and names apart from those of other kernels.
static void finishModule(llvm::Module &module, StringRef kernel, const PtxOptions &options) {
  for (llvm::Function &fn : module)
    if (!fn.isDeclaration()) {
      fn.setCallingConv(llvm::CallingConv::PTX_Kernel);
      fn.addFnAttr(llvm::Attribute::NoUnwind);
      fn.addFnAttr("no-builtins");
      fn.addFnAttr("nvvm.reqntid", std::to_string(options.block));
      if (options.cluster > 1)
        fn.addFnAttr("nvvm.cluster_dim", std::to_string(options.cluster));
      // Without it ptxas sees no cap of registers at the entry, and ignores who takes and gives.
      if (options.movesRegisters)
        fn.addFnAttr("nvvm.minctasm", "1");
      for (llvm::Argument &argument : fn.args())
        if (argument.hasByValAttr())
          argument.addAttr(llvm::Attribute::get(module.getContext(), "nvvm.grid_constant"));
    }
  constexpr unsigned sharedSpace = 3;
  for (auto [i, global] : llvm::enumerate(module.globals()))
    global.setName(global.getAddressSpace() == sharedSpace ? kernel + "_shared" : kernel + "_table" + llvm::Twine(i));
}

Result<std::string> dmxc::cuda::assemble(llvm::Module &module, const std::string &kernel, const PtxOptions &options) {
  auto machine = makeTargetMachine(options.optLevel);
  if (!machine)
    return machine.takeError();
  module.setTargetTriple((*machine)->getTargetTriple());
  module.setDataLayout((*machine)->createDataLayout());
  optimize(module, **machine, options.optLevel);
  if (Status s = saveTemp(options.saveTempsDir, kernel + ".ll", [&](auto &out) { module.print(out, nullptr); }); !s)
    return s.takeError();
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
    return internalError("LLVM's back end for PTX cannot emit text");
  passes.run(module);
  return bytes.str().str();
}

/// What stands behind the header that LLVM writes.
static Result<std::string> behindHeader(StringRef whole, StringRef kernel) {
  auto [before, text] = whole.split(kHeader);
  if (text.empty())
    return internalError("kernel '" + kernel + "': the PTX has another header than " + kHeader);
  if (text.contains(".extern .func") || text.contains("\tcall"))
    return internalError("kernel '" + kernel + "' would call a function:\n" + text);
  return ("\n" + text.trim() + "\n").str();
}

/// Instructions of the nvvm dialect that are inline assembly in LLVM IR.
static LogicalResult lowerInstructions(ModuleOp module) {
  PassManager passes(module.getContext());
  passes.addPass(createConvertNVVMToLLVMPass());
  return passes.run(module);
}

void dmxc::cuda::loadInstructions(MLIRContext &context) {
  DialectRegistry registry;
  registry.insert<NVVM::NVVMDialect>();
  registerNVVMDialectTranslation(registry);
  context.appendDialectRegistry(registry);
  context.loadDialect<NVVM::NVVMDialect>();
}

Result<std::string> dmxc::cuda::compileKernel(ModuleOp module, const PtxOptions &options) {
  auto functions = module.getOps<func::FuncOp>();
  if (!llvm::hasSingleElement(functions))
    return internalError("a module of other than one kernel");
  std::string name = (*functions.begin()).getName().str();
  if (failed(mlir::verify(module)))
    return internalError("kernel '" + name + "': invalid IR was emitted");
  if (Status s = saveTemp(options.saveTempsDir, name + ".mlir", [&](auto &out) { module.print(out); }); !s)
    return s.takeError();
  if (failed(kernels::lowerToLLVMDialect(module, {.half = true, .roundsToBf16 = true})))
    return internalError("kernel '" + name + "': lowering to LLVM failed");
  if (failed(lowerInstructions(module)))
    return internalError("kernel '" + name + "': lowering of GPU instructions failed");
  llvm::LLVMContext context;
  auto llvmModule = translateModuleToLLVMIR(module, context, name);
  if (!llvmModule)
    return internalError("kernel '" + name + "': translation to LLVM IR failed");
  finishModule(*llvmModule, name, options);
  Result<std::string> whole = assemble(*llvmModule, name, options);
  if (!whole)
    return whole;
  Result<std::string> text = behindHeader(*whole, name);
  if (text)
    if (Status s = saveTemp(options.saveTempsDir, name + ".ptx", [&](auto &out) { out << ptxHeader() << *text; }); !s)
      return s.takeError();
  return text;
}
