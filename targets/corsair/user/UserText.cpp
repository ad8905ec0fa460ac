//===- UserText.cpp - kernels that users wrote in assembly ----------------===//
#include "UserText.h"

#include "UserLines.h"

#include "schemas/corsair/text/Text.h"
#include "targets/common/user/UserKernels.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <set>

using namespace dmxc;
using namespace dmxc::corsair;
using hw::text::Token;
using llvm::StringRef;

Error UserName::refusal(unsigned line, const std::string &clause) const {
  return kernels::refusalOf(kernel, file, (line ? "line " + std::to_string(line) + ": " : "") + clause);
}

const UserTensor *UserText::tensor(StringRef name) const {
  for (const auto *list : {&operands, &results})
    for (const UserTensor &tensor : *list)
      if (tensor.name == name)
        return &tensor;
  return nullptr;
}

bool UserText::isOperand(StringRef name) const {
  return llvm::any_of(operands, [&](const UserTensor &tensor) { return tensor.name == name; });
}

bool UserText::usesUnits() const {
  auto isUnit = [](const UserLine &line) {
    return llvm::any_of(line.instruction.info().fields, [&](const hw::FieldInfo &field) {
      std::optional<hw::Memory> memory = memoryOf(line, field.name);
      return memory && *memory != hw::Memory::GM && *memory != hw::Memory::ST;
    });
  };
  return llvm::any_of(queues, [&](const auto &lines) { return llvm::any_of(lines, isUnit); });
}

size_t dmxc::corsair::endOfLoop(llvm::ArrayRef<UserLine> lines, size_t begin) {
  size_t at = begin;
  for (int depth = 0;; ++at) {
    depth += lines[at].instruction.opcode == hw::Opcode::Loop;
    depth -= lines[at].instruction.opcode == hw::Opcode::EndLoop;
    if (!depth)
      return at;
  }
}

namespace {

/// Reads the directives of a text, and sorts its lines by streams. What is wrong is thrown as an Error, and stays in
/// this file.
class Reader {
public:
  Reader(const UserSource &source, const hw::Machine &machine) : source(source), machine(machine) {}

  UserText run() {
    unsigned number = 1;
    for (StringRef rest = source.text; !rest.empty(); ++number) {
      auto [line, behind] = rest.split('\n');
      std::vector<Token> tokens;
      std::string why;
      if (!hw::text::tokenize(std::string_view(line), tokens, why))
        refuse(number, why);
      if (!tokens.empty())
        take(number, std::move(tokens));
      rest = behind;
    }
    if (!isFound)
      refuse(0, "it has no kernel '" + source.symbol + "'" +
                    (others.empty() ? "" : "; it has " + llvm::join(others, ", ")));
    if (names.scalars.size() != source.scalars.size())
      refuse(0, "it has " + std::to_string(names.scalars.size()) + " scalars, and its kernel file " +
                    std::to_string(source.scalars.size()));
    for (auto &[line, tokens] : sizes)
      addBuffer(line, tokens);
    for (size_t queue = 0; queue < text.queues.size(); ++queue)
      if (launched[queue])
        readQueue(queue, *launched[queue]);
    if (llvm::none_of(launched, [](const auto &stream) { return stream.has_value(); }))
      refuse(0, "no queue of it has a stream; it needs a .launch, as '.launch q3=" + source.symbol + "'");
    checkTokens();
    text.name = source;
    return std::move(text);
  }

private:
  struct Stream {
    unsigned line = 0;
    std::vector<NumberedTokens> lines;
  };

  [[noreturn]] void refuse(unsigned line, const std::string &clause) const { throw source.refusal(line, clause); }

  void take(unsigned line, std::vector<Token> tokens) {
    const std::string &first = tokens[0].value;
    if (first == ".stream") {
      if (tokens.size() != 2 || !tokens[1].key.empty())
        refuse(line, ".stream needs a name");
      if (!streams.try_emplace(tokens[1].value, Stream{line, {}}).second)
        refuse(line, "'" + tokens[1].value + "' is defined twice");
      stream = &streams[tokens[1].value];
      return;
    }
    if (first == ".kernel")
      return beginKernel(line, tokens);
    if (first == ".function")
      refuse(line, "it has a function of the quad's CPU, and what one touches is not known before a run; use the "
                   "queues' instructions alone");
    if (!StringRef(first).starts_with(".")) {
      if (!stream)
        refuse(line, "an instruction outside of a .stream");
      stream->lines.push_back({line, std::move(tokens)});
      return;
    }
    if (!inKernel)
      refuse(line, "'" + first + "' outside of a .kernel");
    if (isMeant)
      directive(line, tokens);
  }

