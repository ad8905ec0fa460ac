//===- ElfImage.cpp - loads a kernel object -------------------------------===//

#include "ElfImage.h"

#include <cstring>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

namespace dmxrt {
namespace {

/// Far above any kernel object; keeps hostile addresses from reserving memory.
constexpr uint64_t kMaxSpan = uint64_t(1) << 31;
constexpr uint64_t kMaxKernels = 1 << 20;
constexpr int64_t kMaxWords = 1 << 24; // of a contract

Error badElf(std::string_view what) {
  return badBundle("the kernel object is not one this runtime loads: ", what, "; compile the model again");
}

Error otherAbi() {
  return fail(DMX_STATUS_UNSUPPORTED, "the kernels were compiled for another kernel ABI; this runtime has version ",
              DMX_KERNEL_ABI_VERSION, "; compile the model again with a compiler of the same release");
}

} // namespace

/// The steps of loading, over an image of zeros that the segments are copied
/// into. Every address is checked against the image, every offset against the
/// file.
class ElfLoader {
public:
  ElfLoader(std::span<const std::byte> file, ElfImage &image) : file(file), image(image) {}
  /// Up to relocated and located, the table read where it is exported, still without running any of it.
  Status prepare();
  /// Makes the code executable and reads the kernel table of objects that give it by a call alone.
  Status activate();

private:
  std::span<const std::byte> file;
  ElfImage &image;
  uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t low = 0;   // virtual address of image.base
  uint64_t query = 0; // virtual address of the query function
  uint64_t table = 0; // of the exported table; 0: there is none
  std::vector<Elf64_Phdr> headers, loads;
  uint64_t symbols = 0, strings = 0, stringsSize = 0, gnuHash = 0, sysvHash = 0, rela = 0, relaSize = 0;

  Status readHeaders();
  Status mapSegments();
  Status readDynamic(const Elf64_Phdr &dynamic);
  Status relocate();
  Result<uint64_t> countSymbols() const;
  Status findQuery();
  Status protect();
  Status askForTable(uint64_t &address);
  Status readTable(uint64_t address);
  Status readEntries(uint64_t entries, uint32_t count);
  Status readContract(std::string_view kernel, uint64_t address);
  /// Where the segment ends that an address of this process lies in, of those with `flag`; 0: in none.
  uint64_t segmentEnd(uint64_t address, uint32_t flag) const {
    for (const Elf64_Phdr &load : loads) {
      uint64_t begin = reinterpret_cast<uint64_t>(at(load.p_vaddr));
      if ((load.p_flags & flag) && address >= begin && address < begin + load.p_memsz)
        return begin + load.p_memsz;
    }
    return 0;
  }
  bool isReadable(uint64_t address, uint64_t size, uint64_t alignment) const {
    uint64_t end = segmentEnd(address, PF_R | PF_X);
    return end && size <= end - address && address % alignment == 0;
  }

