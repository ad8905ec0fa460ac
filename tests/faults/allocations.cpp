//===- allocations.cpp - operator new that fails when it shall ------------===//
//
// For a test that has the shim inside: malloc is the sanitizer's there.
//
//===----------------------------------------------------------------------===//
#include <cstddef>
#include <cstdlib>
#include <new>

extern "C" int dmx_fault_allocation();
extern "C" void dmx_fault_allocated(long more);

static void *allocate(size_t size, size_t alignment) {
  if (dmx_fault_allocation())
    throw std::bad_alloc();
  void *memory = alignment > alignof(std::max_align_t)
                     ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
                     : std::malloc(size ? size : 1);
  if (!memory)
    throw std::bad_alloc();
  dmx_fault_allocated(1);
  return memory;
}
static void release(void *memory) {
  dmx_fault_allocated(memory ? -1 : 0);
  std::free(memory);
}

void *operator new(size_t size) { return allocate(size, 0); }
void *operator new(size_t size, std::align_val_t alignment) { return allocate(size, static_cast<size_t>(alignment)); }
void operator delete(void *memory) noexcept { release(memory); }
void operator delete(void *memory, size_t) noexcept { release(memory); }
void operator delete(void *memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void *memory, size_t, std::align_val_t) noexcept { release(memory); }
