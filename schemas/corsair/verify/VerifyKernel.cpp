//===- VerifyKernel.cpp - arguments, pieces and launches ------------------===//

#include "VerifyCode.h"

#include <algorithm>

namespace dmx::corsair {
namespace {

std::string str(int64_t value) { return std::to_string(value); }

/// Bytes of an argument on the host: sums of two places in it are far from overflow.
constexpr uint64_t kMostBytes = uint64_t(1) << 60;

bool isInteger(HostType type) { return type < HostType::F16; }
bool isFloat(HostType type) { return type >= HostType::F16; }

/// Whether the boundary converts between a host type and a form.
bool converts(HostType type, ElemKind form) {
  switch (form) {
  case ElemKind::Raw:
    return false;
  case ElemKind::Bool:
    return type == HostType::Bool;
  case ElemKind::I8:
  case ElemKind::U8:
  case ElemKind::I16:
  case ElemKind::I32:
  case ElemKind::I64:
    return isInteger(type) && type != HostType::Bool;
  default:
    return isFloat(type);
  }
}

class Checker {
public:
  Checker(const Kernel &kernel, const Image &image) : kernel(kernel), machine(image.machine), image(image) {}
  MaybeError run();

private:
  const Kernel &kernel;
  const Machine &machine;
  const Image &image;

