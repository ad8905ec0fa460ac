//===- ImageFile.cpp - images as bytes ------------------------------------===//
//
// ISA.md section 12. Reading trusts nothing: every count is checked against the
// bytes that are left before anything is allocated for it.
//
//===----------------------------------------------------------------------===//

#include "Crc32.h"
#include "Image.h"

#include <algorithm>
#include <cstring>

namespace dmx::corsair {
namespace {

constexpr char kMagic[8] = {'D', 'M', 'X', 'I', 'S', 'A', '\r', '\n'};
constexpr size_t kHeaderBytes = 24, kSectionBytes = 24;
constexpr uint32_t kMaxString = 1 << 16;

constexpr uint32_t tag(const char (&name)[5]) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i)
    value |= uint32_t(static_cast<uint8_t>(name[i])) << (8 * i);
  return value;
}
constexpr uint32_t kSections[] = {tag("MACH"), tag("STRM"), tag("FUNC"), tag("MARK"), tag("KRNL")};
constexpr const char *kSectionNames[] = {"MACH", "STRM", "FUNC", "MARK", "KRNL"};
constexpr size_t kSectionCount = std::size(kSections);

class Out {
public:
  std::vector<uint8_t> bytes;

  template <typename T> void number(T value) {
    for (size_t i = 0; i < sizeof(T); ++i)
      bytes.push_back(static_cast<uint8_t>(static_cast<uint64_t>(value) >> (8 * i)));
  }
  void string(std::string_view text) {
    number(static_cast<uint32_t>(text.size()));
    bytes.insert(bytes.end(), text.begin(), text.end());
  }
  template <typename T> void numbers(const std::vector<T> &values) {
    number(static_cast<uint32_t>(values.size()));
    for (T value : values)
      number(value);
  }
};

/// Reads what Out wrote; after the first failure everything reads as zero.
class In {
public:
  In(std::span<const uint8_t> bytes, std::string &error) : bytes(bytes), error(error) {}

  bool failed() const { return !error.empty(); }
  size_t left() const { return bytes.size() - at; }
  void fail(std::string_view why) {
    if (error.empty())
      error = why;
  }
  template <typename T> T number() {
    if (failed() || left() < sizeof(T))
      return fail("cut off"), T();
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i)
      value |= uint64_t(bytes[at++]) << (8 * i);
    return static_cast<T>(value);
  }
  /// An enumerator below `count`.
  template <typename E> E enumerator(int count) {
    auto value = number<uint8_t>();
    if (value >= count)
      fail("an enumeration has value " + std::to_string(value));
    return failed() ? E() : static_cast<E>(value);
  }
  /// A count of things of at least `size` bytes each.
  uint32_t count(size_t size) {
    auto value = number<uint32_t>();
    if (!failed() && value > left() / size)
      fail("a count of " + std::to_string(value) + " is beyond the section's end");
    return failed() ? 0 : value;
  }
  std::string string(uint32_t limit = kMaxString) {
    uint32_t size = count(1);
    if (size > limit)
      fail("a text has " + std::to_string(size) + " bytes");
    if (failed())
      return {};
    std::string text(reinterpret_cast<const char *>(bytes.data()) + at, size);
    at += size;
    return text;
  }
  template <typename T> std::vector<T> numbers(uint32_t limit) {
    uint32_t size = count(sizeof(T));
    if (size > limit)
      fail("a list has " + std::to_string(size) + " entries");
    std::vector<T> values;
    for (uint32_t i = 0; i < size && !failed(); ++i)
      values.push_back(number<T>());
    return values;
  }
  std::span<const uint8_t> take(size_t size) {
    if (failed() || size > left())
      return fail("cut off"), std::span<const uint8_t>();
    at += size;
    return bytes.subspan(at - size, size);
  }

private:
  std::span<const uint8_t> bytes;
  std::string &error;
  size_t at = 0;
};

void writeCode(Out &out, const std::vector<Code> &list) {
  out.number(static_cast<uint32_t>(list.size()));
  for (const Code &code : list) {
    std::vector<uint8_t> bytes;
    for (const Instruction &instruction : code.instructions)
      encode(instruction, bytes);
    out.string(code.name);
    out.number(static_cast<uint32_t>(bytes.size()));
    out.bytes.insert(out.bytes.end(), bytes.begin(), bytes.end());
  }
}

std::vector<Code> readCode(In &in) {
  std::vector<Code> list;
  uint32_t count = in.count(8);
  for (uint32_t i = 0; i < count && !in.failed(); ++i) {
    Code code;
    code.name = in.string();
    std::span<const uint8_t> bytes = in.take(in.number<uint32_t>());
    std::string error;
    for (size_t offset = 0; offset < bytes.size();) {
      auto instruction = decode(bytes, offset, error);
      if (!instruction) {
        in.fail("'" + code.name + "': " + error);
        break;
      }
      code.instructions.push_back(std::move(*instruction));
    }
    list.push_back(std::move(code));
  }
  return list;
}