  void beginKernel(unsigned line, const std::vector<Token> &tokens) {
    if (tokens.size() != 2)
      refuse(line, ".kernel needs a name");
    stream = nullptr;
    inKernel = true;
    isMeant = tokens[1].value == source.symbol;
    if (isMeant && isFound)
      refuse(line, "there are two kernels '" + source.symbol + "'");
    isFound |= isMeant;
    if (!isMeant)
      others.push_back(tokens[1].value);
  }

  void directive(unsigned line, const std::vector<Token> &tokens) {
    const std::string &name = tokens[0].value;
    if (name == ".argument")
      return addArgument(line, tokens);
    if (name == ".buffer")
      return void(sizes.emplace_back(line, tokens)); // scalars may stand behind it
    if (name == ".token")
      return addToken(line, tokens);
    if (name == ".launch")
      return addLaunch(line, tokens);
    if (name != ".main")
      refuse(line, "unknown directive '" + name + "'; a kernel has .argument, .buffer, .token, .main and .launch");
  }

  void declare(unsigned line, const std::string &name) {
    if (!declared.insert(name).second)
      refuse(line, "there are two '" + name + "'");
  }

  /// .argument x input form=f16 [shape=[8,64]]; .argument n scalar
  void addArgument(unsigned line, const std::vector<Token> &tokens) {
    if (tokens.size() < 3)
      refuse(line, ".argument needs a name and a role: input, output or scalar");
    const std::string &name = tokens[1].value, &role = tokens[2].value;
    declare(line, name);
    if (role == "scalar") {
      if (names.scalars.size() == source.scalars.size())
        refuse(line, "its kernel file has " + std::to_string(source.scalars.size()) + " scalars, and '" + name +
                         "' is one more");
      names.scalars[name] = source.scalars[names.scalars.size()];
      return;
    }
    if (role != "input" && role != "output")
      refuse(line, "the role of '" + name + "' is input, output or scalar, not '" + role + "'");
    UserTensor tensor{name, line, hw::ElemKind::Raw, std::nullopt};
    for (const Token &token : llvm::drop_begin(tokens, 3)) {
      std::optional<hw::ElemKind> kind = hw::elemKindFromName(token.value);
      if (token.key == "form" && kind && hw::elementBytes(*kind))
        tensor.kind = *kind;
      else if (token.key == "shape" && token.value.size() > 1 && token.value.front() == '[' &&
               token.value.back() == ']')
        tensor.shape = shapeOf(line, StringRef(token.value).drop_front().drop_back());
      else
        refuse(line, "argument '" + name + "' does not take '" + token.key + "=" + token.value + "'");
    }
    if (tensor.kind == hw::ElemKind::Raw)
      refuse(line, "argument '" + name + "' has no form of its elements; say form=f16, bool, i32 or i64");
    names.buffers[name] = hw::Memory::GM;
    (role == "input" ? text.operands : text.results).push_back(std::move(tensor));
  }

  std::vector<int64_t> shapeOf(unsigned line, StringRef list) const {
    std::vector<int64_t> shape;
    llvm::SmallVector<StringRef> dims;
    list.split(dims, ',', -1, /*KeepEmpty=*/false);
    for (StringRef dim : dims)
      shape.push_back(numberOf(line, dim.str()));
    return shape;
  }

  int64_t numberOf(unsigned line, const std::string &value) const {
    int64_t number = 0;
    if (!hw::text::parseInteger(names.expanded(source, line, value, nullptr), number))
      refuse(line, "'" + value + "' is no number");
    return number;
  }

