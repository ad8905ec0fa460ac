//===- Lowering.cpp - a kernel module to an object file ------------------===//

#include "Lowering.h"

#include "targets/common/code/KernelDialects.h"
#include "targets/common/code/SaveTemps.h"
#include "targets/cpu/user/Messages.h"
#include "targets/cpu/user/Trial.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/CodeGen/CodeGenTargetMachineImpl.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <mutex>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

static Error internalError(const llvm::Twine &message) { return {ErrorKind::Internal, message.str()}; }

//===----------------------------------------------------------------------===//
// Target machine and code generation
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<llvm::TargetMachine>> dmxc::cpu::makeTargetMachine(const IsaLevel &isa, unsigned optLevel) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser(); // CpuBuilder::opaque is inline assembly
  });
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string message;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return internalError("LLVM has no x86-64 back end: " + message);
  llvm::TargetOptions options;
  options.EmitAddrsig = false;
  options.MCOptions.AsmVerbose = true; // shows spills in saved assembly
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, isa.cpu, isa.features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                  optLevel == 0 ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Aggressive));
  if (!machine)
    return internalError("LLVM made no target machine for " + isa.name);
  return machine;
}

std::string dmxc::cpu::pipelineOf(unsigned optLevel, bool inlines) {
  if (optLevel == 0 || optLevel > 2 || inlines)
    return "default<O" + std::to_string(optLevel) + ">";
  // What the emitters and MLIR leave: addresses to be put in LLVM's forms, loops to be turned so that they test at
  // their end, and what then no longer changes in them. Code generation reduces loops' strengths. All of O2 takes four
  // times as long.
  return "function(early-cse,simplifycfg,instcombine<no-verify-fixpoint>,loop-mssa(loop-rotate,licm),"
         "instcombine<no-verify-fixpoint>,simplifycfg)";
}

/// LLVM 22's x86 back end joins a truncation with a masked store, and a store with one lane on then
/// writes the whole wide element: memory beyond it is overwritten. Such stores become scalar here.
/// True where there is one.
static bool scalarizeSingleLaneStores(llvm::Module &module) {
  llvm::SmallVector<llvm::CallInst *> stores;
  for (llvm::Function &fn : module)
    if (fn.getIntrinsicID() == llvm::Intrinsic::masked_store)
      for (llvm::User *user : fn.users())
        stores.push_back(llvm::cast<llvm::CallInst>(user));
  bool changed = false;
  for (llvm::CallInst *store : stores) {
    auto *mask = llvm::dyn_cast<llvm::Constant>(store->getArgOperand(2));
    auto *type = llvm::cast<llvm::FixedVectorType>(store->getArgOperand(0)->getType());
    llvm::SmallVector<unsigned> on;
    for (unsigned lane = 0; mask && lane < type->getNumElements(); ++lane)
      if (llvm::Constant *bit = mask->getAggregateElement(lane); !bit || !bit->isNullValue())
        on.push_back(lane);
    if (on.size() != 1)
      continue;
    llvm::IRBuilder<> b(store);
    llvm::Value *pointer = b.CreateConstGEP1_64(type->getElementType(), store->getArgOperand(1), on[0]);
    b.CreateAlignedStore(b.CreateExtractElement(store->getArgOperand(0), on[0]), pointer, llvm::Align(1));
    store->eraseFromParent();
    changed = true;
  }
  return changed;
}

/// As optimiseCommand in Commands.cpp has it, and what follows it, which says whether it changed something.
static bool optimize(llvm::Module &module, llvm::TargetMachine &machine, const std::string &pipeline) {
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
  llvm::ModulePassManager passes;
  llvm::cantFail(builder.parsePassPipeline(passes, pipeline));
  passes.run(module, modules);
  return scalarizeSingleLaneStores(module);
}

/// As addPassesToEmitFile, without the machine scheduler: the emitters have put the
/// instructions of register tiles in an order that fits the registers, and its idea
/// of hiding latencies (an out-of-order core's business) made them spill.
static bool addCodeGenPasses(llvm::legacy::PassManager &passes, llvm::TargetMachine &machine,
                             llvm::raw_pwrite_stream &out, llvm::CodeGenFileType type) {
  auto &codegen = static_cast<llvm::CodeGenTargetMachineImpl &>(machine);
  auto *info = new llvm::MachineModuleInfoWrapperPass(&codegen);
  llvm::TargetPassConfig *config = codegen.createPassConfig(passes);
  config->disablePass(&llvm::MachineSchedulerID);
  config->setDisableVerify(true); // translation has verified the module
  passes.add(config);
  passes.add(info);
  if (config->addISelPasses())
    return false;
  config->addMachinePasses();
  config->setInitialized();
  if (codegen.addAsmPrinter(passes, out, nullptr, type, info->getMMI().getContext()))
    return false;
  passes.add(llvm::createFreeMachineFunctionPass());
  return true;
}

