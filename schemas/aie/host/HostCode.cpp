//===- HostCode.cpp - functions that users wrote, on the host -------------===//
#include "HostCode.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace dmx::aie {
namespace {

constexpr uint64_t kMostBytes = uint64_t(1) << 28; ///< so that all of it is within reach of 32 bits

/// A clause, thrown within this file.
[[noreturn]] void refuse(const std::string &clause) { throw clause; }

uint64_t roundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

} // namespace

/// Section by section: code, then what is read, then the addresses that code asks for by way of a table.
class ObjectLoader {
public:
  ObjectLoader(std::span<const std::byte> file, HostCode &code) : file(file), code(code) {}
  /// Throws the clause that a refusal has.
  void run() {
    readHeaders();
    place();
    copy();
    readSymbols();
    relocate();
  }

private:
  template <typename T> bool read(uint64_t offset, T &out) const {
    if (offset > file.size() || sizeof out > file.size() - offset)
      return false;
    std::memcpy(&out, file.data() + offset, sizeof out);
    return true;
  }
  bool liesIn(const Elf64_Shdr &section) const {
    return section.sh_type == SHT_NOBITS ||
           (section.sh_offset <= file.size() && section.sh_size <= file.size() - section.sh_offset);
  }
  static bool isLoaded(const Elf64_Shdr &section) { return (section.sh_flags & SHF_ALLOC) && section.sh_size; }
  static bool isCode(const Elf64_Shdr &section) { return section.sh_flags & SHF_EXECINSTR; }

  void readHeaders();
  void place();
  void copy();
  void readSymbols();
  void add(const Elf64_Sym &symbol, const Elf64_Shdr &names);
  std::string nameOf(const Elf64_Sym &symbol, const Elf64_Shdr &names) const;
  void relocate();
  void relocate(const Elf64_Shdr &target, uint64_t place, const Elf64_Rela &entry);
  uint64_t valueOf(uint64_t number) const;
  uint64_t tableEntry(uint64_t number);

  std::span<const std::byte> file;
  HostCode &code;
  std::vector<Elf64_Shdr> sections;
  std::vector<uint64_t> places; ///< of sections, in `code`
  std::vector<Elf64_Sym> symbols;
  std::map<uint64_t, uint64_t> table; ///< of symbols: the place of the address
  uint64_t tableAt = 0, tableEnd = 0;
  std::string undefined;
};

void ObjectLoader::readHeaders() {
  Elf64_Ehdr header;
  if (!read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_type != ET_REL || header.e_machine != EM_X86_64 ||
      header.e_shentsize != sizeof(Elf64_Shdr))
    refuse("it is no relocatable object of x86-64; compile it with -c");
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    if (header.e_shoff > file.size() || !read(header.e_shoff + i * sizeof section, section) || !liesIn(section))
      refuse("a section leaves the file");
    if ((section.sh_flags & SHF_TLS) || ((section.sh_flags & SHF_WRITE) && isCode(section)))
      refuse("a section is thread-local, or writable and executable");
    if (section.sh_type == SHT_INIT_ARRAY || section.sh_type == SHT_FINI_ARRAY || section.sh_type == SHT_PREINIT_ARRAY)
      refuse("it has a constructor or destructor, and nothing would run it");
    sections.push_back(section);
  }
}

void ObjectLoader::place() {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t next = 0, entries = 0;
  places.resize(sections.size());
  for (bool isFirst : {true, false}) {
    for (size_t i = 0; i < sections.size(); ++i) {
      const Elf64_Shdr &section = sections[i];
      entries += isFirst && section.sh_type == SHT_RELA ? section.sh_size / sizeof(Elf64_Rela) : 0;
      if (!isLoaded(section) || isCode(section) != isFirst)
        continue;
      uint64_t alignment = std::max<uint64_t>(section.sh_addralign, 1);
      if (alignment > page || section.sh_size > kMostBytes || next > kMostBytes)
        refuse("a section is too large, or aligned beyond a page");
      places[i] = roundUp(next, alignment);
      next = places[i] + section.sh_size;
    }
    next = roundUp(next, page);
    code.codeBytes = isFirst ? next : code.codeBytes;
  }
  tableAt = tableEnd = next;
  next += roundUp(8 * entries, page); // as many addresses as there are places at the most
  if (next == 0 || next > kMostBytes)
    refuse(next ? "it is too large" : "it has nothing in it");
  void *made = mmap(nullptr, next, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED)
    refuse("the system gives no " + std::to_string(next) + " bytes for its code");
  code.base = static_cast<std::byte *>(made);
  code.size = next;
}

