//===- CorsairFuzzer.cpp - hostile images of the simulated card -----------===//
//
// An input is an image's bytes; its checksums are made right, or else no mutation would get past them. Mutations change
// the image as a structure: tensors, pieces and strides, footprints, registers, operands and keys. What is accepted is
// shown as dmx-inspect shows it, and run: without programs that would only take long.
//
//===----------------------------------------------------------------------===//
#include "Arithmetic.h"
#include "Engine.h"

#include "runtime/devices/Device.h"
#include "schemas/Size.h"
#include "schemas/corsair/MemoryMap.h"
#include "schemas/corsair/text/Assembler.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

namespace isa = dmx::corsair;
using dmx::Size;
using dmxfuzz::Arithmetic;
using dmxfuzz::promise;

namespace {

constexpr uint64_t kMostBytes = 1 << 20, kMostElements = 1 << 18, kMostItems = 1 << 16;

std::vector<uint8_t> seed(const char *path) {
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}}, error;
  std::optional<isa::Image> image = isa::assemble(text, isa::builtinMachine(), error);
  promise(image.has_value(), "the assembly of a seed is sound");
  return isa::write(*image);
}

//===--- what would take long -------------------------------------------------------------===//

bool isCount(std::string_view name) {
  static constexpr std::string_view names[] = {"n",          "n0",     "n1",    "n2",     "n3",   "rows",
                                               "cols",       "batch",  "steps", "win_kh", "unit", "win_c",
                                               "img_blocks", "win_kw", "win_h", "win_w",  "tail"};
  return std::ranges::find(names, name) != std::end(names);
}

/// Whether an instruction does little by itself, whatever registers have.
bool isShort(const isa::Instruction &in) {
  Size items = 1;
  const isa::InstructionInfo &info = in.info();
  for (size_t i = 0; i < in.operands.size(); ++i)
    if (isCount(info.fields[i].name)) {
      if (!in.operands[i].terms.empty())
        return false;
      items *= std::max<int64_t>(in.operands[i].base, 1);
    }
  for (auto [key, value] : in.config)
    if (isCount(isa::findConfigKey(key)->name))
      items *= std::max<int64_t>(value, 1);
  return items.fits(kMostItems);
}

bool isShort(const isa::Image &image, const isa::Program &program) {
  for (const isa::Launch &launch : program.launches)
    for (uint32_t stream : launch.streams) {
      if (stream == isa::kNoStream)
        continue;
      Size trips = 1, all;
      for (const isa::Instruction &in : image.streams[stream].instructions) {
        if (!isShort(in))
          return false;
        if (in.opcode == isa::Opcode::Loop)
          trips *= std::max<int64_t>(in.operands[0].base, 1);
        all += trips;
      }
      if (!all.fits(64))
        return false;
    }
  return true;
}

bool isSmall(const isa::Kernel &kernel) {
  Size bytes, elements;
  for (const isa::Argument &argument : kernel.arguments) {
    bytes += argument.hostBytes();
    for (const isa::Piece &piece : argument.pieces) {
      Size volume = 1;
      for (int64_t extent : piece.extent)
        volume *= std::max<int64_t>(extent, 1);
      elements += volume;
    }
  }
  return bytes.fits(kMostBytes) && elements.fits(kMostElements) && kernel.dimRegisters.size() < 64;
}

//===--- running --------------------------------------------------------------------------===//

/// As a session does. What a run ends in has a name.
void run(dmxrt::Device &device, const dmxrt::CodeImage &code, const isa::Kernel &kernel) {
  using namespace dmxrt;
  std::vector<std::vector<std::byte>> buffers;
  std::vector<void *> pointers;
  std::vector<uint64_t> sizes;
  for (const isa::Argument &argument : kernel.arguments) {
    buffers.emplace_back(argument.hostBytes(), std::byte(1));
    pointers.push_back(buffers.back().data());
    sizes.push_back(buffers.back().size());
  }
  std::vector<int64_t> dims(kernel.dimRegisters.size(), 1);
  DeviceTask task;
  task.kernel = code.findKernel(kernel.name);
  task.buffers = pointers.data();
  task.bufferBytes = sizes;
  task.dims = dims.data();
  task.dimCount = static_cast<uint32_t>(dims.size());
  task.work = 1;
  const Segment segment{0, 1};
  device.setProgramCount(1);
  if (Status status = device.prepare({&task, 1}, {&segment, 1}); !status) {
    promise(!status.error().message.empty(), "a task is prepared, or refused with a sentence");
    return;
  }
  device.startRun();
  device.enqueue(0);
  RunOutcome outcome = device.fence();
  promise(!outcome.code || outcome.detail.find(": ") != std::string::npos, "a fault has a name");
}

