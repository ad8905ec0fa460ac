//===- ElfTest.cpp - the loader of kernel objects -------------------------===//

#include "../RuntimeTest.h"
#include "runtime/devices/cpu/ElfImage.h"

#include <elf.h>
#include <random>

using namespace dmxtest;
using namespace dmxrt;

namespace {

std::span<const std::byte> bytesOf(std::string_view text) {
  return {reinterpret_cast<const std::byte *>(text.data()), text.size()};
}

/// The refusal of `load`, "" when it loads.
std::string loadError(const std::string &object) {
  auto image = ElfImage::load(bytesOf(object));
  return image ? "" : image.error().message;
}

/// The refusal of `check`, which runs nothing.
std::string checkError(const std::string &object) {
  AlignedBytes copy(object); // a sanitizer sees the end
  int32_t contracts = 0;
  Status status = ElfImage::check({copy.get(), copy.size()}, contracts);
  return status ? "" : status.error().message;
}

template <typename T> T get(const std::string &text, size_t offset) {
  T value;
  std::memcpy(&value, text.data() + offset, sizeof value);
  return value;
}

template <typename T> std::string patched(std::string text, size_t offset, T value) {
  std::memcpy(text.data() + offset, &value, sizeof value);
  return text;
}

/// Offset in the file of the first program header of a type (and flag).
size_t headerOffset(const std::string &text, uint32_t type, uint32_t flag = 0) {
  auto header = get<Elf64_Ehdr>(text, 0);
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    size_t offset = header.e_phoff + i * sizeof(Elf64_Phdr);
    auto segment = get<Elf64_Phdr>(text, offset);
    if (segment.p_type == type && (segment.p_flags & flag) == flag)
      return offset;
  }
  ADD_FAILURE() << "no segment of type " << type;
  return 0;
}

void expectError(const std::string &error, const std::string &part) {
  EXPECT_NE(error.find(part), std::string::npos) << "message: " << error << "\nexpected part: " << part;
}

} // namespace

TEST(Elf, LoadsKernels) {
  for (const char *variant : {"", "-sysv"}) {
    auto image = ElfImage::load(bytesOf(kernelObject(variant)));
    ASSERT_TRUE(image) << image.error().message;
    EXPECT_FALSE((*image)->findKernel("none"));
    const void *fill = (*image)->findKernel("fill");
    ASSERT_TRUE(fill);
    int32_t out[8] = {};
    void *buffers[] = {out};
    int64_t kept = -1;
    dmx_kernel_args args{buffers, nullptr, 2, 6, nullptr, nullptr, &kept};
    EXPECT_EQ(reinterpret_cast<dmx_kernel_fn>(const_cast<void *>(fill))(&args), DMX_KERNEL_OK);
    EXPECT_EQ(out[1], 0);
    EXPECT_EQ(out[5], 5);
    EXPECT_EQ(out[6], 0);
  }
}

TEST(Elf, RefusesWhatKernelsMustNotHave) {
  expectError(loadError(kernelObject("-undefined")), "undefined symbol 'somebody_elses'");
  expectError(loadError(kernelObject("-constructor")), "constructors");
  expectError(loadError(kernelObject("-noquery")), "does not export the function 'dmx_query_kernels'");
  expectError(loadError(kernelObject("-tls")), "thread-local");
  expectError(loadError(kernelObject("-otherabi")), "kernel ABI");
  expectError(loadError(kernelObject("-badname")), "name of kernel 0");
  expectError(loadError(kernelObject("-badfn")), "does not point at its code");
  expectError(loadError(kernelObject("-badcount")), "list of kernels");
  expectError(loadError(kernelObject("-twice")), "two kernels named 'nothing'");
}

TEST(Elf, RefusesOtherFiles) {
  expectError(loadError(""), "shorter");
  expectError(loadError(std::string(200, 'x')), "ELF64");
  const std::string &good = kernelObject();
  expectError(checkError(patched<uint8_t>(good, EI_CLASS, ELFCLASS32)), "ELF64");
  expectError(checkError(patched<uint8_t>(good, EI_DATA, ELFDATA2MSB)), "ELF64");
  expectError(checkError(patched<uint16_t>(good, offsetof(Elf64_Ehdr, e_type), ET_EXEC)), "shared object");
  expectError(checkError(patched<uint16_t>(good, offsetof(Elf64_Ehdr, e_machine), EM_AARCH64)), "x86-64");
  expectError(checkError(patched<uint16_t>(good, offsetof(Elf64_Ehdr, e_phnum), 0)), "program headers");
  expectError(checkError(patched<uint16_t>(good, offsetof(Elf64_Ehdr, e_phnum), 0xFFFF)), "program headers");
  for (uint64_t offset : {uint64_t(good.size()), uint64_t(good.size() - 8), UINT64_MAX, UINT64_MAX - 63})
    expectError(checkError(patched(good, offsetof(Elf64_Ehdr, e_phoff), offset)), "program headers");
}

