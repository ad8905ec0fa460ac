//===- AllocationCount.cpp - how often a thread allocates -----------------===//

#include "AllocationCount.h"

#include <cstdlib>
#include <new>

thread_local bool dmxtest::countAllocations = false;
thread_local int dmxtest::allocations = 0;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
using dmxtest::allocations;
using dmxtest::countAllocations;

void *operator new(size_t size) {
  allocations += countAllocations;
  if (void *memory = std::malloc(size ? size : 1))
    return memory;
  throw std::bad_alloc();
}
void *operator new(size_t size, std::align_val_t alignment) {
  allocations += countAllocations;
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
