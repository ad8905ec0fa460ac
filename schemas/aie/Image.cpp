//===- Image.cpp - the bytes of an image ----------------------------------===//
#include "Image.h"

#include <algorithm>
#include <cstring>

namespace dmx::aie {
namespace {

constexpr uint32_t kElements = static_cast<uint32_t>(Element::Count);
constexpr uint32_t kMagic = 0x42454941, kVersion = 4; ///< "AIEB"
/// Of names, and of what a list may hold at most beyond what there are bytes for.
constexpr uint32_t kLongestName = 4096;

/// Little-endian words.
class Writer {
public:
  std::vector<uint32_t> words;

  void put(std::initializer_list<size_t> list) {
    for (size_t value : list)
      words.push_back(static_cast<uint32_t>(value));
  }
  void name(std::string_view text) {
    put({text.size()});
    size_t first = words.size();
    words.resize(first + (text.size() + 3) / 4);
    if (!text.empty())
      std::memcpy(&words[first], text.data(), text.size());
  }
  void list(const std::vector<uint32_t> &values) {
    put({values.size()});
    words.insert(words.end(), values.begin(), values.end());
  }
};

/// Gives zeros behind the end, which `good` tells.
class Reader {
public:
  explicit Reader(std::span<const uint32_t> words) : rest(words) {}
  bool good = true;