void ObjectLoader::copy() {
  for (size_t i = 0; i < sections.size(); ++i)
    if (isLoaded(sections[i]) && sections[i].sh_type != SHT_NOBITS)
      std::memcpy(code.base + places[i], file.data() + sections[i].sh_offset, sections[i].sh_size);
}

void ObjectLoader::readSymbols() {
  for (const Elf64_Shdr &section : sections) {
    if (section.sh_type != SHT_SYMTAB)
      continue;
    if (!symbols.empty() || section.sh_entsize != sizeof(Elf64_Sym) || section.sh_link >= sections.size())
      refuse("its symbols are not in one table");
    symbols.resize(section.sh_size / sizeof(Elf64_Sym));
    for (size_t i = 0; i < symbols.size(); ++i) {
      if (!read(section.sh_offset + i * sizeof(Elf64_Sym), symbols[i]))
        refuse("its symbols leave the file");
      add(symbols[i], sections[section.sh_link]);
    }
  }
}

std::string ObjectLoader::nameOf(const Elf64_Sym &symbol, const Elf64_Shdr &names) const {
  const auto *text = reinterpret_cast<const char *>(file.data() + names.sh_offset);
  if (names.sh_type != SHT_STRTAB || symbol.st_name >= names.sh_size ||
      !std::memchr(text + symbol.st_name, 0, names.sh_size - symbol.st_name))
    refuse("a symbol has no name");
  return text + symbol.st_name;
}

/// A function, or what it would need.
void ObjectLoader::add(const Elf64_Sym &symbol, const Elf64_Shdr &names) {
  std::string name = nameOf(symbol, names);
  if (symbol.st_shndx == SHN_UNDEF && !name.empty() && name != "_GLOBAL_OFFSET_TABLE_")
    undefined += (undefined.empty() ? "" : ", ") + name;
  bool isGlobal = symbol.st_shndx < sections.size() && isLoaded(sections[symbol.st_shndx]) &&
                  isCode(sections[symbol.st_shndx]) && ELF64_ST_BIND(symbol.st_info) != STB_LOCAL;
  if (isGlobal && symbol.st_value >= sections[symbol.st_shndx].sh_size)
    refuse("a symbol leaves its section");
  if (isGlobal)
    code.functions[name] = places[symbol.st_shndx] + symbol.st_value;
}

/// Where a symbol lies in `code`.
uint64_t ObjectLoader::valueOf(uint64_t number) const {
  if (number >= symbols.size())
    refuse("a relocation is of a symbol that it does not have");
  const Elf64_Sym &symbol = symbols[number];
  bool lies = symbol.st_shndx != SHN_UNDEF && symbol.st_shndx < sections.size() &&
              (sections[symbol.st_shndx].sh_flags & SHF_ALLOC) && symbol.st_value <= sections[symbol.st_shndx].sh_size;
  if (!lies)
    refuse("it refers to what it does not define");
  return places[symbol.st_shndx] + symbol.st_value;
}

/// The place of an address of a symbol.
uint64_t ObjectLoader::tableEntry(uint64_t number) {
  if (auto found = table.find(number); found != table.end())
    return found->second;
  uint64_t address = reinterpret_cast<uint64_t>(code.base) + valueOf(number), at = tableEnd;
  std::memcpy(code.base + at, &address, sizeof address);
  table[number] = at;
  tableEnd += sizeof address;
  return at;
}