void runAll(isa::Image image) {
  using namespace dmxrt;
  for (isa::Kernel &kernel : image.kernels) {
    bool isQuick = isShort(image, kernel.main) && isShort(image, kernel.init);
    if (isQuick) {
      isa::memoryMap(image, kernel);
      continue;
    }
    kernel.main.launches.clear();
    kernel.init.launches.clear();
  }
  const std::string target = "corsair";
  DeviceOptions options;
  options.threads = 1;
  auto devices = createDevices({&target, 1}, options);
  promise(static_cast<bool>(devices), "the device is there");
  std::vector<uint8_t> bytes = isa::write(image);
  auto code = devices->front()->loadCode({reinterpret_cast<const std::byte *>(bytes.data()), bytes.size()});
  promise(static_cast<bool>(code), "the device loads what is an image");
  for (const isa::Kernel &kernel : image.kernels)
    if (isSmall(kernel))
      run(*devices->front(), **code, kernel);
}

//===--- mutations --------------------------------------------------------------------------===//

/// An argument whose pieces reach once around all addresses, or whose own bytes do.
void wrap(isa::Argument &argument, Arithmetic &arithmetic) {
  if (argument.shape.empty())
    return;
  size_t axis = arithmetic.below(argument.shape.size());
  if (arithmetic.oneIn(3) && argument.shape.size() > 1) { // its bytes
    std::vector<uint64_t> factors = arithmetic.wrapping(argument.shape.size(), 63);
    for (size_t i = 0; i < factors.size(); ++i)
      argument.shape[i] = static_cast<int64_t>(factors[i]);
    for (isa::Piece &piece : argument.pieces)
      for (size_t i = 0; i < std::min(piece.extent.size(), factors.size()); ++i)
        piece.extent[i] = arithmetic.oneIn(2) ? argument.shape[i] : piece.extent[i];
    return;
  }
  // Steps along an axis of extent 2^k + 1.
  int64_t extent = 1 + (int64_t(1) << (1 + arithmetic.below(12)));
  auto stride = static_cast<int64_t>(arithmetic.wrappingWith(static_cast<uint64_t>(extent - 1)) &
                                     (uint64_t(INT64_MAX) & ~uint64_t(63)));
  argument.shape[axis] = extent;
  for (isa::Piece &piece : argument.pieces) {
    if (axis < piece.extent.size())
      piece.extent[axis] = extent;
    if (!piece.strides.empty())
      piece.strides[std::min(axis, piece.strides.size() - 1)] = stride;
  }
}

/// Nothing along one axis, and much along another.
void empty(isa::Argument &argument, Arithmetic &arithmetic) {
  if (argument.shape.size() < 2)
    return;
  size_t axis = arithmetic.below(argument.shape.size()), other = (axis + 1) % argument.shape.size();
  argument.shape[axis] = 0;
  argument.shape[other] = static_cast<int64_t>(arithmetic.edge() >> 4);
  for (isa::Piece &piece : argument.pieces)
    for (size_t i = 0; i < std::min(piece.extent.size(), argument.shape.size()); ++i) {
      piece.begin[std::min(i, piece.begin.size() - 1)] = 0;
      piece.extent[i] = argument.shape[i];
    }
}

void changePiece(isa::Piece &piece, uint64_t room, Arithmetic &arithmetic) {
  switch (arithmetic.below(6)) {
  case 0:
    piece.address = arithmetic.oneIn(4) ? arithmetic.edge() : arithmetic.nearEnd(room, 64 * arithmetic.below(130));
    break;
  case 1:
    if (!piece.strides.empty())
      arithmetic.pick(piece.strides) = static_cast<int64_t>(arithmetic.stride(64));
    break;
  case 2:
    if (!piece.extent.empty())
      arithmetic.pick(piece.extent) = static_cast<int64_t>(arithmetic.edge());
    break;
  case 3:
    if (!piece.begin.empty())
      arithmetic.pick(piece.begin) = static_cast<int64_t>(arithmetic.edge());
    break;
  case 4:
    piece.unit = static_cast<uint32_t>(arithmetic.edge());
    break;
  default:
    piece.memory = static_cast<isa::Memory>(arithmetic.below(isa::kMemories));
  }
}

