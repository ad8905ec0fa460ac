//===- Assembler.cpp - images from text -----------------------------------===//

#include "Assembler.h"
#include "Text.h"

#include <map>

namespace dmx::corsair {
namespace {

using namespace text;

class Assembler final : Symbols {
public:
  Assembler(const Machine &machine, std::string &error) : error(error) { image.machine = machine; }
  bool run(std::string_view text);
  Image image;

private:
  std::string &error;
  size_t lineNumber = 0;
  std::map<std::string, uint32_t, std::less<>> functionNumbers, streamNumbers;
  // Where lines go: code, or parts of the last kernel.
  Code *code = nullptr;
  Program *program = nullptr;
  bool inKernel = false, inArgument = false;

  bool fail(const std::string &why) {
    error = "line " + std::to_string(lineNumber) + ": " + why;
    return false;
  }
  std::optional<int64_t> function(std::string_view name) override {
    auto it = functionNumbers.find(name);
    return it == functionNumbers.end() ? std::nullopt : std::optional<int64_t>(it->second);
  }
  int64_t mark(std::string_view text) override { return image.addMark(std::string(text)); }

  bool collect(const std::vector<Token> &tokens);
  bool line(const std::vector<Token> &tokens);
  bool startCode(const std::vector<Token> &tokens);
  bool kernelLine(const std::vector<Token> &tokens);
  bool footprint(const std::vector<Token> &tokens);
  bool repeatedMacs(const std::vector<Token> &tokens);
  bool argument(const std::vector<Token> &tokens);
  bool piece(const std::vector<Token> &tokens);
  bool dims(const std::vector<Token> &tokens);
  bool launch(const std::vector<Token> &tokens);
  bool launchKey(const Token &token, Launch &out);
  template <typename Visit> bool eachLine(std::string_view text, Visit visit);
};

std::optional<Memory> memoryFromName(std::string_view name) {
  for (int i = 0; i < kMemories; ++i)
    if (nameOf(static_cast<Memory>(i)) == name)
      return static_cast<Memory>(i);
  return std::nullopt;
}

template <typename Visit> bool Assembler::eachLine(std::string_view text, Visit visit) {
  std::vector<Token> tokens;
  for (lineNumber = 1; !text.empty(); ++lineNumber) {
    size_t end = std::min(text.find('\n'), text.size());
    std::string why;
    if (!tokenize(text.substr(0, end), tokens, why))
      return fail(why);
    if (!tokens.empty() && !visit(tokens))
      return false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}

/// First pass: names that later lines may use before their definition.
bool Assembler::collect(const std::vector<Token> &tokens) {
  bool isFunction = tokens[0].value == ".function", isStream = tokens[0].value == ".stream";
  if (!isFunction && !isStream)
    return true;
  if (tokens.size() != 2 || !tokens[1].key.empty())
    return fail(tokens[0].value + " needs a name");
  auto &numbers = isFunction ? functionNumbers : streamNumbers;
  if (!numbers.emplace(tokens[1].value, numbers.size()).second)
    return fail("'" + tokens[1].value + "' is defined twice");
  (isFunction ? image.functions : image.streams).push_back({tokens[1].value, {}});
  return true;
}

bool Assembler::startCode(const std::vector<Token> &tokens) {
  bool isFunction = tokens[0].value == ".function";
  inKernel = inArgument = false;
  program = nullptr;
  code =
      isFunction ? &image.functions[functionNumbers[tokens[1].value]] : &image.streams[streamNumbers[tokens[1].value]];
  return true;
}

bool Assembler::footprint(const std::vector<Token> &tokens) {
  for (size_t i = 1; i < tokens.size(); ++i) {
    auto memory = memoryFromName(tokens[i].key);
    int64_t bytes;
    if (!memory || !parseInteger(tokens[i].value, bytes) || bytes < 0)
      return fail("'" + tokens[i].key + "=" + tokens[i].value + "' is no size of a memory");
    image.kernels.back().footprint.bytes[static_cast<int>(*memory)] = static_cast<uint64_t>(bytes);
  }
  return true;
}

bool Assembler::repeatedMacs(const std::vector<Token> &tokens) {
  int64_t macs;
  if (tokens.size() != 2 || !parseInteger(tokens[1].value, macs) || macs < 0)
    return fail(".repeated_macs needs a number");
  image.kernels.back().repeatedMacs = static_cast<uint64_t>(macs);
  return true;
}

bool Assembler::argument(const std::vector<Token> &tokens) {
  if (tokens.size() < 4)
    return fail(".argument needs name, role and type");
  Argument out;
  out.name = tokens[1].value;
  auto role = roleFromName(tokens[2].value);
  auto type = hostTypeFromName(tokens[3].value);
  if (!role || !type)
    return fail("unknown role or type of argument '" + out.name + "'");
  out.role = *role;
  out.type = *type;
  for (size_t i = 4; i < tokens.size(); ++i) {
    const Token &token = tokens[i];
    std::vector<int64_t> list;
    int64_t number = 0;
    auto kind = elemKindFromName(token.value);
    if (token.key == "shape" && parseList(token.value, out.shape))
      continue;
    if (token.key == "form" && kind)
      out.form = *kind;
    else if (token.key == "perm" && parseList(token.value, list))
      for (int64_t value : list)
        out.perm.push_back(static_cast<uint8_t>(value));
    else if (token.key == "reg" && parseInteger(token.value, number))
      out.reg = static_cast<uint32_t>(number);
    else
      return fail("argument '" + out.name + "' does not take '" + token.key + "=" + token.value + "'");
  }
  image.kernels.back().arguments.push_back(std::move(out));
  inArgument = true;
  return true;
}

bool Assembler::piece(const std::vector<Token> &tokens) {
  auto memory = tokens.size() > 1 ? memoryFromName(tokens[1].value) : std::nullopt;
  if (!inArgument || !memory)
    return fail(".piece stands after an .argument and names a memory");
  Piece out;
  out.memory = *memory;
  for (size_t i = 2; i < tokens.size(); ++i) {
    const Token &token = tokens[i];
    int64_t number = 0;
    bool good = true;
    if (token.key == "begin")
      good = parseList(token.value, out.begin);
    else if (token.key == "extent")
      good = parseList(token.value, out.extent);
    else if (token.key == "strides")
      good = parseList(token.value, out.strides);
    else
      good = parseInteger(token.value, number) && number >= 0 && (token.key == "unit" || token.key == "addr");
    if (!good)
      return fail(".piece does not take '" + token.key + "=" + token.value + "'");
    if (token.key == "unit")
      out.unit = static_cast<uint32_t>(number);
    if (token.key == "addr")
      out.address = static_cast<uint64_t>(number);
  }
  image.kernels.back().arguments.back().pieces.push_back(std::move(out));
  return true;
}

bool Assembler::dims(const std::vector<Token> &tokens) {
  std::vector<int64_t> list;
  if (tokens.size() != 2 || !parseList(tokens[1].value, list))
    return fail(".dims needs a list of registers, -1 for none");
  for (int64_t value : list)
    image.kernels.back().dimRegisters.push_back(value < 0 ? kNoRegister : static_cast<uint32_t>(value));
  return true;
}

bool Assembler::launchKey(const Token &token, Launch &out) {
  int64_t number;
  if (token.key.size() == 2 && token.key[0] == 'q' && token.key[1] >= '0' && token.key[1] < '4') {
    auto it = streamNumbers.find(token.value);
    if (it == streamNumbers.end())
      return fail("there is no stream '" + token.value + "'");
    out.streams[token.key[1] - '0'] = it->second;
    return true;
  }
  if (token.key.starts_with("R") && parseInteger(token.key.substr(1), number) && number >= 0 && number < kRegisters &&
      parseInteger(token.value, out.registers[number]))
    return true;
  return fail(".launch does not take '" + token.key + "=" + token.value + "'");
}

/// `quad=3` or `quad=0-7`: the same for each.
bool Assembler::launch(const std::vector<Token> &tokens) {
  if (!program)
    return fail(".launch stands after .init or .main");
  Launch out;
  int64_t first = -1, last = -1;
  for (size_t i = 1; i < tokens.size(); ++i) {
    if (tokens[i].key != "quad") {
      if (!launchKey(tokens[i], out))
        return false;
      continue;
    }
    std::string_view range = tokens[i].value;
    size_t dash = std::min(range.find('-'), range.size());
    bool good = parseInteger(range.substr(0, dash), first);
    last = first;
    good = good && (dash == range.size() || parseInteger(range.substr(dash + 1), last));
    if (!good || first < 0 || last < first || last >= image.machine.quadCount())
      return fail("quad=" + tokens[i].value + " is no range of quads");
  }
  if (first < 0)
    return fail(".launch needs quad=");
  for (int64_t quad = first; quad <= last; ++quad) {
    out.quad = static_cast<uint32_t>(quad);
    program->launches.push_back(out);
  }
  return true;
}

bool Assembler::kernelLine(const std::vector<Token> &tokens) {
  const std::string &name = tokens[0].value;
  if (name == ".piece")
    return piece(tokens);
  inArgument = false;
  if (name == ".footprint")
    return footprint(tokens);
  if (name == ".repeated_macs")
    return repeatedMacs(tokens);
  if (name == ".argument")
    return argument(tokens);
  if (name == ".dims")
    return dims(tokens);
  if (name == ".launch")
    return launch(tokens);
  if (name == ".init" || name == ".main") {
    program = name == ".init" ? &image.kernels.back().init : &image.kernels.back().main;
    return true;
  }
  return fail("unknown directive '" + name + "'");
}

bool Assembler::line(const std::vector<Token> &tokens) {
  const std::string &name = tokens[0].value;
  if (name == ".mark") {
    if (tokens.size() != 2)
      return fail(".mark needs a text");
    image.addMark(tokens[1].value);
    return true;
  }
  if (name == ".stream" || name == ".function")
    return startCode(tokens);
  if (name == ".kernel") {
    if (tokens.size() != 2)
      return fail(".kernel needs a name");
    image.kernels.emplace_back().name = tokens[1].value;
    inKernel = true;
    code = nullptr;
    program = nullptr;
    return true;
  }
  if (name.starts_with("."))
    return inKernel ? kernelLine(tokens) : fail("'" + name + "' outside of a .kernel");
  if (!code)
    return fail("an instruction outside of .stream and .function");
  std::string why;
  auto in = text::parseInstruction(tokens, this, why);
  if (!in)
    return fail(why);
  code->instructions.push_back(std::move(*in));
  return true;
}

bool Assembler::run(std::string_view text) {
  return eachLine(text, [this](const std::vector<Token> &tokens) { return collect(tokens); }) &&
         eachLine(text, [this](const std::vector<Token> &tokens) { return line(tokens); });
}

} // namespace

std::optional<Image> assemble(std::string_view text, const Machine &machine, std::string &error) {
  error.clear();
  Assembler assembler(machine, error);
  if (!assembler.run(text))
    return std::nullopt;
  if (MaybeError wrong = verify(assembler.image)) {
    error = *wrong;
    return std::nullopt;
  }
  return std::move(assembler.image);
}

} // namespace dmx::corsair
