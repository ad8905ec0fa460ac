//===- VerifyCode.h - parts of the verifier ---------------------*- C++ -*-===//
#pragma once

#include "../Image.h"

namespace dmx::corsair {

/// One instruction by itself: fields, terms and keys in range, moves legal.
/// `depth` is how many loops enclose it. Sentences without a full stop.
MaybeError verifyInstruction(const Instruction &instruction, const Image &image, int depth);
/// A queue's stream.
MaybeError verifyStream(const Code &code, const Image &image);
/// A CPU function.
MaybeError verifyFunction(const Code &code, const Image &image);
/// Arguments, pieces and launches.
MaybeError verifyKernel(const Kernel &kernel, const Image &image);

} // namespace dmx::corsair
