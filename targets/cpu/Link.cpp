//===- Link.cpp - kernel objects to kernels.so ---------------------------===//

#include "Link.h"

#include "dmx/dmx_kernel.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

LLD_HAS_DRIVER(elf)

using namespace dmxc;
using namespace dmxc::cpu;

static Error internalError(const llvm::Twine &message) { return {ErrorKind::Internal, message.str()}; }

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

static llvm::Constant *stringConstant(llvm::Module &module, llvm::StringRef text) {
  auto *data = llvm::ConstantDataArray::getString(module.getContext(), text);
  auto *global =
      new llvm::GlobalVariable(module, data->getType(), /*isConstant=*/true, llvm::GlobalValue::PrivateLinkage, data);
  global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  return global;
}

/// The constant dmx_kernel_table and what it points to.
static llvm::GlobalVariable *makeTable(llvm::Module &module, llvm::ArrayRef<std::string> kernels,
                                       llvm::StringRef isaName) {
  llvm::LLVMContext &context = module.getContext();
  auto *ptr = llvm::PointerType::get(context, 0);
  auto *i32 = llvm::Type::getInt32Ty(context);
  auto *entryType = llvm::StructType::get(context, {ptr, ptr});
  auto *kernelType = llvm::FunctionType::get(i32, {ptr}, false);
  std::vector<llvm::Constant *> entries;
  for (const std::string &name : kernels) {
    auto *fn = llvm::Function::Create(kernelType, llvm::GlobalValue::ExternalLinkage, name, module);
    fn->setVisibility(llvm::GlobalValue::HiddenVisibility);
    fn->setDSOLocal(true);
    entries.push_back(llvm::ConstantStruct::get(entryType, {stringConstant(module, name), fn}));
  }
  auto *arrayType = llvm::ArrayType::get(entryType, entries.size());
  auto *array = new llvm::GlobalVariable(module, arrayType, true, llvm::GlobalValue::PrivateLinkage,
                                         llvm::ConstantArray::get(arrayType, entries));
  auto *tableType = llvm::StructType::get(context, {i32, i32, ptr, ptr});
  llvm::Constant *fields[] = {llvm::ConstantInt::get(i32, DMX_KERNEL_ABI_VERSION),
                              llvm::ConstantInt::get(i32, kernels.size()), stringConstant(module, isaName), array};
  return new llvm::GlobalVariable(module, tableType, true, llvm::GlobalValue::PrivateLinkage,
                                  llvm::ConstantStruct::get(tableType, fields));
}

static Result<std::vector<char>> tableObject(llvm::ArrayRef<std::string> kernels, const IsaLevel &isa) {
  llvm::LLVMContext context;
  llvm::Module module("kernel_table", context);
  auto machine = makeTargetMachine(isa, 2);
  if (!machine)
    return machine.takeError();
  llvm::GlobalVariable *table = makeTable(module, kernels, isa.name);
  auto *ptr = llvm::PointerType::get(context, 0);
  auto *i32 = llvm::Type::getInt32Ty(context);
  auto *query = llvm::Function::Create(llvm::FunctionType::get(ptr, {i32}, false), llvm::GlobalValue::ExternalLinkage,
                                       DMX_KERNEL_QUERY_SYMBOL, module);
  query->addFnAttr(llvm::Attribute::NoUnwind);
  query->addFnAttr("target-cpu",
                   "x86-64"); // asked before the features are known to be there
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "entry", query));
  llvm::Value *known = b.CreateICmpEQ(query->getArg(0), b.getInt32(DMX_KERNEL_ABI_VERSION));
  b.CreateRet(b.CreateSelect(known, table, llvm::ConstantPointerNull::get(ptr)));
  return emitObject(module, **machine, 2);
}

//===----------------------------------------------------------------------===//
// Linking
//===----------------------------------------------------------------------===//

/// Runs LLD. It keeps global state, so one link at a time in a process.
static Status runLinker(const std::vector<std::string> &inputs, const std::string &output) {
  std::vector<std::string> args = {"ld.lld", "-shared", "-o", output,
                                   // Nothing undefined, text never relocated, and no symbol version or build
                                   // id.
                                   "-z", "defs", "-z", "text", "-z", "now", "--build-id=none", "--hash-style=both",
                                   "-Bsymbolic", "--no-rosegment", "-z", "noseparate-code", "-z", "max-page-size=4096",
                                   "-z", "common-page-size=4096", "--threads=1", "--discard-all"};
  args.insert(args.end(), inputs.begin(), inputs.end());
  std::vector<const char *> argv;
  for (const std::string &arg : args)
    argv.push_back(arg.c_str());
  static std::mutex oneAtATime;
  std::lock_guard<std::mutex> lock(oneAtATime);
  std::string out, err;
  llvm::raw_string_ostream outStream(out), errStream(err);
  lld::Result result = lld::lldMain(argv, outStream, errStream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    return internalError("linking the kernels failed: " + llvm::StringRef(err).trim());
  return Status::ok();
}

static Status writeBytes(const std::string &path, const std::vector<char> &bytes) {
  std::error_code failed;
  llvm::raw_fd_ostream out(path, failed);
  if (!failed) {
    out.write(bytes.data(), bytes.size());
    out.close();
    failed = out.error();
  }
  if (failed)
    return ioError("cannot write the temporary file '" + path + "': " + failed.message());
  return Status::ok();
}

Result<std::vector<char>> dmxc::cpu::linkKernels(std::span<const KernelObject> objects, const IsaLevel &isa) {
  std::vector<std::string> kernels;
  for (const KernelObject &object : objects)
    kernels.insert(kernels.end(), object.kernels.begin(), object.kernels.end());
  auto table = tableObject(kernels, isa);
  if (!table)
    return table.takeError();

  llvm::SmallString<128> dir;
  if (std::error_code failed = llvm::sys::fs::createUniqueDirectory("dmxc-link", dir))
    return ioError("cannot make a temporary folder: " + failed.message());
  llvm::scope_exit cleanUp([&] { llvm::sys::fs::remove_directories(dir); });
  std::vector<std::string> inputs;
  auto addInput = [&](const std::vector<char> &bytes) -> Status {
    inputs.push_back((dir + "/" + llvm::Twine(inputs.size()) + ".o").str());
    return writeBytes(inputs.back(), bytes);
  };
  if (Status s = addInput(*table); !s)
    return s.takeError();
  for (const KernelObject &object : objects)
    if (Status s = addInput(object.elf); !s)
      return s.takeError();
  std::string output = (dir + "/kernels.so").str();
  if (Status s = runLinker(inputs, output); !s)
    return s.takeError();
  auto buffer = llvm::MemoryBuffer::getFile(output, /*IsText=*/false,
                                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return ioError("cannot read the linker's output: " + buffer.getError().message());
  std::vector<char> bytes((*buffer)->getBufferStart(), (*buffer)->getBufferEnd());
  auto missing = undefinedSymbols(bytes, /*dynamic=*/true);
  if (!missing)
    return missing.takeError();
  if (!missing->empty())
    return internalError("the linked kernels need " + llvm::join(*missing, ", "));
  return bytes;
}
