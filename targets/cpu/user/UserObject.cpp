//===- UserObject.cpp - relocatable objects that users wrote --------------===//

#include "UserCode.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/ObjCopy/CommonConfig.h"
#include "llvm/ObjCopy/ELF/ELFConfig.h"
#include "llvm/ObjCopy/ELF/ELFObjcopy.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/raw_ostream.h"

using namespace dmxc;
using namespace dmxc::cpu;

namespace {

using ElfFile = llvm::object::ELFFile<llvm::object::ELF64LE>;
using Section = ElfFile::Elf_Shdr;
using Symbol = ElfFile::Elf_Sym;
namespace ELF = llvm::ELF;

/// The value, or what LLVM says of the file, thrown as a text that stays in this file.
template <typename T> T valueOf(llvm::Expected<T> value) {
  if (!value)
    throw "it is no object that can be read: " + llvm::toString(value.takeError());
  return *value;
}

/// What is loaded lies on pages, within reach of one another. `loaded`: the bytes of all before it, and then with it.
void checkPlace(const std::string &what, uint64_t alignment, uint64_t size, uint64_t &loaded) {
  constexpr uint64_t page = 4096, most = uint64_t(1) << 28;
  if (alignment > page)
    throw what + " is aligned to " + std::to_string(alignment) + " bytes, and code is loaded at pages of " +
        std::to_string(page);
  loaded += std::min(size, most + 1);
  if (loaded > most)
    throw what + " has " + std::to_string(size) + " bytes, and all code of a model may have " +
        std::to_string(most >> 20) + " MiB";
}

class ObjectChecker {
public:
  ObjectChecker(const ElfFile &elf, const std::string &entry) : elf(elf), entry(entry) {}

  /// Throws the clause that a refusal has.
  void run() {
    const ElfFile::Elf_Ehdr &header = elf.getHeader();
    if (header.e_machine != ELF::EM_X86_64)
      throw "it is an object for " + machineName(header.e_machine) + ", and this target's machine is x86-64";
    if (header.e_type != ELF::ET_REL)
      throw std::string("it is no relocatable object; compile with -c and do not link");
    sections = valueOf(elf.sections());
    for (const Section &section : sections)
      checkSection(section);
    for (const Section &section : sections)
      if (section.sh_type == ELF::SHT_SYMTAB)
        checkSymbols(section);
    if (!undefined.empty())
      throw "it needs " + llvm::join(undefined, ", ") +
          ", which it does not define; kernels call no libraries: compile with -ffreestanding -fno-builtin "
          "-fno-stack-protector, and put helpers into the object";
    if (!hasEntry)
      throw "it defines no global function '" + entry + "'" +
          (functions.empty() ? std::string() : "; it has " + llvm::join(functions, ", "));
    for (const Section &section : sections)
      if (section.sh_type == ELF::SHT_RELA || section.sh_type == ELF::SHT_REL)
        checkRelocations(section);
  }

private:
  static std::string machineName(unsigned machine) {
    return machine == ELF::EM_AARCH64 ? "aarch64"
           : machine == ELF::EM_386   ? "i386"
                                      : "machine " + std::to_string(machine);
  }

  void checkSection(const Section &section) {
    std::string name = valueOf(elf.getSectionName(section)).str();
    bool runs = section.sh_type == ELF::SHT_INIT_ARRAY || section.sh_type == ELF::SHT_FINI_ARRAY ||
                section.sh_type == ELF::SHT_PREINIT_ARRAY;
    for (llvm::StringRef prefix : {".init", ".fini", ".ctors", ".dtors"})
      runs |= (section.sh_flags & ELF::SHF_ALLOC) && llvm::StringRef(name).starts_with(prefix) && section.sh_size;
    if (runs)
      throw "it has a constructor or destructor (section '" + name + "'), and nothing would run it";
    if (section.sh_flags & ELF::SHF_TLS)
      throw "it has thread-local data (section '" + name +
          "'), which kernels have none of; use the scratch that a call gets";
    // Of what is not loaded too: whoever writes the object anew makes room for it.
    checkPlace("its section '" + name + "'", section.sh_addralign,
               section.sh_flags & ELF::SHF_ALLOC ? uint64_t(section.sh_size) : 0, loaded);
    if ((section.sh_flags & ELF::SHF_WRITE) && (section.sh_flags & ELF::SHF_EXECINSTR))
      throw "its section '" + name + "' is writable and executable";
    if (section.sh_type == ELF::SHT_RELR || section.sh_type == ELF::SHT_CREL)
      throw "its section '" + name + "' has relocations of a kind that is not read here";
  }

  void checkSymbols(const Section &table) {
    llvm::StringRef names = valueOf(elf.getStringTableForSymtab(table));
    for (const Symbol &symbol : valueOf(elf.symbols(&table)).drop_front(table.sh_size ? 1 : 0)) {
      llvm::StringRef name = valueOf(symbol.getName(names));
      if (symbol.getType() == ELF::STT_GNU_IFUNC || symbol.getType() == ELF::STT_TLS)
        throw "'" + name.str() + "' is " +
            (symbol.getType() == ELF::STT_TLS ? "thread-local" : "chosen by a function when it is loaded") +
            ", which kernels cannot be";
      if (symbol.st_shndx == ELF::SHN_UNDEF) {
        if (!name.empty() && name != "_GLOBAL_OFFSET_TABLE_")
          undefined.push_back(name.str());
        continue;
      }
      bool isCode = symbol.st_shndx < sections.size() && (sections[symbol.st_shndx].sh_flags & ELF::SHF_EXECINSTR);
      if (symbol.getBinding() == ELF::STB_LOCAL || !isCode)
        continue;
      functions.push_back("'" + name.str() + "'");
      hasEntry |= name == entry;
    }
  }