void writePiece(Out &out, const Piece &piece) {
  out.number(static_cast<uint8_t>(piece.memory));
  out.number(piece.unit);
  out.number(piece.address);
  out.numbers(piece.begin);
  out.numbers(piece.extent);
  out.numbers(piece.strides);
}

Piece readPiece(In &in) {
  Piece piece;
  piece.memory = in.enumerator<Memory>(kMemories);
  piece.unit = in.number<uint32_t>();
  piece.address = in.number<uint64_t>();
  piece.begin = in.numbers<int64_t>(kMaxRank);
  piece.extent = in.numbers<int64_t>(kMaxRank);
  piece.strides = in.numbers<int64_t>(kMaxRank);
  return piece;
}

void writeArgument(Out &out, const Argument &argument) {
  out.string(argument.name);
  out.number(static_cast<uint8_t>(argument.role));
  out.number(static_cast<uint8_t>(argument.type));
  out.numbers(argument.shape);
  out.numbers(argument.perm);
  out.number(static_cast<uint8_t>(argument.form));
  out.number(argument.reg);
  out.number(static_cast<uint32_t>(argument.pieces.size()));
  for (const Piece &piece : argument.pieces)
    writePiece(out, piece);
}

Argument readArgument(In &in) {
  Argument argument;
  argument.name = in.string();
  argument.role = in.enumerator<Role>(kRoles);
  argument.type = in.enumerator<HostType>(kHostTypes);
  argument.shape = in.numbers<int64_t>(kMaxRank);
  argument.perm = in.numbers<uint8_t>(kMaxRank);
  argument.form = in.enumerator<ElemKind>(kElemKinds);
  argument.reg = in.number<uint32_t>();
  uint32_t count = in.count(25);
  for (uint32_t i = 0; i < count && !in.failed(); ++i)
    argument.pieces.push_back(readPiece(in));
  return argument;
}

void writeProgram(Out &out, const Program &program) {
  out.number(static_cast<uint32_t>(program.launches.size()));
  for (const Launch &launch : program.launches) {
    out.number(launch.quad);
    for (uint32_t stream : launch.streams)
      out.number(stream);
    for (int64_t value : launch.registers)
      out.number(value);
  }
}

Program readProgram(In &in) {
  Program program;
  uint32_t count = in.count(20 + 8 * kRegisters);
  for (uint32_t i = 0; i < count && !in.failed(); ++i) {
    Launch launch;
    launch.quad = in.number<uint32_t>();
    for (uint32_t &stream : launch.streams)
      stream = in.number<uint32_t>();
    for (int64_t &value : launch.registers)
      value = in.number<int64_t>();
    program.launches.push_back(launch);
  }
  return program;
}

void writeKernels(Out &out, const Image &image) {
  out.number(static_cast<uint32_t>(image.kernels.size()));
  for (const Kernel &kernel : image.kernels) {
    out.string(kernel.name);
    out.number(static_cast<uint32_t>(kernel.arguments.size()));
    for (const Argument &argument : kernel.arguments)
      writeArgument(out, argument);
    out.numbers(kernel.dimRegisters);
    writeProgram(out, kernel.init);
    writeProgram(out, kernel.main);
    for (uint64_t bytes : kernel.footprint.bytes)
      out.number(bytes);
    out.number(kernel.repeatedMacs);
  }
}

