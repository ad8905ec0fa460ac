//===- AieFuzzer.cpp - hostile images and control streams of the array ----===//
//
// The first byte of an input says what the rest is: an image, or the words of a control stream, a CDO, a core program
// or the forms of arguments, or what follows sizes of a dispatch, that stand in a sound image, whose lengths and
// checksums are made right around them. What is accepted is run, with the largest sizes and with half of them.
//
// The sound image is corpus/aie/image, of a product of 64 x 64 x 64 on one core: a byte 0, then the .aiebin of
//   dmxc product.onnx -t aie:cols=1+rows=1
//
//===----------------------------------------------------------------------===//
#include "Arithmetic.h"
#include "Engine.h"

#include "runtime/devices/Device.h"
#include "schemas/aie/Image.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

namespace hw = dmx::aie;
using dmxfuzz::Arithmetic;
using dmxfuzz::promise;

namespace {

enum Kind : uint8_t { Image, Control, Cdo, Program, Forms, Sizes, KindCount };
constexpr uint64_t kMostBytes = 64 << 20; ///< of a run's matrices; more is not run
using Words = std::vector<uint32_t>;

const hw::Image &sound() {
  static const hw::Image image = [] {
    std::ifstream file(DMXC_AIE_SEED, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}}, error;
    promise(!bytes.empty(), "the sound image is there");
    auto read = hw::readImage({reinterpret_cast<const std::byte *>(bytes.data()) + 1, bytes.size() - 1}, error);
    promise(read.has_value(), "the sound image is read; AieFuzzer.cpp says how it is made anew");
    return *read;
  }();
  return image;
}

std::string bytesOf(Kind kind, const void *data, size_t size) {
  return static_cast<char>(kind) + std::string(static_cast<const char *>(data), size);
}
std::string bytesOf(Kind kind, const Words &words) { return bytesOf(kind, words.data(), 4 * words.size()); }
Words wordsOf(std::string_view bytes) {
  Words words(bytes.size() / 4);
  if (!words.empty())
    std::memcpy(words.data(), bytes.data(), 4 * words.size());
  return words;
}

//===--- inputs -----------------------------------------------------------------------===//

/// Arguments but for their names: rows, pitch, element, role, number of axes, five words each; then the offsets of
/// patches, two words each.
Words formsOf(const hw::KernelCode &kernel) {
  Words words;
  for (const hw::Argument &argument : kernel.arguments) {
    words.insert(words.end(),
                 {argument.rows, argument.pitch, static_cast<uint32_t>(argument.element),
                  uint32_t(argument.packed) * 2 + argument.output, static_cast<uint32_t>(argument.axes.size())});
    for (const hw::Axis &axis : argument.axes)
      words.insert(words.end(), {axis.extent, axis.first, axis.split, axis.stride, axis.phase});
  }
  for (const hw::ControlOp &op : kernel.control)
    if (op.kind == hw::ControlOp::Kind::Patch)
      words.insert(words.end(), {static_cast<uint32_t>(op.offset), static_cast<uint32_t>(op.offset >> 32)});
  return words;
}

/// The same the other way; what is missing is 0.
void putForms(const Words &words, hw::KernelCode &kernel) {
  size_t at = 0;
  auto word = [&] { return at < words.size() ? words[at++] : 0; };
  for (hw::Argument &argument : kernel.arguments) {
    argument.rows = word();
    argument.pitch = word();
    argument.element = static_cast<hw::Element>(word() % static_cast<uint32_t>(hw::Element::Count));
    uint32_t role = word() % 3;
    argument.output = role == 1;
    argument.packed = role == 2;
    argument.axes.resize(word() % (hw::kMostAxes + 1));
    for (hw::Axis &axis : argument.axes)
      for (uint32_t *field : {&axis.extent, &axis.first, &axis.split, &axis.stride, &axis.phase})
        *field = word();
  }
  for (hw::ControlOp &op : kernel.control)
    if (op.kind == hw::ControlOp::Kind::Patch) {
      uint64_t low = word();
      op.offset = uint64_t(word()) << 32 | low;
    }
}