  bool inImage(uint64_t address, uint64_t size) const {
    return address >= low && address - low <= image.span && size <= image.span - (address - low);
  }
  std::byte *at(uint64_t address) const { return image.base + (address - low); }
  template <typename T> T read(uint64_t address) const {
    T value;
    std::memcpy(&value, at(address), sizeof value);
    return value;
  }
  bool inSegment(uint64_t address, uint64_t size, uint32_t flag) const {
    for (const Elf64_Phdr &load : loads)
      if ((load.p_flags & flag) && address >= load.p_vaddr && address - load.p_vaddr <= load.p_memsz &&
          size <= load.p_memsz - (address - load.p_vaddr))
        return true;
    return false;
  }
};

Status ElfLoader::readHeaders() {
  Elf64_Ehdr header;
  if (file.size() < sizeof header)
    return badElf("it is shorter than an ELF header");
  std::memcpy(&header, file.data(), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_ident[EI_VERSION] != EV_CURRENT)
    return badElf("it is not a little-endian ELF64 file");
  if (header.e_type != ET_DYN || header.e_machine != EM_X86_64)
    return badElf("it is not an x86-64 shared object");
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum == 0 || header.e_phnum > 64 ||
      header.e_phoff > file.size() || header.e_phnum * sizeof(Elf64_Phdr) > file.size() - header.e_phoff)
    return badElf("its program headers leave the file");
  headers.resize(header.e_phnum);
  std::memcpy(headers.data(), file.data() + header.e_phoff, headers.size() * sizeof(Elf64_Phdr));
  for (const Elf64_Phdr &segment : headers) {
    if (segment.p_type == PT_TLS || segment.p_type == PT_INTERP)
      return badElf("it has thread-local storage or an interpreter");
    if (segment.p_type == PT_GNU_STACK && (segment.p_flags & PF_X))
      return badElf("it asks for an executable stack");
    if (segment.p_type != PT_LOAD)
      continue;
    if (segment.p_filesz > segment.p_memsz || segment.p_offset > file.size() ||
        segment.p_filesz > file.size() - segment.p_offset)
      return badElf("a segment leaves the file");
    if (segment.p_vaddr > kMaxSpan || segment.p_memsz > kMaxSpan)
      return badElf("a segment is too large or too far away");
    if ((segment.p_flags & PF_W) && (segment.p_flags & PF_X))
      return badElf("a segment is writable and executable");
    // Segments may share no page, or protection of one would change the other.
    if (!loads.empty() && segment.p_vaddr / page <= (loads.back().p_vaddr + loads.back().p_memsz - 1) / page)
      return badElf("segments overlap or are out of order");
    if (segment.p_memsz)
      loads.push_back(segment);
  }
  return loads.empty() ? Status(badElf("it has no segment to load")) : Status();
}

Status ElfLoader::mapSegments() {
  low = loads.front().p_vaddr / page * page;
  uint64_t high = loads.back().p_vaddr + loads.back().p_memsz;
  uint64_t span = (high - low + page - 1) / page * page;
  void *base = mmap(nullptr, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED)
    return fail(DMX_STATUS_OUT_OF_MEMORY, "cannot map ", span, " bytes for the kernels' code");
  image.base = static_cast<std::byte *>(base);
  image.span = span;
  for (const Elf64_Phdr &segment : loads)
    std::memcpy(at(segment.p_vaddr), file.data() + segment.p_offset, segment.p_filesz);
  return {};
}

/// Why a dynamic entry is none that kernels may have; null for others.
static const char *refusalOf(const Elf64_Dyn &entry) {
  switch (entry.d_tag) {
  case DT_NEEDED:
    return "it needs another library";
  case DT_INIT:
  case DT_FINI:
  case DT_TEXTREL:
  case DT_REL:
  case DT_RELR:
    return "it has constructors, text relocations or relocations without addend";
  case DT_INIT_ARRAYSZ:
  case DT_FINI_ARRAYSZ:
  case DT_PLTRELSZ:
    return entry.d_un.d_val ? "it has constructors or lazily bound symbols" : nullptr;
  case DT_SYMENT:
    return entry.d_un.d_val != sizeof(Elf64_Sym) ? "its tables have entries of another size" : nullptr;
  case DT_RELAENT:
    return entry.d_un.d_val != sizeof(Elf64_Rela) ? "its tables have entries of another size" : nullptr;
  default:
    return nullptr;
  }
}

