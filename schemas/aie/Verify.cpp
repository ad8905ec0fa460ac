//===- Verify.cpp - whether an image names only what is there -------------===//
#include "Configure.h"
#include "Image.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace dmx::aie {
namespace {

constexpr uint64_t kMostDdr = uint64_t(1) << 36; ///< bytes of an argument; its addresses in DDR have as much room
constexpr uint64_t kMostExtent = uint64_t(1) << 31;

std::string hex(uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

/// What is wrong with writing so many words from a register on.
std::string checkWrites(const Machine &machine, uint64_t address, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint64_t at = address + 4 * i;
    Tile tile = tileOf(static_cast<uint32_t>(at));
    std::optional<Register> found;
    if (at <= UINT32_MAX && machine.has(tile))
      found = registerAt(machine.kindOf(tile.row), offsetIn(static_cast<uint32_t>(at)));
    if (!found)
      return "writes " + hex(at) + ", where the machine has no register";
    if (found->kind == RegisterKind::Program)
      return "writes program memory; what a core runs is a core program";
  }
  return {};
}

std::string checkInitial(const Machine &machine, const CdoCommand &command) {
  switch (command.kind) {
  case CdoCommand::Kind::NoOp:
    return {};
  case CdoCommand::Kind::Poll:
    return "waits for a register, which no array that starts does";
  case CdoCommand::Kind::BlockWrite:
    return checkWrites(machine, command.address, command.data.size());
  case CdoCommand::Kind::Write:
  case CdoCommand::Kind::MaskWrite:
    break;
  }
  return checkWrites(machine, command.address, 1);
}

std::string checkSync(const Machine &machine, const ControlOp &op) {
  if (op.columns == 0 || op.rows == 0 || op.tile.column + op.columns > machine.columns ||
      op.tile.row + op.rows > machine.rows)
    return "waits for tiles that the machine does not have";
  for (uint32_t row = op.tile.row; row < op.tile.row + op.rows; ++row)
    if (op.channel >= machine.tile(machine.kindOf(row)).channels)
      return "waits for channel " + std::to_string(op.channel) + " of a " + std::string(nameOf(machine.kindOf(row))) +
             " tile";
  return {};
}

/// The address of an argument that is put into a shim's BD.
std::string checkPatch(const Machine &machine, const KernelCode &kernel, const ControlOp &op) {
  Tile tile = tileOf(static_cast<uint32_t>(op.address));
  std::optional<Register> at;
  if (machine.has(tile) && machine.kindOf(tile.row) == TileKind::Shim)
    at = registerAt(TileKind::Shim, offsetIn(static_cast<uint32_t>(op.address)));
  if (!at || at->kind != RegisterKind::Bd || at->word != 1)
    return "patches " + hex(op.address) + ", which is no address of a shim's BD";
  if (op.argument >= kernel.arguments.size())
    return "patches in argument " + std::to_string(op.argument) + " of " + std::to_string(kernel.arguments.size());
  // Only the lower bits of an offset would reach the BD.
  if (uint64_t bytes = kernel.arguments[op.argument].ddrBytes(); op.offset >= bytes)
    return "patches in byte " + std::to_string(op.offset) + " of argument " + std::to_string(op.argument) +
           ", which has " + std::to_string(bytes);
  return {};
}

std::string checkOp(const Machine &machine, const KernelCode &kernel, const ControlOp &op) {
  using Kind = ControlOp::Kind;
  switch (op.kind) {
  case Kind::Write:
  case Kind::MaskWrite:
    return checkWrites(machine, op.address, 1);
  case Kind::BlockWrite:
    return checkWrites(machine, op.address, op.data.size());
  case Kind::Sync:
    return checkSync(machine, op);
  case Kind::Patch:
    return checkPatch(machine, kernel, op);
  case Kind::Preempt:
  case Kind::Load:
    break;
  }
  return "is not run by this device";
}

std::string checkFunction(const Machine &machine, const Image &image, const UserFunction &function) {
  std::string where = "the user's function '" + function.symbol + "' ";
  if (function.object >= image.objects.size())
    return where + "is of object " + std::to_string(function.object) + " of " + std::to_string(image.objects.size());
  if (function.buffers.empty() || function.buffers.size() > kAddresses || function.dims > kScalars - 2)
    return where + "takes " + std::to_string(function.buffers.size()) + " buffers and " +
           std::to_string(function.dims) + " sizes; calls have 1 to " + std::to_string(kAddresses) + " and up to " +
           std::to_string(kScalars - 2);
  for (const UserFunction::Buffer &buffer : function.buffers)
    if (int64_t most = machine.tile(TileKind::Core).dataBytes; buffer.bytes == 0 || buffer.bytes > most)
      return where + "takes " + std::to_string(buffer.bytes) + " bytes of '" + buffer.name + "', cores have " +
             std::to_string(most);
  return {};
}

std::string checkOverlay(const Machine &machine, const Image &image, const Overlay &overlay) {
  std::string where = "overlay '" + overlay.name + "': ";
  for (size_t i = 0; i < overlay.initial.size(); ++i)
    if (std::string wrong = checkInitial(machine, overlay.initial[i]); !wrong.empty())
      return where + "command " + std::to_string(i) + " " + wrong;
  std::set<Tile> cores;
  for (const CoreProgram &program : overlay.programs) {
    if (std::string wrong = check(machine, program); !wrong.empty())
      return where + wrong;
    for (const Instruction &at : program.code)
      if (at.op == CoreOp::CallUser && (at.value < 0 || static_cast<size_t>(at.value) >= image.functions.size()))
        return where + "core " + textOf(program.tile) + " calls function " + std::to_string(at.value) + " of " +
               std::to_string(image.functions.size());
    if (!cores.insert(program.tile).second)
      return where + "core " + textOf(program.tile) + " has two programs";
  }
  return {};
}

/// What depends on dims of a dispatch names ops, words and dims that are there, in order, and its values fit.
std::string checkKernelDims(const KernelCode &kernel) {
  auto number = [](const char *what, size_t i) { return std::string(what) + " " + std::to_string(i) + " "; };
  for (const Argument &argument : kernel.arguments)
    for (const Axis &axis : argument.axes)
      if (axis.dim && (axis.dim > kernel.most.size() || axis.extent != kernel.most[axis.dim - 1] || argument.packed))
        return "argument '" + argument.name + "' has an extent by a dim that is not there, or is another";
  size_t ops = kernel.control.size(), before = 0;
  for (size_t i = 0; i < kernel.guards.size(); ++i) {
    const Guard &guard = kernel.guards[i];
    if (guard.dim >= kernel.most.size() || guard.first < before || guard.first > ops || guard.count > ops - guard.first)
      return number("guard", i) + "is out of order, or of ops or a dim that are not there";
    before = guard.first;
  }
  before = 0;
  for (size_t i = 0; i < kernel.dimWords.size(); ++i) {
    const DimWord &word = kernel.dimWords[i];
    bool good = word.dim < kernel.most.size() && word.op >= before && word.op < ops;
    const ControlOp *op = good ? &kernel.control[word.op] : nullptr;
    size_t words = !op                                       ? 0
                   : op->kind == ControlOp::Kind::Write      ? 1
                   : op->kind == ControlOp::Kind::BlockWrite ? op->data.size()
                                                             : 0;
    if (word.word >= words || uint64_t(word.factor) * kernel.most[word.dim] > UINT32_MAX)
      return number("word", i) + "by a dim is out of order, or of an op or a dim that are not there";
    before = word.op;
  }
  return {};
}

std::string checkKernel(const Machine &machine, const Image &image, const KernelCode &kernel) {
  std::string where = "kernel '" + kernel.name + "': ";
  if (kernel.overlay >= image.overlays.size())
    return where + "it needs overlay " + std::to_string(kernel.overlay) + " of " +
           std::to_string(image.overlays.size());
  if (kernel.arguments.size() > kMostArguments)
    return where + "it has " + std::to_string(kernel.arguments.size()) + " arguments, the most are " +
           std::to_string(kMostArguments);
  for (const Argument &argument : kernel.arguments) {
    if (std::string wrong = checkForm(argument); !wrong.empty())
      return where + "argument '" + argument.name + "' " + wrong;
  }
  if (std::string wrong = checkKernelDims(kernel); !wrong.empty())
    return where + wrong;
  for (size_t i = 0; i < kernel.control.size(); ++i)
    if (std::string wrong = checkOp(machine, kernel, kernel.control[i]); !wrong.empty())
      return where + "op " + std::to_string(i) + " (" + std::string(nameOf(kernel.control[i].kind)) + ") " + wrong;
  return {};
}

} // namespace

