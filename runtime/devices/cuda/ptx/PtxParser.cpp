//===- PtxParser.cpp - a PTX text as it stands --------------------------------===//

#include "PtxParser.h"

#include "schemas/cuda/Limits.h"

#include <array>

namespace dmxrt::cuda {

PtxType typeOfName(std::string_view name) {
  struct Named {
    std::string_view name;
    PtxType type;
  };
  static constexpr std::array<Named, 17> types{{{"pred", {'p', 1}},
                                                {"b8", {'b', 8}},
                                                {"b16", {'b', 16}},
                                                {"b32", {'b', 32}},
                                                {"b64", {'b', 64}},
                                                {"u8", {'u', 8}},
                                                {"u16", {'u', 16}},
                                                {"u32", {'u', 32}},
                                                {"u64", {'u', 64}},
                                                {"s8", {'s', 8}},
                                                {"s16", {'s', 16}},
                                                {"s32", {'s', 32}},
                                                {"s64", {'s', 64}},
                                                {"f16", {'f', 16}},
                                                {"bf16", {'h', 16}},
                                                {"f32", {'f', 32}},
                                                {"f64", {'f', 64}}}};
  for (const Named &each : types)
    if (each.name == name)
      return each.type;
  return {};
}

std::string PtxInstruction::name() const {
  std::string out(root);
  for (std::string_view modifier : modifiers)
    out += cat(".", modifier);
  return out;
}

/// [.align N]
bool PtxParser::alignment(uint32_t &out) {
  uint64_t align = 1;
  if (takeName(".align") && !integer(align, 1 << 16))
    return false;
  if (align == 0 || (align & (align - 1)))
    return refuse("an alignment of ", align, " is no power of two");
  out = static_cast<uint32_t>(align);
  return true;
}

/// {values}
bool PtxParser::values(PtxVariable &out, PtxType element) {
  bool list = takeSign('{');
  do {
    bool minus = takeSign('-');
    uint64_t value = 0;
    if (!integer(value, UINT64_MAX))
      return false;
    value = minus ? 0 - value : value;
    for (uint32_t i = 0; i < element.bytes(); ++i)
      out.values.push_back(static_cast<std::byte>(value >> (8 * i)));
  } while (list && takeSign(','));
  if (list && !expect('}'))
    return false;
  return out.values.size() <= out.bytes || refuse("variable '", out.name, "' has more values than room");
}

/// [.align N] .b8 name[BYTES] [= {values}] ; of one that is extern, the launch says how many bytes it has.
bool PtxParser::variable(std::vector<PtxVariable> &out, bool isExtern) {
  PtxVariable made;
  made.isExtern = isExtern;
  PtxType element;
  if (!alignment(made.align) || !type(element) || !name(made.name))
    return false;
  uint64_t count = 1;
  if (takeSign('[')) {
    if (isExtern)
      count = 0;
    else if (!integer(count, kMostBytes))
      return false;
    if (!expect(']'))
      return false;
  } else if (isExtern) {
    return refuse("variable '", made.name, "' has a size, and one that is extern has none");
  }
  dmx::Size bytes = dmx::Size(count) * element.bytes();
  declared += bytes;
  if (!declared.fits(kMostBytes))
    return refuse("there are variables of more than ", kMostBytes, " bytes");
  made.bytes = bytes.value();
  if (!isExtern && takeSign('=') && !values(made, element))
    return false;
  out.push_back(std::move(made));
  return expect(';');
}

/// .param .u64 [.ptr [.global] .align N] name, or .param [.align N] .b8 name[BYTES]
bool PtxParser::parameter() {
  PtxParameter made;
  if (!takeName(".param"))
    return wants(".param");
  if (!alignment(made.align) || !type(made.type))
    return false;
  if (takeName(".ptr")) {
    takeName(".global");
    uint32_t pointee = 0;
    if (!alignment(pointee))
      return false;
  }
  if (!name(made.name))
    return false;
  uint64_t count = 1;
  made.isArray = takeSign('[');
  if (made.isArray && (!integer(count, 1 << 12) || !expect(']')))
    return false;
  made.bytes = static_cast<uint32_t>(count * made.type.bytes());
  kernel->parameters.push_back(made);
  return true;
}

bool PtxParser::parameters() {
  if (!expect('('))
    return false;
  if (takeSign(')'))
    return true;
  do
    if (!parameter())
      return false;
  while (takeSign(','));
  return expect(')');
}

/// X [, 1 [, 1]]
bool PtxParser::threads(uint32_t &out) {
  uint64_t counts[3] = {1, 1, 1};
  size_t axis = 0;
  do {
    if (axis == 3 || !integer(counts[axis], 1024))
      return wants("a number of threads");
    ++axis;
  } while (takeSign(','));
  out = static_cast<uint32_t>(counts[0]);
  return (out && counts[1] == 1 && counts[2] == 1) ||
         refuse("blocks of more than one axis, or of no threads, are not known here");
}

/// X [, 1 [, 1]]
bool PtxParser::blocks(uint32_t &out) {
  return threads(out) && (out <= dmx::cuda::kMostCluster ||
                          refuse("a cluster has at most ", dmx::cuda::kMostCluster, " blocks, not ", out));
}

/// .reqntid X, 1, 1; .maxntid; .minnctapersm N; .maxnreg N; .explicitcluster .reqnctapercluster X, 1, 1
bool PtxParser::traits(PtxKernel &out) {
  auto number = [&](uint32_t &to) {
    uint64_t count = 0;
    bool isNumber = integer(count, 1 << 16);
    to = static_cast<uint32_t>(count);
    return isNumber;
  };
  while (token.kind == PtxToken::Name && token.name[0] == '.') {
    bool known = takeName(".minnctapersm")      ? number(out.leastBlocks)
                 : takeName(".maxnreg")         ? number(out.mostRegisters)
                 : takeName(".reqntid")         ? threads(out.blockThreads)
                 : takeName(".maxntid")         ? threads(out.mostThreads)
                 : takeName(".explicitcluster") ? true
                 : takeName(".reqnctapercluster")
                     ? blocks(out.cluster)
                     : refuse("'", token.name, "' is no directive of a kernel that is known here");
    if (!known)
      return false;
  }
  return true;
}

bool PtxParser::entry(PtxModule &out) {
  std::string_view called;
  uint32_t line = token.line;
  if (!name(called))
    return false;
  for (const PtxKernel &other : out.kernels)
    if (other.name == called)
      return refuse("there are two kernels '", called, "'");
  PtxKernel made;
  made.name = called;
  made.line = line;
  kernel = &made;
  scopes.clear();
  families.clear();
  jumps.clear();
  if (!parameters() || !traits(made) || !expect('{') || !(bodies ? body() : passOver()))
    return false;
  kernel = nullptr;
  out.kernels.push_back(std::move(made));
  return true;
}

/// 8.0, which is a number, a point and a number.
bool PtxParser::version(uint32_t &out) {
  uint64_t major = token.bits, minor = 0;
  auto isPart = [&](std::string_view text) { return token.name == text; };
  if (token.kind == PtxToken::End || token.name.empty() || major > 99 || token.name[0] < '0' || token.name[0] > '9')
    return wants("a version");
  take();
  if (!isPart("."))
    return wants("a version");
  take();
  if (!integer(minor, 9))
    return false;
  out = static_cast<uint32_t>(10 * major + minor);
  return true;
}

/// .file N "name" [, time, size]
bool PtxParser::file(PtxModule &out) {
  uint64_t number = 0, ignored = 0;
  if (!integer(number, UINT32_MAX))
    return false;
  if (token.kind != PtxToken::Text)
    return wants("a file's name");
  std::string_view quoted = token.name;
  if (!out.files.emplace(static_cast<uint32_t>(number), quoted.substr(1, quoted.size() - 2)).second)
    return refuse("there are two files ", number);
  take();
  while (takeSign(','))
    if (!integer(ignored, UINT64_MAX))
      return false;
  return true;
}

bool PtxParser::directive(PtxModule &out) {
  if (takeName(".version"))
    return version(out.version);
  if (takeName(".file"))
    return file(out);
  if (takeName(".target"))
    return name(out.target);
  if (takeName(".address_size")) {
    uint64_t size = 0;
    return integer(size, 64) && (size == 64 || refuse("only addresses of 64 bits are known here"));
  }
  if (takeName(".extern"))
    return takeName(".shared") ? variable(out.shared, /*isExtern=*/true) : wants(".shared");
  takeName(".visible");
  if (takeName(".global") || takeName(".const"))
    return variable(out.globals);
  if (takeName(".shared"))
    return variable(out.shared);
  if (!takeName(".entry"))
    return refuse("'", token.name, "' is no directive that is known here");
  return entry(out);
}

Result<PtxModule> PtxParser::module() {
  PtxModule out;
  while (token.kind != PtxToken::End && problem.empty())
    if (!directive(out))
      break;
  if (!problem.empty())
    return badBundle(problem);
  return out;
}

Result<PtxModule> parsePtx(std::string_view text, bool bodies) { return PtxParser(text, bodies).module(); }

} // namespace dmxrt::cuda