/// Images of format 1.0 do not say what is computed more than once.
std::vector<Kernel> readKernels(In &in, uint16_t minor) {
  std::vector<Kernel> kernels;
  uint32_t count = in.count(16);
  for (uint32_t i = 0; i < count && !in.failed(); ++i) {
    Kernel kernel;
    kernel.name = in.string();
    uint32_t arguments = in.count(19);
    for (uint32_t k = 0; k < arguments && !in.failed(); ++k)
      kernel.arguments.push_back(readArgument(in));
    kernel.dimRegisters = in.numbers<uint32_t>(kMaxString);
    kernel.init = readProgram(in);
    kernel.main = readProgram(in);
    for (uint64_t &bytes : kernel.footprint.bytes)
      bytes = in.number<uint64_t>();
    if (minor >= 1)
      kernel.repeatedMacs = in.number<uint64_t>();
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

void writeMarks(Out &out, const Image &image) {
  out.number(static_cast<uint32_t>(image.marks.size()));
  for (const std::string &mark : image.marks)
    out.string(mark);
}

std::vector<std::string> readMarks(In &in) {
  std::vector<std::string> marks;
  uint32_t count = in.count(4);
  for (uint32_t i = 0; i < count && !in.failed(); ++i)
    marks.push_back(in.string());
  return marks;
}

/// The sections' bytes, after checking header, table and CRCs.
bool findSections(std::span<const uint8_t> bytes, std::span<const uint8_t> (&sections)[kSectionCount],
                  uint32_t &fingerprint, uint16_t &minor, std::string &error, bool checked) {
  In in(bytes, error);
  std::span<const uint8_t> magic = in.take(sizeof kMagic);
  if (in.failed() || std::memcmp(magic.data(), kMagic, sizeof kMagic) != 0)
    return error = "this is no DMX ISA image (magic)", false;
  auto major = in.number<uint16_t>();
  minor = in.number<uint16_t>();
  if (!in.failed() && (major != kImageMajor || minor > kImageMinor)) {
    error = "the image has format " + std::to_string(major) + "." + std::to_string(minor) + ", this reader knows " +
            std::to_string(kImageMajor) + "." + std::to_string(kImageMinor) +
            "; compile the model again with a compiler of the same release";
    return false;
  }
  fingerprint = in.number<uint32_t>();
  auto count = in.number<uint32_t>(), tableCrc = in.number<uint32_t>();
  if (!in.failed() && count != kSectionCount)
    return error = "the image has " + std::to_string(count) + " sections instead of " + std::to_string(kSectionCount),
           false;
  std::span<const uint8_t> table = in.take(kSectionCount * kSectionBytes);
  if (in.failed())
    return false;
  if (checked && crc32(table) != tableCrc)
    return error = "the section table fails its checksum", false;
  In entries(table, error);
  for (size_t i = 0, end = kHeaderBytes + table.size(); i < kSectionCount; ++i) {
    auto name = entries.number<uint32_t>(), crc = entries.number<uint32_t>();
    auto offset = entries.number<uint64_t>(), size = entries.number<uint64_t>();
    if (name != kSections[i])
      return error = "section " + std::to_string(i) + " is not " + kSectionNames[i], false;
    if (offset != end || size > bytes.size() - end)
      return error = std::string("section ") + kSectionNames[i] + " does not follow the one before or is cut off",
             false;
    sections[i] = bytes.subspan(offset, size);
    end += size;
    if (checked && crc32(sections[i]) != crc)
      return error = std::string("section ") + kSectionNames[i] + " fails its checksum", false;
    if (i + 1 == kSectionCount && end != bytes.size())
      return error = "bytes after the last section", false;
  }
  return true;
}

} // namespace

std::vector<uint8_t> write(const Image &image) {
  Out sections[kSectionCount];
  sections[0].bytes.assign(image.machine.source.begin(), image.machine.source.end());
  writeCode(sections[1], image.streams);
  writeCode(sections[2], image.functions);
  writeMarks(sections[3], image);
  writeKernels(sections[4], image);
  Out table;
  uint64_t offset = kHeaderBytes + kSectionCount * kSectionBytes;
  for (size_t i = 0; i < kSectionCount; ++i) {
    table.number(kSections[i]);
    table.number(crc32(sections[i].bytes));
    table.number(offset);
    table.number(static_cast<uint64_t>(sections[i].bytes.size()));
    offset += sections[i].bytes.size();
  }
  Out out;
  out.bytes.assign(std::begin(kMagic), std::end(kMagic));
  out.number(kImageMajor);
  out.number(kImageMinor);
  out.number(image.machine.fingerprint());
  out.number(static_cast<uint32_t>(kSectionCount));
  out.number(crc32(table.bytes));
  out.bytes.insert(out.bytes.end(), table.bytes.begin(), table.bytes.end());
  for (const Out &section : sections)
    out.bytes.insert(out.bytes.end(), section.bytes.begin(), section.bytes.end());
  return out.bytes;
}

std::optional<Image> read(std::span<const uint8_t> bytes, std::string &error, Checksums checksums) {
  error.clear();
  std::span<const uint8_t> sections[kSectionCount];
  uint32_t fingerprint = 0;
  uint16_t minor = 0;
  if (!findSections(bytes, sections, fingerprint, minor, error, checksums == Checksums::Check))
    return std::nullopt;
  if (sections[0].size() > kMaxString) {
    error = "the machine description has " + std::to_string(sections[0].size()) + " bytes";
    return std::nullopt;
  }
  auto machine = parseMachine({reinterpret_cast<const char *>(sections[0].data()), sections[0].size()}, error);
  if (!machine)
    return std::nullopt;
  if (machine->fingerprint() != fingerprint) {
    error = "the image was made for another machine than it describes (fingerprint)";
    return std::nullopt;
  }
  Image image;
  image.machine = std::move(*machine);
  auto part = [&](size_t index, auto &&reader) {
    if (!error.empty())
      return;
    In in(sections[index], error);
    reader(in);
    if (!in.failed() && in.left())
      in.fail("bytes after the last entry");
    if (in.failed())
      error = std::string("section ") + kSectionNames[index] + ": " + error;
  };
  part(1, [&](In &in) { image.streams = readCode(in); });
  part(2, [&](In &in) { image.functions = readCode(in); });
  part(3, [&](In &in) { image.marks = readMarks(in); });
  part(4, [&](In &in) { image.kernels = readKernels(in, minor); });
  if (!error.empty())
    return std::nullopt;
  if (MaybeError wrong = verify(image)) {
    error = *wrong;
    return std::nullopt;
  }
  return image;
}

} // namespace dmx::corsair