  /// .buffer part GM 512
  void addBuffer(unsigned line, const std::vector<Token> &tokens) {
    const bool isKnown = tokens.size() == 4 && (tokens[2].value == "GM" || tokens[2].value == "ST");
    if (!isKnown)
      refuse(line, ".buffer needs a name, GM or ST, and bytes; the memories of slices are there from address 0 on");
    const std::string &name = tokens[1].value;
    declare(line, name);
    const hw::Memory memory = tokens[2].value == "GM" ? hw::Memory::GM : hw::Memory::ST;
    const int64_t bytes = numberOf(line, tokens[3].value), room = static_cast<int64_t>(machine.memory(memory).size);
    if (bytes < 1 || bytes > room)
      refuse(line, "buffer '" + name + "' has " + std::to_string(bytes) + " bytes, and may have 1 to " +
                       std::to_string(room));
    names.buffers[name] = memory;
    text.buffers.push_back({name, memory, bytes});
  }

  /// .token id=0 credits=2
  void addToken(unsigned line, const std::vector<Token> &tokens) {
    std::optional<int64_t> id, credits;
    for (const Token &token : llvm::drop_begin(tokens))
      if (token.key == "id" || token.key == "credits")
        (token.key == "id" ? id : credits) = numberOf(line, token.value);
    if (tokens.size() != 3 || !id || !credits || *id < 0 || *id >= hw::kTokens || *credits < 1 || *credits > 65535)
      refuse(line, ".token needs id= and credits=, those that are there at first");
    if (!text.credits.try_emplace(*id, *credits).second)
      refuse(line, "token " + std::to_string(*id) + " has credits already");
  }

  /// .launch q0=load q3=work
  void addLaunch(unsigned line, const std::vector<Token> &tokens) {
    for (const Token &token : llvm::drop_begin(tokens)) {
      const bool isQueue = token.key.size() == 2 && token.key[0] == 'q' && token.key[1] >= '0' && token.key[1] < '4';
      if (!isQueue)
        refuse(line, ".launch does not take '" + (token.key.empty() ? "" : token.key + "=") + token.value +
                         "'; it names streams, as 'q0=load q3=work', and all quads of the team run them");
      std::optional<NamedStream> &queue = launched[token.key[1] - '0'];
      if (queue)
        refuse(line, "queue " + token.key.substr(1) + " has a stream already");
      queue = NamedStream{line, token.value};
    }
  }

  struct NamedStream {
    unsigned line;
    std::string name;
  };

  void readQueue(size_t queue, const NamedStream &named) {
    auto found = streams.find(named.name);
    if (found == streams.end())
      refuse(named.line, "there is no stream '" + named.name + "'");
    text.queues[queue] = readLines(source, machine, names, text, found->second.line, found->second.lines);
  }

  /// What is waited for comes from somewhere.
  void checkTokens() const {
    std::set<int64_t> given;
    for (const auto &[id, ignored] : text.credits)
      given.insert(id);
    auto each = [&](hw::Opcode opcode, llvm::function_ref<void(const UserLine &, int64_t)> visit) {
      for (const std::vector<UserLine> &lines : text.queues)
        for (const UserLine &line : lines)
          if (line.instruction.opcode == opcode)
            visit(line, line.instruction.get("id"));
    };
    each(hw::Opcode::Signal, [&](const UserLine &, int64_t id) { given.insert(id); });
    each(hw::Opcode::Wait, [&](const UserLine &line, int64_t id) {
      if (!given.count(id))
        refuse(line.number, "token " + std::to_string(id) + " is waited for, and nothing signals it");
    });
  }

  const UserSource &source;
  const hw::Machine &machine;
  UserText text;
  UserNames names;
  std::map<std::string, Stream> streams;
  Stream *stream = nullptr;
  bool inKernel = false, isMeant = false, isFound = false;
  std::vector<std::string> others;
  std::set<std::string> declared;
  std::vector<std::pair<unsigned, std::vector<Token>>> sizes; ///< the lines of buffers
  std::array<std::optional<NamedStream>, 4> launched;
};

} // namespace

Result<UserText> dmxc::corsair::readUserText(const UserSource &source, const hw::Machine &machine) {
  try {
    return Reader(source, machine).run();
  } catch (Error &error) {
    return std::move(error);
  }
}
