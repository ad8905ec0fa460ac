//===- Image.h - .aiebin: what a bundle has for the array -------*- C++ -*-===//
//
// All that is run: overlays, which configure the array (their initial writes are a CDO), and kernels, each an overlay,
// a control stream and a table of arguments. README.md has the bytes.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Cdo.h"
#include "Control.h"
#include "CoreProgram.h"

#include <cstddef>

namespace dmx::aie {

/// How the host's elements become those in the array's memory.
enum class Element : uint8_t {
  Bf16, ///< f32, rounded to the nearest bf16, to even where two are
  F32,  ///< f32 as it is
  I32,  ///< i32 as it is
};
int64_t bytesOf(Element element);
std::string_view nameOf(Element element);

/// A matrix of the host, and its form in the array's DDR: rows one after the other, each `pitch` elements, zeros behind
/// what the host has.
struct Argument {
  std::string name;
  bool output = false;
  bool packed = false; ///< an input whose buffer has the form already, not the host's f32
  Element element = Element::F32;
  uint32_t rows = 0, columns = 0;  ///< of the host
  uint32_t ddrRows = 0, pitch = 0; ///< of the form, at least so many
  uint64_t hostBytes() const { return packed ? ddrBytes() : uint64_t(4) * rows * columns; }
  uint64_t ddrBytes() const { return static_cast<uint64_t>(bytesOf(element)) * ddrRows * pitch; }
  bool operator==(const Argument &) const = default;
};

struct Overlay {
  std::string name;
  std::vector<CdoCommand> initial;
  std::vector<CoreProgram> programs;
  bool operator==(const Overlay &) const = default;
};

struct KernelCode {
  std::string name;
  uint32_t overlay = 0;
  std::vector<Argument> arguments;
  std::vector<ControlOp> control;
  bool operator==(const KernelCode &) const = default;
};

struct Image {
  std::string machine; ///< machineOf knows it
  std::vector<Overlay> overlays;
  std::vector<KernelCode> kernels;
  bool operator==(const Image &) const = default;
};

std::vector<std::byte> write(const Image &image);
/// nullopt, and why, where the bytes are no image that `verify` accepts. Trusts nothing.
std::optional<Image> readImage(std::span<const std::byte> bytes, std::string &error);
/// Empty where all that the image names is there: machine, tiles, registers, channels, arguments; else what is wrong.
std::string verify(const Image &image);

} // namespace dmx::aie