TEST(Elf, RefusesHostileSegments) {
  const std::string &good = kernelObject();
  size_t text = headerOffset(good, PT_LOAD, PF_X);
  expectError(checkError(patched<uint32_t>(good, text + offsetof(Elf64_Phdr, p_flags), PF_R | PF_W | PF_X)),
              "writable and executable");
  expectError(checkError(patched<uint64_t>(good, text + offsetof(Elf64_Phdr, p_offset), good.size())),
              "leaves the file");
  expectError(checkError(patched<uint64_t>(good, text + offsetof(Elf64_Phdr, p_offset), UINT64_MAX)),
              "leaves the file");
  expectError(checkError(patched<uint64_t>(good, text + offsetof(Elf64_Phdr, p_filesz), UINT64_MAX)),
              "leaves the file");
  expectError(checkError(patched<uint64_t>(good, text + offsetof(Elf64_Phdr, p_memsz), UINT64_MAX)), "too large");
  expectError(checkError(patched<uint64_t>(good, text + offsetof(Elf64_Phdr, p_vaddr), uint64_t(1) << 40)),
              "too large");
  expectError(checkError(patched<uint64_t>(good, text + offsetof(Elf64_Phdr, p_vaddr), 0)), "overlap");
  size_t stack = headerOffset(good, PT_GNU_STACK);
  expectError(checkError(patched<uint32_t>(good, stack + offsetof(Elf64_Phdr, p_flags), PF_R | PF_W | PF_X)), "stack");
  expectError(checkError(patched<uint32_t>(good, stack, PT_INTERP)), "interpreter");
  size_t dynamic = headerOffset(good, PT_DYNAMIC);
  expectError(checkError(patched<uint32_t>(good, dynamic, PT_NULL)), "no dynamic section");
  for (uint64_t address : {uint64_t(0) - 16, uint64_t(1) << 32, UINT64_MAX})
    expectError(checkError(patched(good, dynamic + offsetof(Elf64_Phdr, p_vaddr), address)), "dynamic section leaves");
}

TEST(Elf, RefusesHostileDynamicEntries) {
  const std::string &good = kernelObject();
  auto segment = get<Elf64_Phdr>(good, headerOffset(good, PT_DYNAMIC));
  auto entryOf = [&](int64_t tag) {
    for (size_t offset = segment.p_offset;; offset += sizeof(Elf64_Dyn))
      if (auto entry = get<Elf64_Dyn>(good, offset); entry.d_tag == tag || entry.d_tag == DT_NULL)
        return offset;
  };
  size_t count = 0;
  for (int64_t tag : {DT_SYMTAB, DT_STRTAB, DT_STRSZ, DT_GNU_HASH, DT_RELA, DT_RELASZ})
    for (uint64_t value : {UINT64_MAX, UINT64_MAX - 23, uint64_t(1) << 33, uint64_t(1) << 63, uint64_t(7)}) {
      EXPECT_NE(checkError(patched(good, entryOf(tag) + 8, value)), "") << tag << " = " << value;
      ++count;
    }
  EXPECT_EQ(count, 30u);
  for (int64_t tag : {DT_NEEDED, DT_INIT, DT_TEXTREL, DT_REL, DT_RELR})
    EXPECT_NE(checkError(patched(good, entryOf(DT_RELACOUNT), tag)), "") << tag;
  EXPECT_NE(checkError(patched(good, entryOf(DT_GNU_HASH), int64_t(DT_DEBUG))), "");
  EXPECT_NE(checkError(patched<uint64_t>(good, entryOf(DT_RELAENT) + 8, 12)), "");
  EXPECT_NE(checkError(patched<uint64_t>(good, entryOf(DT_SYMENT) + 8, 16)), "");
  // A relocation of another type, outside, or into read-only memory.
  size_t rela = get<Elf64_Dyn>(good, entryOf(DT_RELA)).d_un.d_val; // file offset == address in the first segment
  expectError(checkError(patched<uint64_t>(good, rela + 8, R_X86_64_64)), "relocation of type 1");
  expectError(checkError(patched<uint64_t>(good, rela + 8, uint64_t(1) << 32 | R_X86_64_RELATIVE)), "relocation");
  for (uint64_t offset : {uint64_t(0), UINT64_MAX, UINT64_MAX - 7, uint64_t(0x1000)})
    expectError(checkError(patched(good, rela, offset)), "writable part");
  for (uint64_t target : {UINT64_MAX, uint64_t(1) << 40})
    expectError(checkError(patched(good, rela + 16, target)), "writable part");
}

TEST(Elf, EveryTruncationIsSafe) {
  const std::string &good = kernelObject();
  auto last = get<Elf64_Phdr>(good, headerOffset(good, PT_LOAD, PF_W));
  for (size_t size = 0; size < last.p_offset + last.p_filesz; size += size < 4096 ? 1 : 61)
    EXPECT_NE(checkError(good.substr(0, size)), "") << size;
}

/// No outcome is expected but that a sanitizer finds nothing: many changes are harmless.
TEST(Elf, RandomChangesAreSafe) {
  const std::string &good = kernelObject();
  std::mt19937_64 random(11);
  auto segment = get<Elf64_Phdr>(good, headerOffset(good, PT_DYNAMIC));
  size_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bad = good;
    for (uint64_t changes = 1 + random() % 3; changes; --changes) {
      // Headers, hash, symbols and relocations lie at the start, the dynamic section later.
      size_t at = random() % 4 ? random() % 0x500 : segment.p_offset + random() % segment.p_filesz;
      bad[at] = static_cast<char>(random() % 3 ? random() : uint64_t(0) - random() % 2);
    }
    refused += !checkError(bad).empty();
  }
  EXPECT_GT(refused, 1000u);
}