/// How many sizes and the most of each; of each axis which it is; guards and words, of each how many there are.
Words sizesOf(const hw::KernelCode &kernel) {
  Words words{static_cast<uint32_t>(kernel.most.size())};
  words.insert(words.end(), kernel.most.begin(), kernel.most.end());
  for (const hw::Argument &argument : kernel.arguments)
    for (const hw::Axis &axis : argument.axes)
      words.push_back(axis.dim);
  words.push_back(static_cast<uint32_t>(kernel.guards.size()));
  for (const hw::Guard &guard : kernel.guards)
    words.insert(words.end(), {guard.first, guard.count, guard.dim, guard.above});
  for (const hw::DimWord &word : kernel.dimWords)
    words.insert(words.end(), {word.op, word.word, word.dim, word.factor});
  return words;
}

void putSizes(const Words &words, hw::KernelCode &kernel) {
  size_t at = 0;
  auto word = [&] { return at < words.size() ? words[at++] : 0; };
  kernel.most.resize(word() % 8);
  for (uint32_t &most : kernel.most)
    most = word();
  for (hw::Argument &argument : kernel.arguments)
    for (hw::Axis &axis : argument.axes)
      axis.dim = word();
  kernel.guards.resize(word() % 8);
  for (hw::Guard &guard : kernel.guards)
    guard = {word(), word(), word(), word()};
  while (at < words.size())
    kernel.dimWords.push_back({word(), word(), word(), word()});
}

/// The sound kernel by two sizes: rows of the first operand, and whether there are any, of which a word and all but the
/// first writes follow.
hw::KernelCode bySizes() {
  hw::KernelCode kernel = sound().kernels[0];
  auto block = std::ranges::find(kernel.control, hw::ControlOp::Kind::BlockWrite, &hw::ControlOp::kind);
  auto first = static_cast<uint32_t>(block - kernel.control.begin());
  for (hw::Argument &argument : kernel.arguments)
    if (!argument.packed && argument.name != "b")
      argument.axes[0].dim = 1;
  kernel.most = {kernel.arguments[0].axes[0].extent, 1};
  kernel.guards = {{first, static_cast<uint32_t>(kernel.control.size()) - first, 1, 0}};
  kernel.dimWords = {{first, 0, 1, block->data[0]}};
  return kernel;
}

/// The sound image with other words; nullopt where they are refused, which takes a sentence.
std::optional<hw::Image> with(Kind kind, Words words) {
  hw::Image image = sound();
  std::string error;
  if (kind == Forms) {
    putForms(words, image.kernels[0]);
  } else if (kind == Sizes) {
    putSizes(words, image.kernels[0]);
  } else if (kind == Control) {
    if (words.size() > 3)
      words[3] = static_cast<uint32_t>(4 * words.size());
    hw::ControlHeader header;
    auto read = hw::decodeControl(words, header, error);
    promise(read.has_value() == error.empty(), "a control stream is read, or refused with a sentence");
    if (!read)
      return std::nullopt;
    image.kernels[0].control = std::move(*read);
  } else if (kind == Cdo) {
    if (words.size() > 4) {
      words[3] = static_cast<uint32_t>(words.size() - 5);
      words[4] = ~(words[0] + words[1] + words[2] + words[3]);
    }
    auto read = hw::decodeCdo(words, error);
    promise(read.has_value() == error.empty(), "a CDO is read, or refused with a sentence");
    if (!read)
      return std::nullopt;
    image.overlays[0].initial = std::move(*read);
  } else {
    hw::CoreProgram &program = image.overlays[0].programs[0];
    program.code.clear();
    for (size_t i = 0; i + 1 < words.size(); i += 2)
      program.code.push_back({static_cast<hw::CoreOp>(words[i] & 0xff), static_cast<uint8_t>(words[i] >> 8),
                              static_cast<int32_t>(words[i + 1])});
  }
  return image;
}

