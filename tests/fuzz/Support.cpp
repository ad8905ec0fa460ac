//===- Support.cpp - what all fuzzers share -------------------------------===//
#include "Engine.h"

#include <cstdio>
#include <cstdlib>

void dmxfuzz::promise(bool kept, const char *what) {
  if (kept)
    return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

/// LLVM's allocators poison what they have not given away, but only in code that is compiled with the sanitizer: what
/// the packaged library hands out would look poisoned here. A failed allocation must be survived, not reported.
extern "C" const char *__asan_default_options() { return "allow_user_poisoning=0:allocator_may_return_null=1"; }