/// Of the kinds that the compiler lets through. All is relative but whole addresses in what is data.
void ObjectLoader::relocate(const Elf64_Shdr &target, uint64_t place, const Elf64_Rela &entry) {
  const uint64_t type = ELF64_R_TYPE(entry.r_info), symbol = ELF64_R_SYM(entry.r_info), at = place + entry.r_offset;
  const bool byTable = type == R_X86_64_GOTPCREL || type == R_X86_64_GOTPCRELX || type == R_X86_64_REX_GOTPCRELX;
  const bool isWhole = type == R_X86_64_64 || type == R_X86_64_PC64 || type == R_X86_64_GOTOFF64;
  const bool isKnown =
      byTable || isWhole || type == R_X86_64_PC32 || type == R_X86_64_PLT32 || type == R_X86_64_GOTPC32;
  if (!isKnown)
    refuse("it has a relocation of type " + std::to_string(type) + "; compile with -fPIC");
  const size_t bytes = isWhole ? 8 : 4;
  if (entry.r_offset > target.sh_size || bytes > target.sh_size - entry.r_offset)
    refuse("a relocation leaves its section");
  uint64_t result = static_cast<uint64_t>(entry.r_addend);
  result += type == R_X86_64_GOTPC32 ? tableAt : byTable ? tableEntry(symbol) : valueOf(symbol);
  result += type == R_X86_64_64 ? reinterpret_cast<uint64_t>(code.base) : 0;
  result -= type == R_X86_64_64 ? 0 : type == R_X86_64_GOTOFF64 ? tableAt : at;
  auto narrow = static_cast<int64_t>(result);
  if (!isWhole && narrow != static_cast<int32_t>(narrow))
    refuse("a relocation reaches too far");
  std::memcpy(code.base + at, &result, bytes);
}

void ObjectLoader::relocate() {
  if (!undefined.empty())
    refuse("it needs " + undefined +
           ", which it does not define; kernels call no libraries: compile with "
           "-ffreestanding -fno-builtin -fno-stack-protector, and put helpers into the object");
  for (const Elf64_Shdr &section : sections) {
    if (section.sh_type == SHT_REL)
      refuse("it has relocations without addend");
    if (section.sh_type != SHT_RELA)
      continue;
    if (section.sh_info >= sections.size())
      refuse("its relocations are of a section that it does not have");
    const Elf64_Shdr &target = sections[section.sh_info];
    if (!isLoaded(target) || target.sh_type == SHT_NOBITS)
      continue;
    for (uint64_t i = 0; i < section.sh_size / sizeof(Elf64_Rela); ++i) {
      Elf64_Rela entry;
      if (!read(section.sh_offset + i * sizeof entry, entry))
        refuse("its relocations leave the file");
      if (ELF64_R_TYPE(entry.r_info) == R_X86_64_NONE)
        continue;
      relocate(target, places[section.sh_info], entry);
    }
  }
}

std::shared_ptr<const HostCode> HostCode::load(std::span<const std::byte> object, std::string &error) {
  std::shared_ptr<HostCode> code(new HostCode);
  try {
    ObjectLoader(object, *code).run();
  } catch (const std::string &clause) {
    error = clause;
    return nullptr;
  }
  return code;
}

std::string HostCode::names() const {
  std::string text;
  for (const auto &[name, place] : functions)
    text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

UserFunctionPtr HostCode::find(const std::string &symbol) const {
  auto found = functions.find(symbol);
#if defined(__x86_64__)
  const bool isHost = true;
#else
  const bool isHost = false;
#endif
  bool runs = isHost && found != functions.end() && mprotect(base, codeBytes, PROT_READ | PROT_EXEC) == 0 &&
              (size == codeBytes || mprotect(base + codeBytes, size - codeBytes, PROT_READ) == 0);
  return runs ? reinterpret_cast<UserFunctionPtr>(reinterpret_cast<uint64_t>(base + found->second)) : nullptr;
}

HostCode::~HostCode() {
  if (base)
    munmap(base, size);
}

} // namespace dmx::aie