Status ElfLoader::readDynamic(const Elf64_Phdr &dynamic) {
  if (!inImage(dynamic.p_vaddr, dynamic.p_memsz))
    return badElf("its dynamic section leaves the image");
  for (uint64_t offset = 0; offset + sizeof(Elf64_Dyn) <= dynamic.p_memsz; offset += sizeof(Elf64_Dyn)) {
    auto entry = read<Elf64_Dyn>(dynamic.p_vaddr + offset);
    uint64_t value = entry.d_un.d_val;
    if (const char *why = refusalOf(entry))
      return badElf(why);
    switch (entry.d_tag) {
    case DT_NULL:
      offset = dynamic.p_memsz;
      break;
    case DT_SYMTAB:
      symbols = value;
      break;
    case DT_STRTAB:
      strings = value;
      break;
    case DT_STRSZ:
      stringsSize = value;
      break;
    case DT_GNU_HASH:
      gnuHash = value;
      break;
    case DT_HASH:
      sysvHash = value;
      break;
    case DT_RELA:
      rela = value;
      break;
    case DT_RELASZ:
      relaSize = value;
      break;
    default:
      break; // flags, counts and names of no consequence
    }
  }
  if (!inImage(strings, stringsSize) || !stringsSize || *at(strings + stringsSize - 1) != std::byte{})
    return badElf("its string table is missing or unterminated");
  return {};
}

Status ElfLoader::relocate() {
  if (relaSize % sizeof(Elf64_Rela) || (relaSize && !inImage(rela, relaSize)))
    return badElf("its relocations leave the image");
  for (uint64_t offset = 0; offset < relaSize; offset += sizeof(Elf64_Rela)) {
    auto relocation = read<Elf64_Rela>(rela + offset);
    uint64_t type = ELF64_R_TYPE(relocation.r_info);
    if (type == R_X86_64_NONE)
      continue;
    if (type != R_X86_64_RELATIVE || ELF64_R_SYM(relocation.r_info) != 0)
      return badElf(cat("it has a relocation of type ", type, ", only relative ones are allowed"));
    uint64_t target = static_cast<uint64_t>(relocation.r_addend);
    if (!inSegment(relocation.r_offset, 8, PF_W) || !inImage(target, 0))
      return badElf("a relocation leaves the image's writable part");
    uint64_t value = reinterpret_cast<uint64_t>(image.base) + (target - low);
    std::memcpy(at(relocation.r_offset), &value, sizeof value);
  }
  return {};
}

/// The dynamic symbol table has no length of its own; both hash tables tell it.
Result<uint64_t> ElfLoader::countSymbols() const {
  if (sysvHash) {
    if (!inImage(sysvHash, 8))
      return badElf("its hash table leaves the image");
    return uint64_t(read<uint32_t>(sysvHash + 4));
  }
  if (!gnuHash || !inImage(gnuHash, 16))
    return badElf("it has no symbol hash table");
  uint64_t buckets = read<uint32_t>(gnuHash), first = read<uint32_t>(gnuHash + 4);
  uint64_t bucketTable = gnuHash + 16 + uint64_t(read<uint32_t>(gnuHash + 8)) * 8;
  uint64_t chains = bucketTable + buckets * 4;
  if (!inImage(bucketTable, buckets * 4))
    return badElf("its hash table leaves the image");
  uint64_t last = 0;
  for (uint64_t i = 0; i < buckets; ++i)
    last = std::max<uint64_t>(last, read<uint32_t>(bucketTable + i * 4));
  if (last < first)
    return first; // nothing is exported
  for (;; ++last) {
    uint64_t chain = chains + (last - first) * 4;
    if (!inImage(chain, 4))
      return badElf("its hash table leaves the image");
    if (read<uint32_t>(chain) & 1)
      return last + 1;
  }
}

Status ElfLoader::findQuery() {
  auto count = countSymbols();
  if (!count)
    return count.takeError();
  if (*count > image.span / sizeof(Elf64_Sym) || !inImage(symbols, *count * sizeof(Elf64_Sym)))
    return badElf("its symbol table leaves the image");
  for (uint64_t i = 1; i < *count; ++i) {
    auto symbol = read<Elf64_Sym>(symbols + i * sizeof(Elf64_Sym));
    if (symbol.st_name >= stringsSize)
      return badElf("a symbol's name leaves the string table");
    const char *name = reinterpret_cast<const char *>(at(strings + symbol.st_name));
    if (symbol.st_shndx == SHN_UNDEF)
      return badElf(cat("it has the undefined symbol '", name, "'"));
    if (std::strcmp(name, DMX_KERNEL_QUERY_SYMBOL) == 0 && ELF64_ST_TYPE(symbol.st_info) == STT_FUNC)
      query = symbol.st_value;
    if (std::strcmp(name, DMX_KERNEL_TABLE_SYMBOL) == 0 && ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT)
      table = symbol.st_value;
  }
  if (!query || !inSegment(query, 1, PF_X))
    return badElf(cat("it does not export the function '", DMX_KERNEL_QUERY_SYMBOL, "'"));
  return {};
}

