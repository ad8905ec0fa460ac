//===- KeptCode.cpp - kernels that were compiled before -----------------------===//

#include "KeptCode.h"

#include "dmxc/Support/MappedFile.h"
#include "dmxc/Support/Sha256.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ObjCopy/CommonConfig.h"
#include "llvm/ObjCopy/ConfigManager.h"
#include "llvm/ObjCopy/ObjCopy.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/StringSaver.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>
#include <elf.h>
#include <link.h>

using namespace dmxc;
using namespace dmxc::cpu;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::string dmxc::cpu::namelessText(dlir::KernelOp kernel) {
  OwningOpRef<dlir::KernelOp> copy = kernel.clone();
  Location nowhere = UnknownLoc::get(kernel.getContext());
  copy->setSymName("kernel");
  copy->walk([&](Operation *op) {
    op->setLoc(nowhere);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setLoc(nowhere);
  });
  std::string text;
  llvm::raw_string_ostream out(text);
  copy->print(out, OpPrintingFlags().enableDebugInfo(false).useLocalScope());
  return text;
}

/// What a symbol is called when the kernels have other names: a kernel, and what belongs to it.
static std::optional<std::string> otherName(StringRef symbol, const KernelObject &object,
                                            const std::vector<std::string> &names) {
  for (auto [old, name] : llvm::zip_equal(object.kernels, names))
    if (StringRef rest = symbol; rest.consume_front(old) && (rest.empty() || rest.starts_with(".")))
      return name + rest.str();
  return std::nullopt;
}

Result<KernelObject> dmxc::cpu::renamed(KernelObject object, const std::vector<std::string> &names) {
  if (object.kernels == names)
    return object;
  auto wrong = [&](llvm::Error error) {
    return Error{ErrorKind::Internal,
                 "kernel '" + object.name + "' cannot be given another name: " + llvm::toString(std::move(error))};
  };
  llvm::MemoryBufferRef bytes(llvm::StringRef(object.elf.data(), object.elf.size()), "kernel.o");
  auto elf = llvm::object::ObjectFile::createELFObjectFile(bytes);
  if (!elf)
    return wrong(elf.takeError());
  llvm::objcopy::ConfigManager config;
  llvm::BumpPtrAllocator memory;
  llvm::StringSaver saver(memory);
  for (const llvm::object::SymbolRef &symbol : (*elf)->symbols())
    if (llvm::Expected<llvm::StringRef> old = symbol.getName(); !old)
      return wrong(old.takeError());
    else if (std::optional<std::string> name = otherName(*old, object, names))
      config.Common.SymbolsToRename[*old] = saver.save(*name);
  llvm::SmallVector<char, 0> result;
  llvm::raw_svector_ostream out(result);
  if (llvm::Error error = llvm::objcopy::executeObjcopyOnBinary(config, **elf, out))
    return wrong(std::move(error));
  object.name = names.front();
  object.kernels = names;
  object.elf.assign(result.begin(), result.end());
  return object;
}

//===----------------------------------------------------------------------===//
// What is kept
//===----------------------------------------------------------------------===//

/// Identifies a file of this process' code by what its linker wrote into it for that, or by its bytes.
static int identify(dl_phdr_info *info, size_t, void *into) {
  std::string &all = *static_cast<std::string *>(into);
  llvm::StringRef path = info->dlpi_name;
  if (path.contains("linux-vdso"))
    return 0;
  std::string id;
  for (const ElfW(Phdr) &part : llvm::ArrayRef(info->dlpi_phdr, info->dlpi_phnum)) {
    if (part.p_type != PT_NOTE)
      continue;
    llvm::StringRef notes(reinterpret_cast<const char *>(info->dlpi_addr + part.p_vaddr), part.p_memsz);
    while (notes.size() >= sizeof(ElfW(Nhdr))) {
      ElfW(Nhdr) note;
      std::memcpy(&note, notes.data(), sizeof(note));
      size_t name = llvm::alignTo(note.n_namesz, 4), size = sizeof(note) + name + llvm::alignTo(note.n_descsz, 4);
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && notes.size() >= size)
        id = llvm::toHex(notes.substr(sizeof(note) + name, note.n_descsz));
      notes = notes.drop_front(std::min(size, notes.size()));
    }
  }
  if (id.empty())
    if (auto file = MappedFile::open(path.empty() ? "/proc/self/exe" : path.str()))
      id = Sha256::hexOf((*file)->bytes());
  all += id + "\n";
  return 0;
}