uint64_t Argument::hostElements() const {
  Size count = 1;
  for (const Axis &axis : axes)
    count *= axis.extent;
  return count.value();
}

std::vector<Axis> rowsOf(uint32_t rows, uint32_t columns, uint32_t pitch) {
  return {{rows, 0, 1, pitch, 0}, {columns, 0, 1, 1, 0}};
}

std::string checkForm(const Argument &argument) {
  Size elements = Size(argument.rows) * argument.pitch, count = 1, last = 0;
  if (argument.axes.size() > kMostAxes)
    return "has " + std::to_string(argument.axes.size()) + " dims";
  if (elements == 0 ||
      !elements.fits(kMostDdr / std::max<uint64_t>(4, static_cast<uint64_t>(bytesOf(argument.element)))))
    return "has a form of " + std::to_string(argument.rows) + " rows of " + std::to_string(argument.pitch);
  for (const Axis &axis : argument.axes) {
    bool good = axis.extent && axis.extent < kMostExtent && axis.first < kMostExtent && axis.split;
    count *= axis.extent;
    if (!good || !count.fits(kMostDdr))
      return "has a dim of " + std::to_string(axis.extent) + " from " + std::to_string(axis.first) + ", split by " +
             std::to_string(axis.split);
    uint64_t end = uint64_t(axis.extent) - 1 + axis.first; // of all its numbers none lies behind that
    last += Size(end / axis.split) * axis.stride + Size(std::min<uint64_t>(end, axis.split - 1)) * axis.phase;
  }
  if (!argument.packed && !liesWithin(last, 1, elements))
    return "does not fit its form";
  return elements.fits(kMostPadding * (count + kSpareElements)) ? "" : "has a form that is mostly padding";
}

std::string verify(const Image &image) {
  std::optional<Machine> machine = machineOf(image.machine);
  if (!machine)
    return "it is for the machine '" + image.machine + "'; known are " + machineNames();
  std::set<std::string_view> names;
  for (const UserFunction &function : image.functions)
    if (std::string wrong = checkFunction(*machine, image, function); !wrong.empty())
      return wrong;
  for (const Overlay &overlay : image.overlays)
    if (std::string wrong = checkOverlay(*machine, image, overlay); !wrong.empty())
      return wrong;
  for (const KernelCode &kernel : image.kernels) {
    if (std::string wrong = checkKernel(*machine, image, kernel); !wrong.empty())
      return wrong;
    if (!names.insert(kernel.name).second)
      return "there are two kernels '" + kernel.name + "'";
  }
  return {};
}

} // namespace dmx::aie