  /// A place that is not written to may be relative alone, so that its pages are those of the file.
  static bool isRelative(unsigned type) {
    switch (type) {
    case ELF::R_X86_64_NONE:
    case ELF::R_X86_64_PC8:
    case ELF::R_X86_64_PC16:
    case ELF::R_X86_64_PC32:
    case ELF::R_X86_64_PC64:
    case ELF::R_X86_64_PLT32:
    case ELF::R_X86_64_GOTPCREL:
    case ELF::R_X86_64_GOTPCRELX:
    case ELF::R_X86_64_REX_GOTPCRELX:
    case ELF::R_X86_64_GOTPC32:
    case ELF::R_X86_64_GOTPC64:
    case ELF::R_X86_64_GOTOFF64:
      return true;
    default:
      return false;
    }
  }

  void checkRelocations(const Section &table) {
    if (table.sh_info >= sections.size())
      throw std::string("its relocations are of a section that it does not have");
    const Section &target = sections[table.sh_info];
    if (!(target.sh_flags & ELF::SHF_ALLOC))
      return;
    std::string name = valueOf(elf.getSectionName(target)).str();
    if (table.sh_type == ELF::SHT_REL)
      throw "its section '" + name + "' has relocations without addend";
    for (const ElfFile::Elf_Rela &entry : valueOf(elf.relas(table))) {
      unsigned type = entry.getType(false);
      if (isRelative(type) || ((target.sh_flags & ELF::SHF_WRITE) && type == ELF::R_X86_64_64))
        continue;
      throw "its section '" + name + "' has a text relocation (" +
          llvm::object::getELFRelocationTypeName(ELF::EM_X86_64, type).str() + "); compile with -fPIC";
    }
  }

  const ElfFile &elf;
  const std::string &entry;
  llvm::ArrayRef<Section> sections;
  std::vector<std::string> undefined, functions;
  uint64_t loaded = 0; ///< bytes of sections
  bool hasEntry = false;
};

} // namespace

/// All names get the prefix, and those but the entry's are the object's own. What is not loaded is left out.
static llvm::Error renameSymbols(UserCode &code, llvm::object::ELFObjectFileBase &object) {
  llvm::objcopy::CommonConfig config;
  config.InputFilename = config.OutputFilename = code.file;
  config.SymbolsPrefix = code.prefix;
  config.StripDebug = true;
  auto ignore = [](llvm::Error error) { return error; };
  if (llvm::Error error = config.SymbolsToKeepGlobal.addMatcher(
          llvm::objcopy::NameOrPattern::create(code.symbol, llvm::objcopy::MatchStyle::Literal, ignore)))
    return error;
  llvm::SmallVector<char, 0> out;
  llvm::raw_svector_ostream stream(out);
  if (llvm::Error error = llvm::objcopy::elf::executeObjcopyOnBinary(config, {}, object, stream))
    return error;
  code.bytes.assign(out.begin(), out.end());
  return llvm::Error::success();
}

Status dmxc::cpu::adoptObject(UserCode &code, std::span<const std::byte> bytes) {
  std::vector<std::byte> aligned(bytes.begin(), bytes.end());
  llvm::StringRef text(reinterpret_cast<const char *>(aligned.data()), aligned.size());
  if (!text.starts_with("\177ELF"))
    return code.refusal("it is neither an ELF object nor LLVM bitcode");
  llvm::Expected<std::unique_ptr<llvm::object::ObjectFile>> file =
      llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(text, code.file));
  if (!file)
    return code.refusal("it is no object that can be read: " + llvm::toString(file.takeError()));
  auto *elf = llvm::dyn_cast<llvm::object::ELF64LEObjectFile>(file->get());
  if (!elf)
    return code.refusal("it is an object for a machine of other words, and this target's machine is x86-64");
  try {
    ObjectChecker(elf->getELFFile(), code.symbol).run();
  } catch (const std::string &clause) {
    return code.refusal(clause);
  }
  if (llvm::Error error = renameSymbols(code, *elf))
    return code.refusal("it is no object that can be read: " + llvm::toString(std::move(error)));
  return Status::ok();
}

Status dmxc::cpu::checkLinked(const UserCode &code, llvm::ArrayRef<char> image) {
  try {
    uint64_t loaded = 0;
    auto elf = valueOf(ElfFile::create({image.data(), image.size()}));
    for (const ElfFile::Elf_Phdr &segment : valueOf(elf.program_headers())) {
      if (segment.p_type != ELF::PT_LOAD)
        continue;
      checkPlace("its data", segment.p_align, segment.p_memsz, loaded);
      if ((segment.p_flags & ELF::PF_W) && (segment.p_flags & ELF::PF_X))
        throw std::string("linked it is memory that is both written to and executed: a section of data has the name of "
                          "one of code");
    }
  } catch (const std::string &clause) {
    return code.refusal(clause);
  }
  return Status::ok();
}
