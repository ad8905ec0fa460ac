//===- Link.cpp - kernel objects to kernels.so ---------------------------===//

#include "Link.h"

#include "targets/common/code/SaveTemps.h"
#include "targets/cpu/user/Trial.h"

#include "dmx/dmx_kernel.h"

#include "dmxc/Support/OutputFile.h"

#include "lld/Common/Driver.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Target/TargetMachine.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <poll.h>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

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

static llvm::Constant *wordsConstant(llvm::Module &module, llvm::ArrayRef<int64_t> words) {
  if (words.empty())
    return llvm::ConstantPointerNull::get(llvm::PointerType::get(module.getContext(), 0));
  llvm::SmallVector<uint64_t> bits(words.begin(), words.end());
  auto *data = llvm::ConstantDataArray::get(module.getContext(), bits);
  return new llvm::GlobalVariable(module, data->getType(), /*isConstant=*/true, llvm::GlobalValue::PrivateLinkage,
                                  data);
}

/// The constant dmx_kernel_table and what it points to.
static llvm::GlobalVariable *makeTable(llvm::Module &module, std::span<const KernelObject> objects,
                                       llvm::StringRef isaName) {
  llvm::LLVMContext &context = module.getContext();
  auto *ptr = llvm::PointerType::get(context, 0);
  auto *i32 = llvm::Type::getInt32Ty(context);
  auto *entryType = llvm::StructType::get(context, {ptr, ptr, ptr});
  auto *kernelType = llvm::FunctionType::get(i32, {ptr}, false);
  std::vector<llvm::Constant *> entries;
  for (const KernelObject &object : objects)
    for (const auto &[i, name] : llvm::enumerate(object.kernels)) {
      auto *fn = llvm::Function::Create(kernelType, llvm::GlobalValue::ExternalLinkage, name, module);
      fn->setVisibility(llvm::GlobalValue::HiddenVisibility);
      fn->setDSOLocal(true);
      llvm::ArrayRef<int64_t> contract;
      if (i < object.contracts.size())
        contract = object.contracts[i];
      entries.push_back(
          llvm::ConstantStruct::get(entryType, {stringConstant(module, name), fn, wordsConstant(module, contract)}));
    }
  auto *arrayType = llvm::ArrayType::get(entryType, entries.size());
  auto *array = new llvm::GlobalVariable(module, arrayType, true, llvm::GlobalValue::PrivateLinkage,
                                         llvm::ConstantArray::get(arrayType, entries));
  auto *tableType = llvm::StructType::get(context, {i32, i32, ptr, ptr});
  llvm::Constant *fields[] = {llvm::ConstantInt::get(i32, DMX_KERNEL_ABI_VERSION),
                              llvm::ConstantInt::get(i32, entries.size()), stringConstant(module, isaName), array};
  return new llvm::GlobalVariable(module, tableType, true, llvm::GlobalValue::ExternalLinkage,
                                  llvm::ConstantStruct::get(tableType, fields), DMX_KERNEL_TABLE_SYMBOL);
}

static Result<std::vector<char>> tableObject(std::span<const KernelObject> objects, const IsaLevel &isa,
                                             const std::string &saved) {
  llvm::LLVMContext context;
  llvm::Module module("kernel_table", context);
  auto machine = makeTargetMachine(isa, 2);
  if (!machine)
    return machine.takeError();
  llvm::GlobalVariable *table = makeTable(module, objects, isa.name);
  auto *ptr = llvm::PointerType::get(context, 0);
  auto *i32 = llvm::Type::getInt32Ty(context);
  auto *query = llvm::Function::Create(llvm::FunctionType::get(ptr, {i32}, false), llvm::GlobalValue::ExternalLinkage,
                                       DMX_KERNEL_QUERY_SYMBOL, module);
  query->addFnAttr(llvm::Attribute::NoUnwind);
  query->addFnAttr("target-cpu",
                   "x86-64"); // asked before the features are known to be there
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "entry", query));
  llvm::Value *known = b.Insert(llvm::CmpInst::Create(llvm::Instruction::ICmp, llvm::CmpInst::ICMP_EQ, query->getArg(0),
                                                      b.getInt32(DMX_KERNEL_ABI_VERSION)));
  b.CreateRet(b.CreateSelect(known, table, llvm::ConstantPointerNull::get(ptr)));
  Result<std::vector<char>> object = emitObject(module, **machine, 2);
  Status kept = object && !saved.empty() // as optimised
                    ? saveTemp(llvm::sys::path::parent_path(saved), llvm::sys::path::filename(saved),
                               [&](auto &out) { module.print(out, nullptr); })
                    : Status::ok();
  return kept ? std::move(object) : kept.takeError();
}