/// As a session does. What a run ends in has a name.
void run(std::span<const std::byte> bytes) {
  using namespace dmxrt;
  std::string why;
  std::optional<hw::Image> image = hw::readImage(bytes, why);
  promise(image.has_value() == why.empty(), "an image is read, or refused with a sentence");
  const std::string target = "aie";
  auto devices = createDevices({&target, 1}, {});
  promise(static_cast<bool>(devices), "the device is there");
  auto code = devices->front()->loadCode(bytes);
  promise(static_cast<bool>(code) == image.has_value(), "the device loads what is an image");
  if (!image || image->kernels.empty())
    return;
  const hw::KernelCode &kernel = image->kernels[0];
  dmx::Size total;
  std::vector<std::vector<std::byte>> matrices; // of as many bytes as are asked for, and no more
  for (const hw::Argument &argument : kernel.arguments)
    total += dmx::Size(argument.hostBytes()) + argument.ddrBytes();
  if (!total.fits(kMostBytes))
    return;
  std::vector<void *> buffers;
  std::vector<uint64_t> sizes;
  for (const hw::Argument &argument : kernel.arguments) {
    matrices.emplace_back(argument.hostBytes(), std::byte(0x3f));
    buffers.push_back(matrices.back().data());
    sizes.push_back(matrices.back().size());
  }
  DeviceTask task;
  task.kernel = (*code)->findKernel(kernel.name);
  task.buffers = buffers.data();
  task.work = 1;
  task.bufferBytes = sizes;
  std::vector<int64_t> dims(kernel.most.begin(), kernel.most.end());
  task.dimCount = static_cast<uint32_t>(dims.size());
  task.dims = dims.data();
  const Segment segment{0, 1};
  Device &device = *devices->front();
  device.setProgramCount(1);
  for (bool half : {false, true}) {
    for (int64_t &dim : dims)
      dim = half ? dim / 2 : dim;
    promise(static_cast<bool>(device.prepare({&task, 1}, {&segment, 1})), "a task with the buffers that it asks for");
    device.startRun();
    device.enqueue(0);
    RunOutcome outcome = device.fence();
    promise(!outcome.code || outcome.detail.find(": ") != std::string::npos, "a fault has a name");
    promise(static_cast<bool>(device.endRun()), "a run ends");
    if (dims.empty())
      return;
  }
}

//===--- mutations --------------------------------------------------------------------===//

using Random = std::mt19937_64;

uint32_t wordNear(uint32_t word, Random &random) {
  switch (random() % 5) {
  case 0:
    return word ^ 1u << random() % 32;
  case 1:
    return word + (random() % 2 ? 1 : UINT32_MAX);
  case 2:
    return static_cast<uint32_t>(random());
  case 3:
    return static_cast<uint32_t>(random() % 9);
  default:
    return uint32_t(0) - static_cast<uint32_t>(random() % 3);
  }
}

/// Drops, repeats, moves or swaps things of a list.
template <typename List> void shuffle(List &list, Random &random) {
  if (list.empty())
    return;
  auto at = [&] { return list.begin() + static_cast<ptrdiff_t>(random() % list.size()); };
  switch (random() % 4) {
  case 0:
    list.erase(at());
    break;
  case 1: {
    auto copy = *at();
    list.insert(at(), 1 + random() % 5, copy);
    break;
  }
  case 2: {
    auto from = at();
    auto moved = *from;
    list.erase(from);
    list.insert(list.begin() + static_cast<ptrdiff_t>(random() % (list.size() + 1)), moved);
    break;
  }
  default:
    std::iter_swap(at(), at());
  }
}

void change(Words &words, size_t first, size_t step, Random &random) {
  if (words.size() <= first)
    return;
  uint32_t &word = words[first + random() % ((words.size() - first + step - 1) / step) * step];
  word = wordNear(word, random);
}

/// Forms of the sound image's first arguments with other numbers: those of one argument, or of a patch.
Words changedForms(const Words &words, Arithmetic &arithmetic) {
  hw::KernelCode kernel = sound().kernels[0];
  putForms(words, kernel);
  hw::Argument &argument = arithmetic.pick(kernel.arguments);
  uint64_t elements = uint64_t(argument.rows) * argument.pitch;
  auto narrow = [](uint64_t number) { return static_cast<uint32_t>(number); };
  hw::Axis none;
  hw::Axis &axis = argument.axes.empty() ? none : arithmetic.pick(argument.axes);
  switch (arithmetic.below(8)) {
  case 0: // axes that have few numbers together, modulo 2^64
    argument.axes.resize(std::max<size_t>(argument.axes.size(), 3));
    for (size_t i = 0; uint64_t factor : arithmetic.wrapping(argument.axes.size(), 31))
      argument.axes[i++] = {narrow(factor), 0, 1, narrow(arithmetic.oneIn(2) ? 0 : arithmetic.below(4)), 0};
    break;
  case 1:
    axis.stride = narrow(arithmetic.stride(1));
    break;
  case 2:
    axis.phase = narrow(arithmetic.stride(1));
    axis.split = narrow(arithmetic.oneIn(2) ? arithmetic.below(9) : arithmetic.edge());
    break;
  case 3: // to the form's end
    axis.first = narrow(arithmetic.nearEnd(elements / std::max(axis.stride, 1u), axis.extent));
    break;
  case 4:
    axis.extent = narrow(arithmetic.edge());
    break;
  case 5:
    (arithmetic.oneIn(2) ? argument.rows : argument.pitch) = narrow(arithmetic.edge());
    break;
  case 6:
    for (hw::ControlOp &op : kernel.control)
      if (op.kind == hw::ControlOp::Kind::Patch && arithmetic.oneIn(3))
        op.offset = arithmetic.oneIn(3) ? arithmetic.edge() : arithmetic.nearEnd(argument.ddrBytes());
    break;
  default:
    argument.element = static_cast<hw::Element>(arithmetic.below(static_cast<uint64_t>(hw::Element::Count)));
    argument.packed = arithmetic.oneIn(3);
    argument.output = !argument.packed && arithmetic.oneIn(3);
  }
  return formsOf(kernel);
}

