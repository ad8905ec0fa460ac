//===- GuardMemory.cpp - bytes between inaccessible pages -----------------===//

#include "GuardMemory.h"

#include <new>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace dmxrt {
namespace {

/// Inaccessible on each side, so that a step by a row or a plane is met as well. A multiple of every page size.
constexpr uint64_t kGuardBytes = uint64_t(1) << 20;

uint64_t roundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

bool has(const std::byte *address, GuardPattern pattern) {
  return *address == static_cast<std::byte>(uint64_t(pattern) >> (reinterpret_cast<uintptr_t>(address) % 8 * 8));
}

} // namespace

GuardedBytes::GuardedBytes(uint64_t size, uint64_t alignment, GuardSide side, GuardPattern pattern)
    : count(size), pattern(pattern) {
  uint64_t pages = roundUp(size, static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
  mapped = pages + 2 * kGuardBytes;
  void *made = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED)
    throw std::bad_alloc();
  mapping = static_cast<std::byte *>(made);
  std::byte *first = mapping + kGuardBytes;
  if (pages && mprotect(first, pages, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapping, mapped);
    throw std::bad_alloc();
  }
  auto *words = reinterpret_cast<uint64_t *>(first);
  for (uint64_t i = 0; i < pages / 8; ++i)
    words[i] = static_cast<uint64_t>(pattern);
  bytes = side == GuardSide::Start ? first : first + (pages - roundUp(size, alignment));
}

GuardedBytes::~GuardedBytes() {
  if (mapping)
    munmap(mapping, mapped);
}

GuardedBytes::GuardedBytes(GuardedBytes &&other) noexcept
    : mapping(std::exchange(other.mapping, nullptr)), mapped(other.mapped), bytes(other.bytes), count(other.count),
      pattern(other.pattern) {}

void GuardedBytes::makeReadOnly() {
  // Without it writes are not caught; nothing else depends on it.
  mprotect(mapping + kGuardBytes, mapped - 2 * kGuardBytes, PROT_READ);
}

std::optional<int64_t> GuardedBytes::strayWrite() const {
  const std::byte *end = mapping + mapped - kGuardBytes;
  for (const std::byte *at = bytes + count; at < end; ++at)
    if (!has(at, pattern))
      return at - bytes;
  for (const std::byte *at = bytes; at > mapping + kGuardBytes; --at)
    if (!has(at - 1, pattern))
      return at - 1 - bytes;
  return {};
}

} // namespace dmxrt