//===----------------------------------------------------------------------===//
// Linking
//===----------------------------------------------------------------------===//

std::vector<std::string> dmxc::cpu::linkerArguments() {
  // Nothing undefined, text never relocated, and no symbol version or build id.
  return {"ld.lld",
          "-shared",
          "-z",
          "defs",
          "-z",
          "text",
          "-z",
          "now",
          "--build-id=none",
          "--hash-style=both",
          "-Bsymbolic",
          "--no-rosegment",
          "-z",
          "noseparate-code",
          "-z",
          "max-page-size=4096",
          "-z",
          "common-page-size=4096",
          "--threads=1",
          "--discard-all"};
}

/// Runs LLD. It keeps global state, so one link at a time in a process.
static Status runLinker(const std::vector<std::string> &inputs, const std::string &output) {
  std::vector<std::string> args = linkerArguments();
  args.insert(args.end(), {"-o", output});
  args.insert(args.end(), inputs.begin(), inputs.end());
  std::vector<const char *> argv;
  for (const std::string &arg : args)
    argv.push_back(arg.c_str());
  static std::mutex oneAtATime;
  std::lock_guard<std::mutex> lock(oneAtATime);
  std::string out, err;
  llvm::raw_string_ostream outStream(out), errStream(err);
  lld::Result result = lld::lldMain(argv, outStream, errStream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0) {
    llvm::StringRef text = llvm::StringRef(err).trim();
    // The objects are whole where they were made: what LLD cannot open or does not recognise was not read as written.
    for (llvm::StringRef failed : {"cannot open", "failed to open", "failed to write", "Cannot allocate memory",
                                   "unknown file type", "file is too short"})
      if (text.contains(failed))
        return ioError("cannot link the kernels: " + text.str());
    return internalError("linking the kernels failed: " + text);
  }
  return Status::ok();
}

