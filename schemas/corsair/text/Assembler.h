//===- Assembler.h - the text form of images --------------------*- C++ -*-===//
#pragma once

#include "../Image.h"

namespace dmx::corsair {

/// Reads the text form (ISA.md, "Text form") against a machine. The error has
/// the line's number. The image is verified.
std::optional<Image> assemble(std::string_view text, const Machine &machine, std::string &error);

/// The text of an image; assembling it gives an equal image.
std::string disassemble(const Image &image);

/// An instruction's text in parts: `MATMUL`, {`slot`, `0`} ...; what has its default value is left out.
struct InstructionText {
  std::string mnemonic;
  std::vector<std::pair<std::string, std::string>> fields;
  std::string line() const;
};
/// With an image, marks and functions are always there, by name; else they are numbers.
InstructionText textOf(const Instruction &instruction, const Image *image = nullptr);

/// The lines of an argument and its pieces; of a launch.
std::string print(const Argument &argument);
std::string print(const Launch &launch, const Image &image);

/// One instruction as text: `MATMUL slot=0 rows=64 imc=8 ppr=3 ib=0x0+L0*33280`.
std::string print(const Instruction &instruction);
std::optional<Instruction> parseInstruction(std::string_view line, std::string &error);

} // namespace dmx::corsair