Status ElfLoader::protect() {
  // Gaps between segments become inaccessible first.
  if (mprotect(image.base, image.span, PROT_NONE) != 0)
    return fail(DMX_STATUS_INTERNAL, "cannot change the protection of the kernels' pages");
  for (const Elf64_Phdr &segment : loads) {
    uint64_t begin = segment.p_vaddr / page * page;
    uint64_t size = segment.p_vaddr + segment.p_memsz - begin;
    // Relocations are done and kernels have no variables: nothing stays writable.
    int flags = PROT_READ | ((segment.p_flags & PF_X) ? PROT_EXEC : 0);
    if (mprotect(at(begin), size, flags) != 0)
      return fail(DMX_STATUS_UNSUPPORTED, "the system does not allow executable memory (mprotect failed), "
                                          "which running compiled kernels needs");
  }
  return {};
}

Status ElfLoader::prepare() {
  if (Status status = readHeaders(); !status)
    return status;
  const Elf64_Phdr *dynamic = nullptr;
  for (const Elf64_Phdr &segment : headers)
    if (segment.p_type == PT_DYNAMIC)
      dynamic = &segment;
  if (!dynamic)
    return badElf("it has no dynamic section");
  if (Status status = mapSegments(); !status)
    return status;
  if (Status status = readDynamic(*dynamic); !status)
    return status;
  // Symbols before relocations: an undefined one is worth more than the type
  // of the relocation that refers to it.
  if (Status status = findQuery(); !status)
    return status;
  if (Status status = relocate(); !status)
    return status;
  if (!table)
    return {};
  if (!inImage(table, sizeof(dmx_kernel_table)))
    return badElf("its kernel table lies outside of it");
  return readTable(reinterpret_cast<uint64_t>(at(table)));
}

Status ElfLoader::activate() {
  if (Status status = protect(); !status || table)
    return status;
  uint64_t address = 0;
  if (Status status = askForTable(address); !status)
    return status;
  return readTable(address);
}

/// Objects of versions that did not export the table.
Status ElfLoader::askForTable(uint64_t &address) {
  auto ask = reinterpret_cast<dmx_query_kernels_fn>(reinterpret_cast<uint64_t>(at(query)));
  const dmx_kernel_table *found = nullptr;
  for (uint32_t version = DMX_KERNEL_ABI_VERSION; !found && version >= DMX_KERNEL_OLDEST_ABI_VERSION; --version) {
    found = ask(version);
    if (found && (!isReadable(reinterpret_cast<uint64_t>(found), sizeof *found, alignof(dmx_kernel_table))))
      return badElf("its kernel table lies outside of it");
    if (found && found->abi_version != version)
      return fail(DMX_STATUS_UNSUPPORTED, "the kernels have ABI version ", found->abi_version,
                  ", but gave their table for ", version);
  }
  address = reinterpret_cast<uint64_t>(found);
  return found ? Status() : Status(otherAbi());
}

Status ElfLoader::readTable(uint64_t address) {
  if (!isReadable(address, sizeof(dmx_kernel_table), alignof(dmx_kernel_table)))
    return badElf("its kernel table lies outside of it");
  const auto &found = *reinterpret_cast<const dmx_kernel_table *>(address);
  image.version = found.abi_version;
  if (found.abi_version < DMX_KERNEL_OLDEST_ABI_VERSION || found.abi_version > DMX_KERNEL_ABI_VERSION)
    return otherAbi();
  uint64_t isa = reinterpret_cast<uint64_t>(found.isa), limit = segmentEnd(isa, PF_R | PF_X);
  if (limit && std::memchr(found.isa, 0, limit - isa))
    image.isa = found.isa;
  return readEntries(reinterpret_cast<uint64_t>(found.kernels), found.kernel_count);
}