static Result<std::vector<char>> generate(llvm::Module &module, llvm::TargetMachine &machine,
                                          llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (!addCodeGenPasses(passes, machine, stream, type))
    return internalError("LLVM's x86-64 back end cannot emit this kind of file");
  passes.run(module);
  return std::vector<char>(bytes.begin(), bytes.end());
}

Result<std::vector<char>> dmxc::cpu::emitObject(llvm::Module &module, llvm::TargetMachine &machine, unsigned optLevel) {
  module.setTargetTriple(machine.getTargetTriple());
  module.setDataLayout(machine.createDataLayout());
  optimize(module, machine, pipelineOf(optLevel));
  return generate(module, machine, llvm::CodeGenFileType::ObjectFile);
}

//===----------------------------------------------------------------------===//
// MLIR -> LLVM IR
//===----------------------------------------------------------------------===//

/// Kernels are hidden, their bodies internal and out of line (so that LLVM
/// keeps their noalias arguments); nothing may be turned into a call of a
/// library function.
static void setAttributes(llvm::Module &module, const IsaLevel &isa, const llvm::StringSet<> &internal) {
  for (llvm::Function &fn : module) {
    if (fn.isDeclaration())
      continue;
    if (internal.contains(fn.getName())) {
      fn.setLinkage(llvm::GlobalValue::InternalLinkage);
      fn.addFnAttr(llvm::Attribute::NoInline);
    } else if (!fn.hasLocalLinkage()) {
      fn.setVisibility(llvm::GlobalValue::HiddenVisibility);
    }
    fn.setDSOLocal(true);
    fn.addFnAttr(llvm::Attribute::NoUnwind);
    fn.addFnAttr("no-builtins");
    fn.addFnAttr("target-cpu", isa.cpu);
    if (!isa.features.empty())
      fn.addFnAttr("target-features", isa.features);
    fn.addFnAttr("prefer-vector-width", std::to_string(isa.vectorBytes * 8));
  }
}

/// With the order of uses, which text has not and which what LLVM makes of a module depends on.
static Status saveBitcode(llvm::Module &module, const std::string &dir, const std::string &name) {
  return saveTemp(dir, name,
                  [&](auto &out) { llvm::WriteBitcodeToFile(module, out, /*ShouldPreserveUseListOrder=*/true); });
}

static Status saveLLVM(llvm::Module &module, llvm::TargetMachine &machine, const std::string &dir,
                       const std::string &name) {
  if (Status s = saveTemp(dir, name + ".ll", [&](auto &out) { module.print(out, nullptr); }); !s)
    return s;
  if (Status s = saveBitcode(module, dir, name + ".bc"); !s)
    return s;
  auto copy = llvm::CloneModule(module); // code generation changes the module
  auto text = generate(*copy, machine, llvm::CodeGenFileType::AssemblyFile);
  if (!text)
    return text.takeError();
  return saveTemp(dir, name + ".s", [&](auto &out) { out.write(text->data(), text->size()); });
}

Result<std::vector<std::string>> dmxc::cpu::undefinedSymbols(const std::vector<char> &elf, bool dynamic) {
  llvm::MemoryBufferRef ref(llvm::StringRef(elf.data(), elf.size()), "kernels");
  auto file = llvm::object::ObjectFile::createELFObjectFile(ref);
  if (!file)
    return internalError("unreadable ELF: " + llvm::toString(file.takeError()));
  std::vector<std::string> names;
  auto &object = llvm::cast<llvm::object::ELFObjectFileBase>(**file);
  auto collect = [&](auto range) {
    for (const llvm::object::SymbolRef &symbol : range) {
      auto flags = symbol.getFlags();
      auto name = symbol.getName();
      bool undefined = flags && (*flags & llvm::object::SymbolRef::SF_Undefined);
      if (!flags)
        llvm::consumeError(flags.takeError());
      if (!name)
        llvm::consumeError(name.takeError());
      else if (undefined && !name->empty())
        names.push_back(name->str());
    }
  };
  if (dynamic)
    collect(object.getDynamicSymbolIterators());
  else
    collect(object.symbols());
  llvm::sort(names);
  return names;
}