/// LLD takes and gives files. These have no name, so nothing can be left behind and no folder for temporaries is
/// needed; /proc is, where open files have paths.
static std::string descriptorPath(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

static Error cannotLink(const char *what, int reason) {
  return ioError("cannot link the kernels: " + std::string(what) + ": " + std::strerror(reason));
}

/// All objects as an archive in memory; LLD takes its members in order with --whole-archive.
static Result<Descriptor> archiveOf(llvm::ArrayRef<llvm::StringRef> objects) {
  std::vector<llvm::NewArchiveMember> members;
  for (llvm::StringRef object : objects)
    members.emplace_back(llvm::MemoryBufferRef(object, "kernels.o"));
  auto archive = llvm::writeArchiveToBuffer(members, llvm::SymtabWritingMode::NoSymtab, llvm::object::Archive::K_GNU,
                                            /*Deterministic=*/true, /*Thin=*/false);
  if (!archive)
    return internalError("the kernels' archive: " + llvm::toString(archive.takeError()));
  Descriptor file(memfd_create("kernels.a", MFD_CLOEXEC));
  if (!file)
    return cannotLink("a file in memory", errno);
  for (llvm::StringRef rest = (*archive)->getBuffer(); !rest.empty();) {
    ssize_t count = write(file.get(), rest.data(), rest.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return cannotLink("a file in memory", count < 0 ? errno : ENOSPC);
    rest = rest.drop_front(static_cast<size_t>(count));
  }
  if (access(descriptorPath(file.get()).c_str(), R_OK) != 0)
    return ioError("cannot link the kernels: " + descriptorPath(file.get()) + " cannot be opened; is /proc mounted?");
  return file;
}

/// Reads a pipe to its end in a thread of its own.
class PipeReader {
public:
  explicit PipeReader(int fd) : thread([this, fd] { readAll(fd); }) {}
  /// The other end must be closed. 0 or what errno said.
  int finish() {
    thread.join();
    return failure;
  }
  std::vector<char> bytes;

private:
  /// To the end, whatever fails on the way: LLD waits for room in the pipe. A read of nothing is not the end, no writer
  /// is.
  void readAll(int fd) {
    constexpr size_t step = 1 << 16;
    for (int failures = 0; failures < 2;) {
      pollfd wait{fd, POLLIN, 0};
      const bool ready = poll(&wait, 1, -1) > 0;
      if (ready && !(wait.revents & POLLIN))
        return;
      const size_t size = bytes.size();
      bytes.resize(size + step);
      const ssize_t count = ready ? read(fd, bytes.data() + size, step) : -1;
      bytes.resize(size + (count > 0 ? static_cast<size_t>(count) : 0));
      if (count < 0 && errno != EINTR) {
        failure = errno;
        ++failures;
      }
    }
  }
  int failure = 0;
  std::thread thread; // last, so that it starts when the rest is there
};

/// Links objects to a shared object, both in memory. What LLD writes to must not be a regular file, or it makes
/// another one beside it.
static Result<std::vector<char>> linkObjects(llvm::ArrayRef<llvm::StringRef> objects) {
  auto archive = archiveOf(objects);
  if (!archive)
    return archive.takeError();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return cannotLink("a pipe", errno);
  Descriptor out(ends[0]), in(ends[1]);
  PipeReader reader(out.get());
  Status linked = runLinker({"--whole-archive", descriptorPath(archive->get())}, descriptorPath(in.get()));
  in = Descriptor();
  int failure = reader.finish();
  if (!linked)
    return linked.takeError();
  if (failure)
    return cannotLink("the linker's output", failure);
  return std::move(reader.bytes);
}

Result<std::vector<char>> dmxc::cpu::linkKernels(std::span<const KernelObject> objects, const IsaLevel &isa,
                                                 const std::string &saved) {
  auto table = tableObject(objects, isa, saved);
  if (!table)
    return table.takeError();

  std::vector<llvm::StringRef> inputs = {{table->data(), table->size()}};
  for (const KernelObject &object : objects)
    inputs.push_back({object.elf.data(), object.elf.size()});
  llvm::StringSet<> linked; // bodies of users that several kernels call
  const UserCode *user = nullptr, *any = nullptr;
  for (const KernelObject &object : objects)
    for (const UserCode &code : object.user)
      if (any = &code; !code.bitcode && linked.insert(code.linked).second) {
        inputs.push_back({code.bytes.data(), code.bytes.size()});
        user = &code;
      }
  if (user) // LLD ends the process for some damage
    if (Status s = tryWork(*user, [&] { static_cast<void>(static_cast<bool>(linkObjects(inputs))); }); !s)
      return s.takeError();
  auto bytes = linkObjects(inputs);
  if (!bytes && user && bytes.error().kind == ErrorKind::Internal) // our own objects are as LLVM made them
    return user->refusal("it cannot be linked" +
                         std::string(linked.size() > 1 ? ", or another body of the model" : "") + ": " +
                         bytes.error().message);
  if (!bytes)
    return bytes.takeError();
  if (Status good = any ? checkLinked(user ? *user : *any, *bytes) : Status::ok(); !good)
    return good.takeError();
  auto missing = undefinedSymbols(*bytes, /*dynamic=*/true);
  if (!missing)
    return missing.takeError();
  if (!missing->empty())
    return internalError("the linked kernels need " + llvm::join(*missing, ", "));
  return bytes;
}
