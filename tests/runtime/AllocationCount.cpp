//===- AllocationCount.cpp - how often a thread allocates -----------------===//

#include "AllocationCount.h"

#include <cstdlib>
#include <new>

thread_local bool dmxtest::countAllocations = false;
thread_local int dmxtest::allocations = 0;
std::atomic<int64_t> dmxtest::failingAllocation{0};

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
using dmxtest::allocations;
using dmxtest::countAllocations;

static void note() {
  allocations += countAllocations;
  if (dmxtest::failingAllocation.load(std::memory_order_relaxed) > 0 && dmxtest::failingAllocation.fetch_sub(1) == 1)
    throw std::bad_alloc();
}

void *operator new(size_t size) {
  note();
  if (void *memory = std::malloc(size ? size : 1))
    return memory;
  throw std::bad_alloc();
}
void *operator new(size_t size, std::align_val_t alignment) {
  note();
  size_t a = static_cast<size_t>(alignment);
  if (void *memory = std::aligned_alloc(a, (size + a - 1) / a * a))
    return memory;
  throw std::bad_alloc();
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void *memory, size_t, std::align_val_t) noexcept { std::free(memory); }
#endif