/// Puts a user's body into the kernel's module, once it is seen that LLVM makes code of it.
static Status inlineBody(const UserCode &user, const IsaLevel &isa, const llvm::StringSet<> &internal,
                         llvm::Module &module, llvm::TargetMachine &machine, unsigned optLevel) {
  auto work = [&] {
    if (!linkBitcode(user, isa, module))
      return;
    setAttributes(module, isa, internal);
    optimize(module, machine, pipelineOf(optLevel, /*inlines=*/true));
    static_cast<void>(static_cast<bool>(generate(module, machine, llvm::CodeGenFileType::ObjectFile)));
  };
  Status good = tryWork(user, work);
  return good ? linkBitcode(user, isa, module) : std::move(good);
}

/// Nothing is called but the body of a user, which is linked later where it is no bitcode.
static Status checkWhole(KernelObject &object, const IsaLevel &isa, const LoweringOptions &options) {
  auto missing = undefinedSymbols(object.elf, /*dynamic=*/false);
  if (!missing)
    return missing.takeError();
  if (const UserCode *user = options.user) {
    object.user.push_back(*user);
    if (user->bitcode && !missing->empty())
      return user->refusal("its code for " + isa.name + " would call " + llvm::join(*missing, ", ") +
                           ", and kernels call no libraries; write out what it stands for");
    llvm::erase(*missing, user->linked);
    if (!user->bitcode)
      if (Status s = saveTemp(options.saveTempsDir, user->linked + ".o",
                              [&](auto &out) { out.write(user->bytes.data(), user->bytes.size()); });
          !s)
        return s;
  }
  if (missing->empty())
    return Status::ok();
  return internalError("kernel '" + object.name + "' for " + isa.name +
                       " would call library functions: " + llvm::join(*missing, ", "));
}

Result<KernelObject> dmxc::cpu::compileKernel(ModuleOp module, const IsaLevel &isa, const LoweringOptions &options) {
  KernelObject object;
  llvm::StringSet<> internal;
  for (auto fn : module.getOps<func::FuncOp>()) {
    if (fn.isPrivate())
      internal.insert(fn.getName());
    else
      object.kernels.push_back(fn.getName().str());
  }
  if (object.kernels.empty())
    return internalError("a kernel module without kernels");
  object.name = object.kernels.front();
  if (failed(mlir::verify(module)))
    return internalError("kernel '" + object.name + "': invalid IR was emitted");
  if (Status s = saveTemp(options.saveTempsDir, object.name + ".mlir", [&](auto &out) { module.print(out); }); !s)
    return s.takeError();
  if (failed(lowerToLLVMDialect(module, {.half = isa.hasF16C})))
    return internalError("kernel '" + object.name + "': lowering to LLVM failed");

  llvm::LLVMContext context;
  auto llvmModule = translateModuleToLLVMIR(module, context, object.name);
  if (!llvmModule)
    return internalError("kernel '" + object.name + "': translation to LLVM IR failed");
  auto machine = makeTargetMachine(isa, options.optLevel);
  if (!machine)
    return machine.takeError();
  llvmModule->setTargetTriple((*machine)->getTargetTriple());
  llvmModule->setDataLayout((*machine)->createDataLayout());
  const bool inlines = options.user && options.user->bitcode;
  if (inlines)
    if (Status s = inlineBody(*options.user, isa, internal, *llvmModule, **machine, options.optLevel); !s)
      return s.takeError();
  setAttributes(*llvmModule, isa, internal);
  Messages messages(context); // of a user's assembler texts
  if (Status s = saveBitcode(*llvmModule, options.saveTempsDir, object.name + ".in.bc"); !s)
    return s.takeError();
  object.pipeline = pipelineOf(options.optLevel, inlines);
  object.patched = optimize(*llvmModule, **machine, object.pipeline);
  if (!options.saveTempsDir.empty())
    if (Status s = saveLLVM(*llvmModule, **machine, options.saveTempsDir, object.name); !s)
      return s.takeError();
  auto elf = generate(*llvmModule, **machine, llvm::CodeGenFileType::ObjectFile);
  if (!elf)
    return elf.takeError();
  object.elf = std::move(*elf);
  object.temps = options.saveTempsDir;
  if (!messages.text.empty())
    return inlines ? options.user->refusal(messages.text) : internalError(messages.text);
  if (Status s = checkWhole(object, isa, options); !s)
    return s.takeError();
  return object;
}
