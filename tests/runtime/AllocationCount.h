//===- AllocationCount.h - how often a thread allocates ---------*- C++ -*-===//
#pragma once

namespace dmxtest {

/// Calls of the allocation functions by this thread while `countAllocations` is set; the whole
/// program's functions are replaced, so that the library's calls are seen too.
extern thread_local bool countAllocations;
extern thread_local int allocations;

} // namespace dmxtest