  MaybeError checkFootprint() const;
  MaybeError checkArgument(const Argument &argument) const;
  MaybeError checkPiece(const Argument &argument, const Piece &piece, const std::vector<int64_t> &shape) const;
  MaybeError checkBox(const Piece &piece, const std::vector<int64_t> &shape) const;
  MaybeError checkCover(const Argument &argument, const std::vector<int64_t> &shape) const;
  MaybeError checkProgram(const Program &program) const;
};

MaybeError Checker::checkFootprint() const {
  for (int i = 0; i < kMemories; ++i)
    if (kernel.footprint.bytes[i] > machine.memories[i].size)
      return "capacity: its footprint in " + std::string(nameOf(static_cast<Memory>(i))) + " is " +
             std::to_string(kernel.footprint.bytes[i]) + " bytes, there are " +
             std::to_string(machine.memories[i].size);
  return std::nullopt;
}

MaybeError Checker::checkBox(const Piece &piece, const std::vector<int64_t> &shape) const {
  if (piece.begin.size() != shape.size() || piece.extent.size() != shape.size())
    return "has a box of rank " + str(piece.extent.size()) + " in a tensor of rank " + str(shape.size());
  for (size_t i = 0; i < shape.size(); ++i)
    if (piece.begin[i] < 0 || piece.extent[i] < 0 || piece.begin[i] > shape[i] ||
        piece.extent[i] > shape[i] - piece.begin[i])
      return "leaves the tensor in dimension " + str(i);
  return std::nullopt;
}

MaybeError Checker::checkPiece(const Argument &argument, const Piece &piece, const std::vector<int64_t> &shape) const {
  bool state = argument.role == Role::State, onChip = piece.memory == Memory::GM || piece.memory == Memory::ST;
  if (piece.memory != Memory::DDR && !(state && onChip))
    return "lies in " + std::string(nameOf(piece.memory)) +
           (state ? ", allowed are DDR, GM and ST" : ", allowed is DDR");
  if (piece.unit >= static_cast<uint32_t>(machine.unitCount(piece.memory)))
    return "unit " + str(piece.unit) + " does not exist";
  if (MaybeError wrong = checkBox(piece, shape))
    return wrong;
  bool tiled = isTiled(argument.form), bytes = argument.role == Role::Const;
  size_t strides = bytes ? 0 : tiled ? 2 : shape.size();
  if (piece.strides.size() != strides)
    return "has " + str(piece.strides.size()) + " strides instead of " + str(strides);
  for (int64_t stride : piece.strides)
    if (stride < 0 || stride % (tiled ? 64 : elementBytes(argument.form)))
      return "has stride " + str(stride) + ", which is negative or misaligned";
  if (tiled && !bytes) {
    if (shape.size() < 2)
      return std::string("a block form needs two dimensions");
    bool columns = static_cast<int>(argument.form) & 1;
    for (size_t i = 0; columns && i + 2 < shape.size(); ++i)
      if (piece.extent[i] > 1)
        return std::string("a C form has one piece per matrix of a batch");
  }
  if (piece.address % (tiled ? 64 : elementBytes(argument.form)))
    return "address " + std::to_string(piece.address) + " is misaligned";
  uint64_t limit = kernel.footprint.bytes[static_cast<int>(piece.memory)];
  if (!liesWithin(piece.address, spanOf(argument, piece), limit))
    return "capacity: ends beyond the kernel's footprint in " + std::string(nameOf(piece.memory)) + ", " +
           std::to_string(limit) + " bytes";
  return std::nullopt;
}

/// The pieces of an output are disjoint boxes that fill the tensor.
MaybeError Checker::checkCover(const Argument &argument, const std::vector<int64_t> &shape) const {
  auto volume = [](const std::vector<int64_t> &extents) {
    Size product = 1;
    for (int64_t extent : extents)
      product *= extent;
    return product;
  };
  Size covered;
  for (size_t i = 0; i < argument.pieces.size(); ++i) {
    const Piece &a = argument.pieces[i];
    covered += volume(a.extent);
    for (size_t k = 0; k < i; ++k) {
      const Piece &b = argument.pieces[k];
      bool overlap = volume(a.extent) != 0 && volume(b.extent) != 0;
      for (size_t d = 0; d < shape.size(); ++d)
        overlap &= a.begin[d] < b.begin[d] + b.extent[d] && b.begin[d] < a.begin[d] + a.extent[d];
      if (overlap)
        return "pieces " + str(k) + " and " + str(i) + " of an output overlap";
    }
  }
  if (covered != volume(shape))
    return "its pieces cover " + covered.text() + " of " + volume(shape).text() + " elements";
  return std::nullopt;
}

MaybeError Checker::checkArgument(const Argument &argument) const {
  uint64_t bytes = argument.hostBytes();
  if (bytes > kMostBytes)
    return std::string("its size does not fit 60 bits");
  if (argument.role == Role::Scalar) {
    if (!isInteger(argument.type) || bytes != static_cast<uint64_t>(bytesOf(argument.type)) ||
        argument.reg >= kRegisters || !argument.pieces.empty())
      return std::string("a scalar is one integer that goes to a register, without pieces");
    return std::nullopt;
  }
  std::vector<int64_t> shape = argument.shape;
  if (argument.role == Role::Const) {
    if (argument.form == ElemKind::Raw || !argument.perm.empty())
      return std::string("a constant needs a kind and no perm");
    shape = {static_cast<int64_t>(bytes)};
  } else if (!converts(argument.type, argument.form)) {
    return "host type " + std::string(nameOf(argument.type)) + " does not go into form " +
           std::string(nameOf(argument.form));
  }
  if (!argument.perm.empty()) {
    std::vector<uint8_t> sorted = argument.perm;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < sorted.size(); ++i)
      if (sorted.size() != shape.size() || sorted[i] != i)
        return std::string("perm is no permutation of its dimensions");
    for (size_t i = 0; i < shape.size(); ++i)
      shape[i] = argument.shape[argument.perm[i]];
  }
  if (argument.pieces.size() > 4096)
    return std::string("more than 4096 pieces");
  for (size_t i = 0; i < argument.pieces.size(); ++i)
    if (MaybeError wrong = checkPiece(argument, argument.pieces[i], shape))
      return "piece " + str(i) + " " + *wrong;
  return argument.role == Role::Output ? checkCover(argument, shape) : std::nullopt;
}

MaybeError Checker::checkProgram(const Program &program) const {
  int64_t before = -1;
  for (const Launch &launch : program.launches) {
    if (launch.quad >= static_cast<uint32_t>(machine.quadCount()) || launch.quad <= before)
      return "launches quad " + str(launch.quad) + ", which does not exist or is out of order";
    before = launch.quad;
    for (size_t queue = 0; queue < launch.streams.size(); ++queue) {
      uint32_t stream = launch.streams[queue];
      if (stream == kNoStream)
        continue;
      if (stream >= image.streams.size())
        return "launches stream " + str(stream) + " of " + str(image.streams.size());
      if (static_cast<int>(queue) >= machine.queuesPerQuad)
        return "uses queue " + str(queue) + ", a quad has " + str(machine.queuesPerQuad);
    }
  }
  return std::nullopt;
}

MaybeError Checker::run() {
  if (MaybeError wrong = checkFootprint())
    return wrong;
  for (const Argument &argument : kernel.arguments)
    if (MaybeError wrong = checkArgument(argument))
      return "argument '" + argument.name + "': " + *wrong;
  for (uint32_t reg : kernel.dimRegisters)
    if (reg != kNoRegister && reg >= kRegisters)
      return "a dim goes to register " + str(reg);
  if (MaybeError wrong = checkProgram(kernel.init))
    return "init " + *wrong;
  if (MaybeError wrong = checkProgram(kernel.main))
    return "main " + *wrong;
  return std::nullopt;
}

} // namespace

MaybeError verifyKernel(const Kernel &kernel, const Image &image) { return Checker(kernel, image).run(); }

} // namespace dmx::corsair
