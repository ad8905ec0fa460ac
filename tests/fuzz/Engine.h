//===- Engine.h - what a fuzzer gives to its engine -------------*- C++ -*-===//
//
// A fuzzer defines LLVMFuzzerTestOneInput and LLVMFuzzerCustomMutator, which libFuzzer knows too, and builtInSeeds.
// Linked with Engine.cpp it is a program of a fixed number of rounds, the same on every machine; with
// -fsanitize=fuzzer (tools/fuzz) coverage guides it.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/// Changes `data` in place; gives its new size, at most `capacity`.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed);
/// The engine's own mutation of bytes that mean nothing to it.
extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t capacity);

namespace dmxfuzz {

/// Seeds that the fuzzer makes itself; they come before those of files.
std::vector<std::string> builtInSeeds();

/// Aborts with a sentence; a fuzzer's assertion.
void promise(bool kept, const char *what);

} // namespace dmxfuzz
