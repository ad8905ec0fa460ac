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

#include "schemas/Size.h"

#include <cstddef>

namespace dmx::aie {

/// How the host's elements become those in the array's memory.
enum class Element : uint8_t {
  Bf16,      ///< f32, rounded to the nearest bf16, to even where two are
  F32,       ///< f32 as it is
  I32,       ///< i32 as it is
  I8,        ///< bytes as they are, of i8 or ui8
  OwnBf16,   ///< bf16 as it is
  F32OfBf16, ///< bf16, widened; a result is rounded as above
  Bf16OfF16, ///< f16, rounded to the nearest bf16
  F32OfF16,  ///< f16, widened; a result is rounded to the nearest f16
  OwnF16,    ///< f16 as it is
  I64,       ///< i64 as it is
  Count
};
int64_t bytesOf(Element element);
/// Of the host's elements.
uint64_t hostBytesOf(Element element);
/// Of the form's, and of the host's.
std::string_view nameOf(Element element);
std::string_view hostNameOf(Element element);
/// That which makes such a form of such elements; nullopt where the border does not.
std::optional<Element> elementOf(std::string_view host, std::string_view form);

/// A dim of the host's tensor, and where its numbers lie in the form, in elements. With a `split` of 1 they lie a
/// stride apart, from `first` strides on; else number i + first is the quotient'th of one of `split` interleaved parts,
/// which are a `phase` apart: the rows of an image that a convolution steps over, or output pixels that share a row.
struct Axis {
  uint32_t extent = 0; ///< where a dim of the dispatch says it, the most that it may say
  uint32_t first = 0, split = 1;
  uint32_t stride = 0, phase = 0;
  uint32_t dim = 0; ///< 0: the extent is fixed; else the number of the dim behind 1
  uint64_t at(uint64_t index) const { return (index + first) / split * stride + (index + first) % split * phase; }
  bool operator==(const Axis &) const = default;
};

/// A tensor of the host, row-major, and its form in the array's DDR: rows one after the other, each `pitch` elements,
/// and zeros where the host has nothing. Of a packed one axes have extents alone.
struct Argument {
  std::string name;
  bool output = false;
  bool packed = false; ///< its buffer has the form already, not the host's tensor
  Element element = Element::F32;
  std::vector<Axis> axes;       ///< the outermost first
  uint32_t rows = 0, pitch = 0; ///< of the form
  /// What kernels hand to each other in that form: where its numbers lie is known, of a packed constant it is not.
  bool kept() const;
  /// Each Size::kTooLarge where it does not fit 63 bits, which checkForm refuses.
  uint64_t hostElements() const;
  uint64_t hostBytes() const { return packed ? ddrBytes() : (Size(hostBytesOf(element)) * hostElements()).value(); }
  uint64_t ddrBytes() const { return (Size(bytesOf(element)) * rows * pitch).value(); }
  bool operator==(const Argument &) const = default;
};
inline constexpr size_t kMostAxes = 8;
/// Arguments of a kernel: the addresses of BDs have no more than 12 bits above those of an argument's bytes.
inline constexpr size_t kMostArguments = 4095;
/// Elements of a form for each of the host's and kSpareElements: more than blocks of most tensors have, and no form
/// fills the host's memory.
inline constexpr int64_t kMostPadding = 1024, kSpareElements = 1024;
/// Axes of a matrix whose rows are a pitch apart.
std::vector<Axis> rowsOf(uint32_t rows, uint32_t columns, uint32_t pitch);
/// Empty where the form has a place for each number of the host, and is not mostly padding; else a clause.
std::string checkForm(const Argument &argument);

struct Overlay {
  std::string name;
  std::vector<CdoCommand> initial;
  std::vector<CoreProgram> programs;
  bool operator==(const Overlay &) const = default;
};

/// Ops of a control stream that are run where a dim of the dispatch is above a number.
struct Guard {
  uint32_t first = 0, count = 0, dim = 0, above = 0;
  bool operator==(const Guard &) const = default;
};
/// A word of an op, of a Write or a BlockWrite, that is a dim of the dispatch times a factor.
struct DimWord {
  uint32_t op = 0, word = 0, dim = 0, factor = 0;
  bool operator==(const DimWord &) const = default;
};

struct KernelCode {
  std::string name;
  uint32_t overlay = 0;
  std::vector<Argument> arguments;
  std::vector<ControlOp> control;
  std::vector<uint32_t> most;    ///< of each dim of the dispatch: the largest that the kernel is for
  std::vector<Guard> guards;     ///< in the order of their first ops
  std::vector<DimWord> dimWords; ///< in the order of their ops; other words are those of the largest dims
  bool operator==(const KernelCode &) const = default;
};

/// A function that a user wrote, as cores call it: code of the host plays what a core's would do. Its scalars are
/// `dims` sizes, then the begin and the end of what a call computes.
struct UserFunction {
  struct Buffer {
    std::string name;
    uint32_t bytes = 0;
    bool written = false; ///< a result, which a call that does not begin at 0 finds as the one before left it
    bool operator==(const Buffer &) const = default;
  };
  std::string kernel, symbol; ///< "acme.argmax"; in the object
  uint32_t object = 0;        ///< number of the image's
  uint32_t clocks = 0;        ///< of a call, as who wrote it says
  uint32_t dims = 0;
  std::vector<Buffer> buffers; ///< a call's addresses
  bool operator==(const UserFunction &) const = default;
};

struct Image {
  std::string machine; ///< machineOf knows it
  std::vector<Overlay> overlays;
  std::vector<KernelCode> kernels;
  std::vector<UserFunction> functions;
  std::vector<std::vector<std::byte>> objects; ///< relocatable ones, of the host's processor
  bool operator==(const Image &) const = default;
};

/// What is wrong with the dims of a dispatch, a clause; empty where the kernel is for them.
std::string checkDims(const KernelCode &kernel, std::span<const int64_t> dims);
/// The kernel of a dispatch with these dims, which checkDims accepts: its ops, words and extents are theirs.
KernelCode launched(const KernelCode &kernel, std::span<const int64_t> dims);

std::vector<std::byte> write(const Image &image);
/// nullopt, and why, where the bytes are no image that `verify` accepts. Trusts nothing.
std::optional<Image> readImage(std::span<const std::byte> bytes, std::string &error);
/// Empty where all that the image names is there: machine, tiles, registers, channels, arguments; else what is wrong.
std::string verify(const Image &image);

} // namespace dmx::aie
