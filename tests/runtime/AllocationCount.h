//===- AllocationCount.h - how often a thread allocates ---------*- C++ -*-===//
#pragma once

#include <atomic>
#include <cstdint>

namespace dmxtest {

/// Sanitizers bring allocation functions of their own, which must not be replaced.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool canCountAllocations = false;
#else
inline constexpr bool canCountAllocations = true;
#endif

/// Calls of the allocation functions by this thread while `countAllocations` is set; the whole
/// program's functions are replaced, so that the library's calls are seen too.
extern thread_local bool countAllocations;
extern thread_local int allocations;

/// The allocation of the program that fails next, any thread's: 1 is the next one; 0 and below: none does.
extern std::atomic<int64_t> failingAllocation;

} // namespace dmxtest
