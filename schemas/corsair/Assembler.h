//===- Assembler.h - the text form of images --------------------*- C++ -*-===//
#pragma once

#include "Image.h"

namespace dmx::corsair {

/// Reads the text form (ISA.md, "Text form") against a machine. The error has
/// the line's number. The image is verified.
std::optional<Image> assemble(std::string_view text, const Machine &machine, std::string &error);

/// The text of an image; assembling it gives an equal image.
std::string disassemble(const Image &image);

/// One instruction as text: `MATMUL slot=0 rows=64 imc=8 ppr=3 ib=0x0+L0*33280`.
std::string print(const Instruction &instruction);
std::optional<Instruction> parseInstruction(std::string_view line, std::string &error);

} // namespace dmx::corsair
