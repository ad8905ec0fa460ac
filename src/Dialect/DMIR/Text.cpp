//===- Text.cpp - MLIR's text form, from a file that may be hostile -------===//
#include "dmxc/Dialect/DMIR/Text.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

namespace dmxc::dmir {

namespace {

/// Far more than what dmxc writes, far less than what the stack holds.
constexpr int kMaxDepth = 256;
/// Operators of one expression, each of which the parser of affine maps recurses into.
constexpr int kMaxOperators = 1000;
constexpr size_t kMaxBytes = size_t(1) << 30;
/// Parts of an attribute that is printed: each may name another one several times.
constexpr uint64_t kMaxParts = 1 << 20;
/// Elements of a tensor, beyond which numbers of bytes leave 64 bits.
constexpr uint64_t kMaxElements = uint64_t(1) << 46;

constexpr const char *kNotTaken = ", which no reader of texts takes";

bool isTooLarge(ArrayRef<int64_t> shape) {
  uint64_t count = 1;
  for (int64_t dim : shape) {
    uint64_t extent = ShapedType::isDynamic(dim) ? 1 : static_cast<uint64_t>(std::max<int64_t>(dim, 1));
    if (extent > kMaxElements / count)
      return true;
    count *= extent;
  }
  return false;
}

/// Walks over the tokens as MLIR's lexer cuts them, as far as brackets and operators need it.
class Scanner {
public:
  explicit Scanner(StringRef text) : text(text) {}

  /// What nests too deep, or is a block that its region has not, which MLIR's parser reports and does not survive; the
  /// place is `at`.
  std::optional<std::string> scan() {
    for (; at < text.size(); ++at) {
      char c = text[at];
      if (c == '"')
        skipString();
      else if (c == '/' && next() == '/')
        at = std::min(text.find('\n', at), text.size());
      else if (c == '^')
        block();
      else if (StringRef("%#!@").contains(c) || llvm::isAlpha(c) || c == '_') {
        if (skipName() == "array" && behind(behind(at + 1, "<"), "index") != StringRef::npos)
          return std::string("a list is of indices") + kNotTaken;
      } else if (!bracket(c) && !sign(c))
        continue;
      if (std::optional<std::string> missing = c == '{' || c == '}' ? enterOrLeave(c) : std::nullopt)
        return missing;
      if (depth > kMaxDepth)
        return "brackets are nested deeper than " + std::to_string(kMaxDepth) + " levels" + kNotTaken;
      if (operators > kMaxOperators)
        return "an expression has more than " + std::to_string(kMaxOperators) + " operators" + kNotTaken;
    }
    return std::nullopt;
  }

  size_t at = 0;

private:
  char next() const { return at + 1 < text.size() ? text[at + 1] : 0; }

  void skipString() {
    for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
      at += text[at] == '\\' && next() != '\n';
  }

  /// Behind a word, with blanks and comments before it; npos where another one stands there.
  size_t behind(size_t from, StringRef word) const {
    while (from < text.size() && (llvm::isSpace(text[from]) || text.substr(from).starts_with("//")))
      from = text[from] == '/' ? std::min(text.find('\n', from), text.size()) : from + 1;
    return from < text.size() && text.substr(from).starts_with(word) ? from + word.size() : StringRef::npos;
  }

  /// The name of a block: where it begins, or of one that follows.
  void block() {
    const size_t from = at;
    StringRef before = text.take_front(from).rtrim(" \t"), name = skipName();
    const bool begins = before.empty() || before.ends_with("\n") || before.ends_with("{");
    if (behind(at + 1, ":") != StringRef::npos || (begins && behind(at + 1, "(") != StringRef::npos))
      regions.back().blocks.insert(name);
    else
      regions.back().successors.try_emplace(name, from);
  }

  std::optional<std::string> enterOrLeave(char c) {
    if (c == '{') {
      regions.emplace_back();
      return std::nullopt;
    }
    for (const auto &[name, from] : regions.back().successors)
      if (!regions.back().blocks.contains(name)) {
        at = from;
        return "its region has no block " + name.str();
      }
    if (regions.size() > 1)
      regions.pop_back();
    return std::nullopt;
  }

  StringRef skipName() {
    size_t from = at;
    auto inside = [](char c) { return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.'; };
    bool prefixed = !llvm::isAlnum(text[at]) && text[at] != '_'; // such names may hold a '-', too
    while (inside(next()) || (prefixed && next() == '-'))
      ++at;
    StringRef name = text.slice(from, at + 1);
    operators += name == "floordiv" || name == "ceildiv" || name == "mod";
    return name;
  }

  bool bracket(char c) {
    // "->", ">=" and "<=" are no brackets.
    bool opens = c == '(' || c == '[' || c == '{' || (c == '<' && next() != '=');
    bool closes = c == ')' || c == ']' || c == '}' || (c == '>' && next() != '=');
    depth = std::max(0, depth + opens - closes);
    if (c == '{' || c == '}')
      operators = 0;
    return opens || closes;
  }

  bool sign(char c) {
    if (c == ',' || c == '=')
      operators = 0;
    if (c == '-' && next() == '>')
      ++at;
    else
      operators += c == '+' || c == '-' || c == '*';
    return c == ',' || c == '=' || c == '+' || c == '-' || c == '*';
  }

  /// What stands between two braces.
  struct Region {
    llvm::DenseSet<StringRef> blocks;
    llvm::MapVector<StringRef, size_t> successors; ///< where each is first named
  };
  StringRef text;
  int depth = 0, operators = 0;
  std::vector<Region> regions = std::vector<Region>(1);
};

TextProblem problemAt(StringRef text, size_t at, std::string what) {
  StringRef before = text.take_front(at);
  size_t lineStart = before.rfind('\n') + 1; // npos + 1 is 0
  return {static_cast<unsigned>(before.count('\n') + 1), static_cast<unsigned>(at - lineStart + 1), std::move(what)};
}

/// How deep attributes and types nest, and how many parts they have when they are printed. Aliases let both grow where
/// no bracket of the text does.
class Nesting {
public:
  bool isBounded(Operation *op) {
    auto all = [&](auto &&types) { return llvm::all_of(types, [&](Type type) { return isBounded(type); }); };
    auto arguments = [&](Block &block) {
      return all(block.getArgumentTypes()) &&
             llvm::all_of(block.getArguments(), [&](BlockArgument argument) { return isBounded(argument.getLoc()); });
    };
    return isBounded(op->getAttrDictionary()) && all(op->getResultTypes()) &&
           llvm::all_of(op->getRegions(), [&](Region &region) { return llvm::all_of(region, arguments); });
  }
  bool isBounded(Location loc) { return isBounded(Part(Attribute(loc))); }