static const std::string &compilerId() {
  static const std::string id = [] {
    std::string all;
    dl_iterate_phdr(identify, &all);
    return all;
  }();
  return id;
}

std::string dmxc::cpu::keptName(const std::string &text, const IsaLevel &isa, unsigned optLevel) {
  std::string all =
      compilerId() + isa.name + "\n" + isa.cpu + "\n" + isa.features + "\n" + std::to_string(optLevel) + "\n" + text;
  return Sha256::hexOf(std::as_bytes(std::span(all)));
}

namespace {

/// Sizes and numbers as 64 bits of this machine, one behind the other.
class Writer {
public:
  std::string bytes;
  void number(int64_t value) { bytes.append(reinterpret_cast<const char *>(&value), sizeof(value)); }
  void text(std::string_view value) {
    number(static_cast<int64_t>(value.size()));
    bytes += value;
  }
  void numbers(const std::vector<int64_t> &values) {
    number(static_cast<int64_t>(values.size()));
    for (int64_t value : values)
      number(value);
  }
};

/// Reads what a Writer wrote; `good` is false once there is too little.
class Reader {
public:
  explicit Reader(std::string_view rest) : rest(rest) {}
  bool good = true;
  bool atEnd() const { return good && rest.empty(); }
  int64_t number() {
    int64_t value = 0;
    good = good && rest.size() >= sizeof(value);
    if (good) {
      std::memcpy(&value, rest.data(), sizeof(value));
      rest.remove_prefix(sizeof(value));
    }
    return value;
  }
  std::string_view text() {
    auto size = static_cast<uint64_t>(number());
    good = good && size <= rest.size();
    std::string_view value = good ? rest.substr(0, size) : std::string_view();
    rest.remove_prefix(value.size());
    return value;
  }
  std::vector<int64_t> numbers() {
    std::vector<int64_t> values;
    for (int64_t left = number(); left > 0 && good; --left)
      values.push_back(number());
    return values;
  }

private:
  std::string_view rest;
};

} // namespace

std::string dmxc::cpu::keptBytes(const KernelObject &object) {
  Writer writer;
  writer.text(std::string_view(object.elf.data(), object.elf.size()));
  writer.number(object.patched);
  writer.number(static_cast<int64_t>(object.kernels.size()));
  for (auto [kernel, contract] : llvm::zip_equal(object.kernels, object.contracts)) {
    writer.text(kernel);
    writer.numbers(contract);
  }
  return writer.bytes;
}

std::optional<KernelObject> dmxc::cpu::objectOf(std::string_view kept) {
  Reader reader(kept);
  KernelObject object;
  std::string_view elf = reader.text();
  object.elf.assign(elf.begin(), elf.end());
  object.patched = reader.number() != 0;
  for (int64_t left = reader.number(); left > 0 && reader.good; --left) {
    object.kernels.emplace_back(reader.text());
    object.contracts.push_back(reader.numbers());
  }
  if (!reader.atEnd() || object.kernels.empty())
    return std::nullopt;
  object.name = object.kernels.front();
  return object;
}

std::string dmxc::cpu::keptBytes(const std::vector<EmittedShape> &shapes) {
  Writer writer;
  for (const EmittedShape &shape : shapes) {
    writer.text(shape.shape.code);
    writer.numbers(shape.shape.numbers);
    writer.numbers(shape.shape.floats);
    writer.numbers(shape.contract);
  }
  return writer.bytes;
}

std::optional<std::vector<EmittedShape>> dmxc::cpu::shapesOf(std::string_view kept, size_t count) {
  Reader reader(kept);
  std::vector<EmittedShape> shapes(count);
  for (EmittedShape &shape : shapes) {
    shape.shape.code = reader.text();
    shape.shape.numbers = reader.numbers();
    shape.shape.floats = reader.numbers();
    shape.contract = reader.numbers();
  }
  return reader.atEnd() ? std::optional(std::move(shapes)) : std::nullopt;
}