void changeArgument(isa::Argument &argument, const isa::Kernel &kernel, Arithmetic &arithmetic) {
  switch (arithmetic.below(8)) {
  case 0:
  case 1:
    return wrap(argument, arithmetic);
  case 2:
    return empty(argument, arithmetic);
  case 3:
    std::shuffle(argument.perm.begin(), argument.perm.end(), arithmetic.random);
    if (!argument.shape.empty())
      arithmetic.pick(argument.shape) = static_cast<int64_t>(arithmetic.edge());
    return;
  case 4:
    argument.form = static_cast<isa::ElemKind>(arithmetic.below(isa::kElemKinds));
    argument.role = static_cast<isa::Role>(arithmetic.below(isa::kRoles));
    return;
  default:
    if (argument.pieces.empty())
      return;
    isa::Piece &piece = arithmetic.pick(argument.pieces);
    changePiece(piece, kernel.footprint.bytes[static_cast<size_t>(piece.memory)], arithmetic);
  }
}

void changeInstruction(isa::Instruction &in, const isa::Kernel &kernel, Arithmetic &arithmetic) {
  uint64_t room = arithmetic.pick(kernel.footprint.bytes);
  if (!in.config.empty() && arithmetic.oneIn(2)) {
    auto &[key, value] = arithmetic.pick(in.config);
    const isa::ConfigKeyInfo *info = isa::findConfigKey(key);
    value = std::clamp(static_cast<int64_t>(arithmetic.stride(64)), info->min, info->max);
  } else if (!in.operands.empty()) {
    size_t index = arithmetic.below(in.operands.size());
    isa::Operand &operand = in.operands[index];
    if (in.info().fields[index].affine && arithmetic.oneIn(3))
      operand.terms = {isa::registerTerm(static_cast<int>(arithmetic.below(isa::kRegisters)),
                                         static_cast<int64_t>(arithmetic.stride(64) | 1))};
    else
      operand.base = static_cast<int64_t>(arithmetic.oneIn(3) ? arithmetic.edge() : arithmetic.nearEnd(room));
  }
}

void change(isa::Image &image, Arithmetic &arithmetic) {
  if (image.kernels.empty())
    return;
  isa::Kernel &kernel = arithmetic.pick(image.kernels);
  switch (arithmetic.below(8)) {
  case 0: {
    auto memory = arithmetic.below(isa::kMemories);
    uint64_t size = image.machine.memories[memory].size, now = kernel.footprint.bytes[memory];
    kernel.footprint.bytes[memory] = arithmetic.oneIn(2) ? arithmetic.nearEnd(now) : arithmetic.nearEnd(size);
    break;
  }
  case 1: {
    isa::Program &program = arithmetic.oneIn(2) ? kernel.init : kernel.main;
    if (!program.launches.empty())
      arithmetic.pick(arithmetic.pick(program.launches).registers) = static_cast<int64_t>(arithmetic.edge());
    break;
  }
  case 2:
  case 3:
    if (!image.streams.empty())
      changeInstruction(arithmetic.pick(arithmetic.pick(image.streams).instructions), kernel, arithmetic);
    break;
  default:
    if (!kernel.arguments.empty())
      changeArgument(arithmetic.pick(kernel.arguments), kernel, arithmetic);
  }
}

} // namespace

std::vector<std::string> dmxfuzz::builtInSeeds() {
  std::vector<std::string> seeds;
  for (const char *path : {DMXC_CORSAIR_SEEDS}) {
    std::vector<uint8_t> bytes = seed(path);
    seeds.emplace_back(bytes.begin(), bytes.end());
  }
  return seeds;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string why;
  std::optional<isa::Image> image = isa::read({data, size}, why, isa::Checksums::Ignore);
  promise(image.has_value() == why.empty(), "an image is read, or refused with a sentence");
  if (image)
    runAll(std::move(*image));
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed) {
  Arithmetic arithmetic(seed);
  static const std::vector<std::string> sound = dmxfuzz::builtInSeeds();
  std::string why;
  std::optional<isa::Image> image = isa::read({data, size}, why, isa::Checksums::Ignore);
  if (!image) { // what was changed once and refused goes no further
    const std::string &other = arithmetic.pick(sound);
    image = isa::read({reinterpret_cast<const uint8_t *>(other.data()), other.size()}, why, isa::Checksums::Ignore);
  }
  if (arithmetic.oneIn(32))
    return LLVMFuzzerMutate(data, size, capacity);
  for (uint64_t changes = 1 + arithmetic.below(3); changes; --changes)
    change(*image, arithmetic);
  std::vector<uint8_t> bytes = isa::write(*image);
  if (bytes.size() > capacity)
    return size;
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}
