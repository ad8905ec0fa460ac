//===- UserBitcode.cpp - LLVM bitcode that users wrote --------------------===//

#include "Messages.h"
#include "UserCode.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/TargetParser/X86TargetParser.h"

using namespace dmxc;
using namespace dmxc::cpu;

namespace {

using Parsed = Result<std::unique_ptr<llvm::Module>>;

/// What the module has that no kernel may have; "" where there is nothing.
std::string forbiddenIn(const llvm::Module &module) {
  if (llvm::StringRef text = module.getModuleInlineAsm(); !text.empty())
    return "it has assembler text outside of functions";
  for (llvm::StringRef name : {"llvm.global_ctors", "llvm.global_dtors"})
    if (const llvm::GlobalVariable *list = module.getNamedGlobal(name); list && list->hasInitializer())
      return "it has a constructor or destructor (" + name.str() + "), and nothing would run it";
  if (!module.ifunc_empty() || !module.alias_empty())
    return "it has a second name for a function, or one that is chosen when it is loaded; define the function itself";
  std::vector<std::string> undefined;
  for (const llvm::GlobalVariable &global : module.globals()) {
    if (global.isThreadLocal())
      return "'" + global.getName().str() +
             "' is thread-local, which kernels have none of; use the scratch that a call gets";
    if (global.isDeclaration() && !global.use_empty())
      undefined.push_back(global.getName().str());
  }
  for (const llvm::Function &fn : module)
    if (fn.isDeclaration() && !fn.isIntrinsic() && !fn.use_empty())
      undefined.push_back(fn.getName().str());
  if (!undefined.empty())
    return "it needs " + llvm::join(undefined, ", ") +
           ", which it does not define; kernels call no libraries: put helpers into the same module";
  return "";
}

/// As KERNELS.md has them: what a function of an interface is.
llvm::FunctionType *interfaceOf(llvm::StringRef abi, llvm::LLVMContext &context) {
  auto *ptr = llvm::PointerType::get(context, 0);
  auto *i32 = llvm::Type::getInt32Ty(context), *i64 = llvm::Type::getInt64Ty(context);
  if (abi == "micro")
    return llvm::FunctionType::get(llvm::Type::getVoidTy(context), {ptr, ptr, ptr, i64, i64, i64, i64, i32}, false);
  if (abi == "plain")
    return llvm::FunctionType::get(i32, {ptr, ptr, i64, i64, ptr}, false);
  return llvm::FunctionType::get(i32, {ptr}, false);
}

std::string wrongInterface(const UserCode &code, const llvm::Module &module) {
  const llvm::Function *fn = module.getFunction(code.symbol);
  if (!fn || fn->isDeclaration() || fn->hasLocalLinkage())
    return "it defines no global function '" + code.symbol + "'";
  llvm::FunctionType *wanted = interfaceOf(code.abi, module.getContext());
  if (fn->getFunctionType() == wanted && fn->getCallingConv() == llvm::CallingConv::C)
    return "";
  std::string clause;
  llvm::raw_string_ostream(clause) << "its function '" << code.symbol << "' is " << *fn->getFunctionType()
                                   << ", and the interface \"" << code.abi << "\" is " << *wanted;
  return clause;
}

/// Instructions that the functions were compiled for and a level lacks.
std::string lackedBy(const llvm::Module &module, const IsaLevel &isa) {
  llvm::StringSet<> has;
  llvm::SmallVector<llvm::StringRef> names;
  llvm::X86::getFeaturesForCPU(isa.cpu, names);
  for (llvm::StringRef feature : llvm::split(isa.features, ','))
    if (feature.consume_front("+"))
      names.push_back(feature);
  llvm::StringMap<bool> implied;
  for (llvm::StringRef name : names)
    llvm::X86::updateImpliedFeatures(name, /*Enabled=*/true, implied);
  for (llvm::StringRef name : names)
    has.insert(name);
  for (const auto &entry : implied)
    has.insert(entry.getKey());
  // Of any 64-bit processor, and no instructions that code generation would choose.
  for (llvm::StringRef name : {"x87", "cx8", "mmx", "fxsr", "64bit", "evex512"})
    has.insert(name);
  llvm::SmallVector<llvm::StringRef> lacked;
  for (const llvm::Function &fn : module)
    for (llvm::StringRef feature : llvm::split(fn.getFnAttribute("target-features").getValueAsString(), ','))
      if (feature.consume_front("+") && !has.contains(feature) && !llvm::is_contained(lacked, feature))
        lacked.push_back(feature);
  return llvm::join(lacked, ", ");
}

Parsed parse(const UserCode &code, const IsaLevel &isa, llvm::LLVMContext &context) {
  Messages messages(context);
  llvm::StringRef text(code.bytes.data(), code.bytes.size());
  llvm::Expected<std::unique_ptr<llvm::Module>> module =
      llvm::parseBitcodeFile(llvm::MemoryBufferRef(text, code.file), context);
  if (!module)
    return code.refusal("it is no bitcode that LLVM reads: " + llvm::toString(module.takeError()));
  std::string broken;
  llvm::raw_string_ostream stream(broken);
  if (llvm::verifyModule(**module, &stream))
    return code.refusal("its bitcode is not valid: " + llvm::StringRef(broken).split('\n').first.str());
  const llvm::Triple &triple = (*module)->getTargetTriple();
  if (!triple.str().empty() && triple.getArch() != llvm::Triple::x86_64)
    return code.refusal("it is bitcode for " + triple.getArchName().str() + ", and this target's machine is x86-64");
  for (const std::string &clause : {forbiddenIn(**module), wrongInterface(code, **module), messages.text})
    if (!clause.empty())
      return code.refusal(clause);
  if (std::string lacked = lackedBy(**module, isa); !lacked.empty())
    return code.refusal("it is compiled for " + lacked + ", which " + isa.name +
                        " lacks; give the body \"features\", and the level one that does without");
  return std::move(*module);
}

} // namespace

Status dmxc::cpu::linkBitcode(const UserCode &code, const IsaLevel &isa, llvm::Module &module) {
  Parsed parsed = parse(code, isa, module.getContext());
  if (!parsed)
    return parsed.takeError();
  llvm::Module &user = **parsed;
  user.setTargetTriple(module.getTargetTriple());
  user.setDataLayout(module.getDataLayout());
  llvm::StripDebugInfo(user);
  std::vector<std::string> names;
  for (llvm::GlobalObject &object : user.global_objects()) {
    if (object.getName().starts_with("llvm."))
      continue;
    if (!object.isDeclaration() || !object.use_empty())
      object.setName(code.prefix + object.getName());
    if (!object.isDeclaration()) {
      object.setComdat(nullptr);
      object.setLinkage(llvm::GlobalValue::ExternalLinkage);
      names.push_back(object.getName().str());
    }
  }
  for (llvm::Function &fn : user) {
    fn.removeFnAttr("target-features"); // as the kernel's own functions have
    fn.removeFnAttr("tune-cpu");
    for (llvm::Attribute::AttrKind kind :
         {llvm::Attribute::StackProtect, llvm::Attribute::StackProtectReq, llvm::Attribute::StackProtectStrong})
      fn.removeFnAttr(kind);
  }
  Messages messages(module.getContext());
  if (llvm::Linker::linkModules(module, std::move(*parsed)))
    return code.refusal("it cannot be linked: " + messages.text);
  for (const std::string &name : names)
    if (llvm::GlobalValue *value = module.getNamedValue(name))
      value->setLinkage(llvm::GlobalValue::InternalLinkage);
  return Status::ok();
}