  uint32_t word() {
    if (rest.empty()) {
      good = false;
      return 0;
    }
    uint32_t value = rest[0];
    rest = rest.subspan(1);
    return value;
  }
  /// A count of things of at least so many words each.
  uint32_t count(size_t each) {
    uint32_t value = word();
    if (value > rest.size() / each)
      good = false;
    return good ? value : 0;
  }
  std::string name() {
    uint32_t size = word();
    size_t words = (size_t(size) + 3) / 4;
    if (size > kLongestName || words > rest.size()) {
      good = false;
      return {};
    }
    std::string text(reinterpret_cast<const char *>(rest.data()), size);
    rest = rest.subspan(words);
    return text;
  }
  std::span<const uint32_t> list() {
    uint32_t size = count(1);
    std::span<const uint32_t> values = rest.first(size);
    rest = rest.subspan(size);
    return values;
  }
  bool empty() const { return rest.empty(); }

private:
  std::span<const uint32_t> rest;
};

void put(Writer &out, const Overlay &overlay) {
  out.name(overlay.name);
  out.list(encodeCdo(overlay.initial));
  out.put({overlay.programs.size()});
  for (const CoreProgram &program : overlay.programs) {
    out.put({program.tile.column, program.tile.row, program.code.size()});
    for (const Instruction &at : program.code)
      out.put({static_cast<uint32_t>(at.op) | uint32_t(at.index) << 8, static_cast<uint32_t>(at.value)});
  }
}

void put(Writer &out, const KernelCode &kernel, const ControlHeader &header) {
  out.name(kernel.name);
  out.put({kernel.overlay, kernel.arguments.size()});
  for (const Argument &argument : kernel.arguments) {
    out.name(argument.name);
    out.put({size_t(argument.packed) * 2 + argument.output, static_cast<size_t>(argument.element), argument.rows,
             argument.pitch, argument.axes.size()});
    for (const Axis &axis : argument.axes)
      out.put({axis.extent, axis.first, axis.split, axis.stride, axis.phase, axis.dim});
  }
  out.list(encode(header, kernel.control));
  out.list(kernel.most);
  out.put({kernel.guards.size()});
  for (const Guard &guard : kernel.guards)
    out.put({guard.first, guard.count, guard.dim, guard.above});
  out.put({kernel.dimWords.size()});
  for (const DimWord &word : kernel.dimWords)
    out.put({word.op, word.word, word.dim, word.factor});
}

bool get(Reader &in, Overlay &overlay, std::string &error) {
  overlay.name = in.name();
  std::span<const uint32_t> cdo = in.list();
  if (!in.good)
    return false;
  std::optional<std::vector<CdoCommand>> initial = decodeCdo(cdo, error);
  if (!initial)
    return false;
  overlay.initial = std::move(*initial);
  overlay.programs.resize(in.count(3));
  for (CoreProgram &program : overlay.programs) {
    program.tile.column = in.word();
    program.tile.row = in.word();
    program.code.resize(in.count(2));
    for (Instruction &at : program.code) {
      uint32_t bits = in.word();
      at = {static_cast<CoreOp>(bits & 0xff), static_cast<uint8_t>(bits >> 8), static_cast<int32_t>(in.word())};
      if (bits >> 16) {
        error = "an instruction of a core program sets bits that it does not have";
        return false;
      }
    }
  }
  return in.good;
}

/// What depends on the dims of a dispatch.
bool getDims(Reader &in, KernelCode &kernel) {
  std::span<const uint32_t> most = in.list();
  kernel.most.assign(most.begin(), most.end());
  kernel.guards.resize(in.count(4));
  for (Guard &guard : kernel.guards)
    guard = {in.word(), in.word(), in.word(), in.word()};
  kernel.dimWords.resize(in.count(4));
  for (DimWord &word : kernel.dimWords)
    word = {in.word(), in.word(), in.word(), in.word()};
  return in.good;
}

bool get(Reader &in, KernelCode &kernel, const ControlHeader &expected, std::string &error) {
  kernel.name = in.name();
  kernel.overlay = in.word();
  kernel.arguments.resize(in.count(6));
  for (Argument &argument : kernel.arguments) {
    argument.name = in.name();
    uint32_t role = in.word(), element = in.word();
    argument.output = role & 1;
    argument.packed = role & 2;
    argument.element = static_cast<Element>(std::min(element, kElements - 1));
    argument.rows = in.word();
    argument.pitch = in.word();
    argument.axes.resize(in.count(6));
    if (role > 3 || element >= kElements || argument.axes.size() > kMostAxes) {
      error = "argument '" + argument.name + "' has no known role or element, or too many axes";
      return false;
    }
    for (Axis &axis : argument.axes)
      for (uint32_t *field : {&axis.extent, &axis.first, &axis.split, &axis.stride, &axis.phase, &axis.dim})
        *field = in.word();
  }
  std::span<const uint32_t> control = in.list();
  if (!in.good)
    return false;
  ControlHeader header;
  std::optional<std::vector<ControlOp>> ops = decodeControl(control, header, error);
  if (!ops)
    return false;
  if (header != expected) {
    error = "the control stream of kernel '" + kernel.name + "' is for another machine";
    return false;
  }
  kernel.control = std::move(*ops);
  return getDims(in, kernel);
}

} // namespace

static constexpr struct {
  std::string_view host, form;
  int64_t hostBytes, bytes;
} kBorders[kElements] = {{"f32", "bf16", 4, 2},  {"f32", "f32", 4, 4},  {"i32", "i32", 4, 4},  {"i8", "i8", 1, 1},
                         {"bf16", "bf16", 2, 2}, {"bf16", "f32", 2, 4}, {"f16", "bf16", 2, 2}, {"f16", "f32", 2, 4}};

int64_t bytesOf(Element element) { return kBorders[static_cast<size_t>(element)].bytes; }
uint64_t hostBytesOf(Element element) {
  return static_cast<uint64_t>(kBorders[static_cast<size_t>(element)].hostBytes);
}
std::string_view nameOf(Element element) { return kBorders[static_cast<size_t>(element)].form; }
std::string_view hostNameOf(Element element) { return kBorders[static_cast<size_t>(element)].host; }

std::optional<Element> elementOf(std::string_view host, std::string_view form) {
  for (uint32_t i = 0; i < kElements; ++i)
    if (kBorders[i].host == host && kBorders[i].form == form)
      return static_cast<Element>(i);
  return std::nullopt;
}

bool Argument::kept() const {
  auto lies = [](const Axis &axis) { return axis.stride || axis.phase; };
  return packed && std::any_of(axes.begin(), axes.end(), lies);
}

std::vector<std::byte> write(const Image &image) {
  Writer out;
  std::optional<Machine> machine = machineOf(image.machine);
  ControlHeader header = machine ? headerOf(*machine) : ControlHeader();
  out.put({kMagic, kVersion});
  out.name(image.machine);
  out.put({image.overlays.size()});
  for (const Overlay &overlay : image.overlays)
    put(out, overlay);
  out.put({image.kernels.size()});
  for (const KernelCode &kernel : image.kernels)
    put(out, kernel, header);
  std::vector<std::byte> bytes(4 * out.words.size());
  std::memcpy(bytes.data(), out.words.data(), bytes.size());
  return bytes;
}

std::optional<Image> readImage(std::span<const std::byte> bytes, std::string &error) {
  error.clear();
  std::vector<uint32_t> words(bytes.size() / 4);
  if (!words.empty())
    std::memcpy(words.data(), bytes.data(), 4 * words.size());
  Reader in(words);
  if (bytes.size() % 4 || in.word() != kMagic || in.word() != kVersion) {
    error = "it is no image of version 4 for the array";
    return std::nullopt;
  }
  Image image;
  image.machine = in.name();
  std::optional<Machine> machine = machineOf(image.machine);
  if (in.good && !machine)
    error = "it is for the machine '" + image.machine + "'; known are " + machineNames();
  image.overlays.resize(machine ? in.count(3) : 0);
  for (Overlay &overlay : image.overlays)
    if (error.empty() && in.good)
      in.good = get(in, overlay, error) && in.good;
  image.kernels.resize(in.good && error.empty() ? in.count(9) : 0);
  for (KernelCode &kernel : image.kernels)
    if (error.empty() && in.good)
      in.good = get(in, kernel, headerOf(*machine), error) && in.good;
  if (error.empty() && (!in.good || !in.empty()))
    error = in.good ? "there are bytes behind its end" : "it ends before its end";
  if (error.empty())
    error = verify(image);
  return error.empty() ? std::optional(std::move(image)) : std::nullopt;
}

} // namespace dmx::aie