  std::string why; ///< of what is not, a clause

private:
  using Part = llvm::PointerUnion<Attribute, Type>;
  struct Size {
    int depth;
    uint64_t parts;
  };

  bool isBounded(Attribute attribute) { return isBounded(Part(attribute)); }
  bool isBounded(Type type) { return isBounded(Part(type)); }

  template <typename Visit> static void forEachPart(Part part, Visit visit) {
    auto attribute = [&](Attribute inner) { visit(Part(inner)); };
    auto type = [&](Type inner) { visit(Part(inner)); };
    if (auto outer = dyn_cast<Attribute>(part))
      outer.walkImmediateSubElements(attribute, type);
    else
      cast<Type>(part).walkImmediateSubElements(attribute, type);
  }

  /// Without recursion, which is what it protects others from.
  bool isBounded(Part root) {
    SmallVector<Part> open{root};
    while (!open.empty()) {
      Part part = open.back();
      bool isNew = sizes.try_emplace(part, Size{1, 1}).second; // a type that names itself finds this
      Size size{1, 1};
      size_t before = open.size();
      forEachPart(part, [&](Part inner) {
        auto known = sizes.find(inner);
        if (known == sizes.end())
          return open.push_back(inner);
        size.depth = std::max(size.depth, known->second.depth + 1);
        size.parts += known->second.parts;
      });
      if (isNew && open.size() > before)
        continue;
      if (size.depth > kMaxDepth)
        return refuse("is nested deeper than " + std::to_string(kMaxDepth) + " levels, by way of aliases");
      if (size.parts > kMaxParts)
        return refuse("has more than " + std::to_string(kMaxParts) + " parts, by way of aliases");
      auto shaped = isa<Type>(part) ? dyn_cast<ShapedType>(cast<Type>(part)) : ShapedType();
      if (shaped && shaped.hasRank() && isTooLarge(shaped.getShape()))
        return refuse("has more than 2^46 elements");
      sizes[part] = size;
      open.truncate(before - 1);
    }
    return true;
  }

  bool refuse(std::string clause) {
    why = std::move(clause);
    return false;
  }

  DenseMap<Part, Size> sizes;
};

LogicalResult checkNesting(ModuleOp module, StringRef path) {
  Nesting nesting;
  WalkResult done = module->walk<WalkOrder::PreOrder>([&](Operation *op) {
    bool placed = nesting.isBounded(op->getLoc());
    if (placed && nesting.isBounded(op))
      return WalkResult::advance();
    // Not at a location that is what nests too deep.
    emitError(placed ? op->getLoc() : FileLineColLoc::get(op->getContext(), path, 1, 1))
        << "an attribute, a type or the location of '" << op->getName().getStringRef() << "' " << nesting.why;
    return WalkResult::interrupt();
  });
  return failure(done.wasInterrupted());
}

} // namespace

std::optional<TextProblem> problemOfText(StringRef text) {
  if (text.starts_with("ML\xefR"))
    return TextProblem{1, 1,
                       "this is MLIR's bytecode, which is not read; write it as text: mlir-opt FILE -o FILE.mlir"};
  if (text.size() > kMaxBytes)
    return TextProblem{1, 1,
                       "the text has more than " + std::to_string(kMaxBytes >> 30) +
                           " GiB; large constants belong into a file beside it (#dmir.file)"};
  if (size_t at = text.find('\0'); at != StringRef::npos)
    return problemAt(text, at, "a byte of 0 stands here, so this is no text; give MLIR's text form");
  Scanner scanner(text);
  if (std::optional<std::string> deep = scanner.scan())
    return problemAt(text, scanner.at, *deep);
  return std::nullopt;
}

OwningOpRef<ModuleOp> parseText(StringRef text, StringRef path, MLIRContext &context, bool verifies) {
  if (std::optional<TextProblem> problem = problemOfText(text)) {
    emitError(FileLineColLoc::get(&context, path, problem->line, problem->column)) << problem->what;
    return {};
  }
  // Verifiers walk over attributes, so they come after the look at how these nest.
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(text, ParserConfig(&context, /*verifyAfterParse=*/false), path);
  if (!module || failed(checkNesting(*module, path)) ||
      (verifies && (failed(verify(*module)) || failed(checkFacts(*module)))))
    return {};
  return module;
}

OwningOpRef<ModuleOp> parseTextFile(StringRef path, MLIRContext &context) {
  auto file = llvm::MemoryBuffer::getFile(path);
  if (file)
    return parseText((*file)->getBuffer(), path, context);
  emitError(UnknownLoc::get(&context)) << "cannot read '" << path << "': " << file.getError().message();
  return {};
}

} // namespace dmxc::dmir