Status ElfLoader::readEntries(uint64_t entries, uint32_t count) {
  uint64_t stride = image.version < 3 ? sizeof(dmx_kernel_entry_v2) : sizeof(dmx_kernel_entry);
  if (count > kMaxKernels || (count && !isReadable(entries, count * stride, alignof(dmx_kernel_entry))))
    return badElf("its list of kernels lies outside of it");
  for (uint32_t i = 0; i < count; ++i) {
    dmx_kernel_entry kernel{};
    std::memcpy(&kernel, reinterpret_cast<const void *>(entries + i * stride), stride);
    uint64_t name = reinterpret_cast<uint64_t>(kernel.name), limit = segmentEnd(name, PF_R | PF_X);
    if (!limit || !std::memchr(kernel.name, 0, limit - name))
      return badElf(cat("the name of kernel ", i, " lies outside of it"));
    if (!segmentEnd(reinterpret_cast<uint64_t>(kernel.fn), PF_X))
      return badElf(cat("kernel '", kernel.name, "' does not point at its code"));
    if (!image.kernels.emplace(kernel.name, kernel.fn).second)
      return badElf(cat("it has two kernels named '", kernel.name, "'"));
    if (kernel.contract)
      if (Status status = readContract(kernel.name, reinterpret_cast<uint64_t>(kernel.contract)); !status)
        return status;
  }
  return {};
}

Status ElfLoader::readContract(std::string_view kernel, uint64_t address) {
  auto words = reinterpret_cast<const int64_t *>(address);
  bool sound = isReadable(address, sizeof *words, alignof(int64_t)) && *words > 0 && *words <= kMaxWords &&
               isReadable(address, static_cast<uint64_t>(*words) * sizeof *words, alignof(int64_t)) &&
               image.promises.add(kernel, {words, static_cast<size_t>(*words)});
  return sound ? Status() : Status(badElf(cat("the contract of kernel '", kernel, "' is not sound")));
}

Result<std::shared_ptr<const CodeImage>> ElfImage::load(std::span<const std::byte> bytes) {
#if defined(__x86_64__)
  std::shared_ptr<ElfImage> image(new ElfImage);
  ElfLoader loader(bytes, *image);
  if (Status status = loader.prepare(); !status)
    return status.takeError();
  if (Status status = loader.activate(); !status)
    return status.takeError();
  return std::shared_ptr<const CodeImage>(std::move(image));
#else
  return fail(DMX_STATUS_UNSUPPORTED, "kernels for x86-64 cannot run on this CPU");
#endif
}

Result<std::shared_ptr<const CodeImage>> ElfImage::inspect(std::span<const std::byte> bytes) {
  std::shared_ptr<ElfImage> image(new ElfImage);
  if (Status status = ElfLoader(bytes, *image).prepare(); !status)
    return status.takeError();
  if (!image->version)
    return fail(DMX_STATUS_UNSUPPORTED,
                "the kernels can be listed by running their code only: they were compiled before "
                "contracts; compile the model again");
  return std::shared_ptr<const CodeImage>(std::move(image));
}

Status ElfImage::check(std::span<const std::byte> bytes, int32_t &contracts) {
  ElfImage image;
  Status status = ElfLoader(bytes, image).prepare();
  contracts = !image.kernels.empty();
  for (const auto &[name, function] : image.kernels)
    contracts &= image.promises.find(name) != nullptr;
  return status;
}

ElfImage::~ElfImage() {
  if (base)
    munmap(base, span);
}

const void *ElfImage::findKernel(std::string_view name) const {
  auto it = kernels.find(name);
  return it == kernels.end() ? nullptr : reinterpret_cast<const void *>(it->second);
}

} // namespace dmxrt