/// Whole ops where the words are some, so that most of what is made is read.
Words changed(Kind kind, Words words, Random &random) {
  std::string error;
  hw::ControlHeader header;
  if (kind == Forms) {
    Arithmetic arithmetic(random());
    return changedForms(words, arithmetic);
  }
  if (kind == Control && random() % 2) {
    if (auto ops = hw::decodeControl(words, header, error)) {
      shuffle(*ops, random);
      return hw::encode(header, *ops);
    }
  } else if (kind == Cdo && random() % 4 == 0) {
    if (auto commands = hw::decodeCdo(words, error)) {
      shuffle(*commands, random);
      return hw::encodeCdo(*commands);
    }
  } else if (kind == Program && random() % 2) {
    std::vector<std::pair<uint32_t, uint32_t>> code;
    for (size_t i = 0; i + 1 < words.size(); i += 2)
      code.emplace_back(words[i], words[i + 1]);
    shuffle(code, random);
    words.clear();
    for (auto [op, value] : code)
      words.insert(words.end(), {op, value});
    return words;
  }
  if (kind == Image && random() % 16 == 0)
    shuffle(words, random);
  else
    change(words, 0, 1, random);
  return words;
}

} // namespace

std::vector<std::string> dmxfuzz::builtInSeeds() {
  const hw::Image &image = sound();
  std::vector<std::byte> bytes = hw::write(image);
  Words program;
  for (const hw::Instruction &at : image.overlays[0].programs[0].code)
    program.insert(program.end(),
                   {static_cast<uint32_t>(at.op) | uint32_t(at.index) << 8, static_cast<uint32_t>(at.value)});
  hw::ControlHeader header = hw::headerOf(*hw::machineOf(image.machine));
  return {bytesOf(Image, bytes.data(), bytes.size()),
          bytesOf(Control, hw::encode(header, image.kernels[0].control)),
          bytesOf(Cdo, hw::encodeCdo(image.overlays[0].initial)),
          bytesOf(Program, program),
          bytesOf(Forms, formsOf(image.kernels[0])),
          bytesOf(Sizes, sizesOf(bySizes()))};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  auto kind = static_cast<Kind>(data[0] % KindCount);
  std::string_view rest(reinterpret_cast<const char *>(data) + 1, size - 1);
  if (kind == Image) {
    std::vector<std::byte> bytes(rest.size());
    std::memcpy(bytes.data(), rest.data(), rest.size());
    run(bytes);
  } else if (std::optional<hw::Image> image = with(kind, wordsOf(rest))) {
    run(hw::write(*image));
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed) {
  Random random(seed);
  std::string text;
  if (size < 5 || random() % 64 == 0) { // coverage has a corpus of images alone to start from
    static const std::vector<std::string> own = dmxfuzz::builtInSeeds();
    text = own[random() % own.size()];
  } else if (random() % 32 == 0) {
    return LLVMFuzzerMutate(data, size, capacity);
  } else {
    auto kind = static_cast<Kind>(data[0] % KindCount);
    text = bytesOf(kind, changed(kind, wordsOf({reinterpret_cast<const char *>(data) + 1, size - 1}), random));
  }
  text.resize(std::min(text.size(), capacity));
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
