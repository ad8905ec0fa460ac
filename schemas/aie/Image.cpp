//===- Image.cpp - the bytes of an image ----------------------------------===//
#include "Image.h"

#include <algorithm>
#include <cstring>

namespace dmx::aie {
namespace {

constexpr uint32_t kElements = static_cast<uint32_t>(Element::Count);
/// "AIEB"; an image with functions of users is of the later version.
constexpr uint32_t kMagic = 0x42454941, kVersion = 4, kUserVersion = 5;
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

void put(Writer &out, const UserFunction &function) {
  out.name(function.kernel);
  out.name(function.symbol);
  out.put({function.object, function.clocks, function.dims, function.buffers.size()});
  for (const UserFunction::Buffer &buffer : function.buffers) {
    out.name(buffer.name);
    out.put({buffer.bytes, buffer.written});
  }
}

/// False, and maybe why, where these are none.
bool get(Reader &in, UserFunction &function, std::string &error) {
  function.kernel = in.name();
  function.symbol = in.name();
  function.object = in.word();
  function.clocks = in.word();
  function.dims = in.word();
  function.buffers.resize(in.count(3));
  for (UserFunction::Buffer &buffer : function.buffers) {
    buffer.name = in.name();
    buffer.bytes = in.word();
    uint32_t written = in.word();
    buffer.written = written;
    if (written > 1)
      error = "buffer '" + buffer.name + "' of a user's function has no known role";
  }
  return in.good;
}

void putUsers(Writer &out, const Image &image) {
  out.put({image.functions.size()});
  for (const UserFunction &function : image.functions)
    put(out, function);
  out.put({image.objects.size()});
  for (const std::vector<std::byte> &object : image.objects) {
    std::vector<uint32_t> words((object.size() + 3) / 4);
    if (!object.empty())
      std::memcpy(words.data(), object.data(), object.size());
    out.put({object.size()});
    out.list(words);
  }
}

bool getObject(Reader &in, std::vector<std::byte> &object) {
  uint32_t bytes = in.word();
  std::span<const uint32_t> words = in.list();
  if ((size_t(bytes) + 3) / 4 != words.size())
    return false;
  object.resize(bytes);
  if (bytes)
    std::memcpy(object.data(), words.data(), bytes);
  return in.good;
}

bool getUsers(Reader &in, Image &image, std::string &error) {
  image.functions.resize(in.count(6));
  for (UserFunction &function : image.functions)
    if (error.empty() && in.good)
      in.good = get(in, function, error) && in.good;
  image.objects.resize(in.good && error.empty() ? in.count(2) : 0);
  for (std::vector<std::byte> &object : image.objects)
    if (error.empty() && in.good)
      in.good = getObject(in, object) && in.good;
  return in.good;
}

} // namespace

static constexpr struct {
  std::string_view host, form;
  int64_t hostBytes, bytes;
} kBorders[kElements] = {{"f32", "bf16", 4, 2},  {"f32", "f32", 4, 4},  {"i32", "i32", 4, 4},  {"i8", "i8", 1, 1},
                         {"bf16", "bf16", 2, 2}, {"bf16", "f32", 2, 4}, {"f16", "bf16", 2, 2}, {"f16", "f32", 2, 4},
                         {"f16", "f16", 2, 2},   {"i64", "i64", 8, 8}};

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
  out.put({kMagic, image.functions.empty() ? kVersion : kUserVersion});
  out.name(image.machine);
  out.put({image.overlays.size()});
  for (const Overlay &overlay : image.overlays)
    put(out, overlay);
  out.put({image.kernels.size()});
  for (const KernelCode &kernel : image.kernels)
    put(out, kernel, header);
  if (!image.functions.empty())
    putUsers(out, image);
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
  const bool isImage = bytes.size() % 4 == 0 && in.word() == kMagic;
  const uint32_t version = in.word();
  if (!isImage || (version != kVersion && version != kUserVersion)) {
    error = "it is no image of version 4 or 5 for the array";
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
  if (version == kUserVersion && error.empty() && in.good)
    in.good = getUsers(in, image, error);
  if (error.empty() && (!in.good || !in.empty()))
    error = in.good ? "there are bytes behind its end" : "it ends before its end";
  if (error.empty())
    error = verify(image);
  return error.empty() ? std::optional(std::move(image)) : std::nullopt;
}

} // namespace dmx::aie
