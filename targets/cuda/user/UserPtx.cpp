//===- UserPtx.cpp - entries of PTX texts that users wrote -----------------===//

#include "UserPtx.h"
#include "PtxWords.h"

#include "targets/common/user/UserKernels.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace dmxc;
using namespace dmxc::cuda;
using llvm::StringMap;
using llvm::StringRef;

Error UserText::refusal(const std::string &clause) const { return kernels::refusalOf(kernel, file, clause); }

namespace {

/// Words [begin, end) of the text.
struct Span {
  size_t begin = 0, end = 0;
};

/// Reads what stands around entries, and rewrites the one that is meant. What is wrong is thrown as an Error, and stays
/// in this file.
class Adopter {
public:
  Adopter(const UserText &from, const EntryShape &shape, const std::function<unsigned(StringRef)> &fileNumber)
      : from(from), shape(shape), fileNumber(fileNumber), words(wordsOf(from.text)) {}

  AdoptedEntry run() {
    while (word().kind != PtxWord::End)
      directive();
    if (addressSize != 64)
      refuse(1, "it has no '.address_size 64': addresses of 32 bits are not known here");
    if (!entry.end)
      throw from.refusal("it has no entry '" + from.symbol + "'" +
                         (others.empty() ? "" : "; it has " + llvm::join(others, ", ")));
    rewriteEntry();
    AdoptedEntry made{"\n", version};
    for (const auto &[name, variable] : variables)
      if (variable.isUsed)
        made.text += "\n" + textOf(variable.span) + "\n";
    made.text += "\n.visible " + textOf(entry) + "\n";
    return made;
  }

private:
  struct Variable {
    Span span;
    bool isUsed = false;
  };

  const PtxWord &word() const { return words[at]; }
  void take() { at += words[at].kind != PtxWord::End; }
  [[noreturn]] void refuse(unsigned line, const std::string &clause) const {
    throw from.refusal("line " + std::to_string(line) + ": " + clause);
  }
  [[noreturn]] void wants(const std::string &what) const {
    refuse(word().line, word().kind == PtxWord::End
                            ? "the text ends where " + what + " is wanted"
                            : "'" + word().text.take_front(40).str() + "' stands where " + what + " is wanted");
  }
  void expect(StringRef sign) {
    if (!word().is(sign))
      wants(("'" + sign + "'").str());
    take();
  }
  int64_t number() {
    int64_t value = 0;
    if (word().kind != PtxWord::Number || word().text.getAsInteger(0, value))
      wants("a number");
    take();
    return value;
  }
  StringRef name() {
    if (!word().isOwnName())
      wants("a name");
    StringRef text = word().text;
    take();
    return text;
  }
  /// Past the bracket that closes the one at hand.
  void passBrackets() {
    StringRef open = word().text, close = open == "{" ? "}" : ")";
    size_t begin = at;
    for (int64_t depth = 0;;) {
      if (word().kind == PtxWord::End)
        refuse(words[begin].line, ("the '" + open + "' of this line is not closed").str());
      depth += word().is(open) - word().is(close);
      take();
      if (depth == 0)
        return;
    }
  }

  void directive();
  void readVersion();
  void readTarget();
  void readFile();
  void readVariable(size_t begin);
  void readFunction();
  void readEntry();

  void rewriteEntry();
  void rewriteParameters();
  void checkParameter(size_t number, Span words) const;
  void rewriteTraits();
  void rewriteBody();
  void rewritePlace();
  void rewriteName();
  int64_t axes();

  /// Text that stands before a word, or in its place.
  void insert(size_t before, const std::string &text) { edits[before].first += text; }
  void replace(size_t i, const std::string &text) { edits[i].second = text; }
  std::string textOf(Span span) const;

  const UserText &from;
  const EntryShape &shape;
  const std::function<unsigned(StringRef)> &fileNumber;
  std::vector<PtxWord> words;
  size_t at = 0;

  unsigned version = 0;
  int64_t addressSize = 0;
  std::map<int64_t, std::string> files;
  std::map<StringRef, Variable> variables;
  StringMap<unsigned> functions; // and their lines
  std::vector<std::string> others;
  Span entry, parameters;
  std::map<size_t, std::pair<std::string, std::optional<std::string>>> edits; // by word
};

std::string Adopter::textOf(Span span) const {
  std::string text;
  const char *copied = words[span.begin].text.begin();
  auto last = words[span.end - 1].text.end();
  for (auto edit = edits.lower_bound(span.begin); edit != edits.end() && edit->first < span.end; ++edit) {
    const PtxWord &word = words[edit->first];
    text.append(copied, word.text.begin());
    text += edit->second.first + edit->second.second.value_or(word.text.str());
    copied = word.text.end();
  }
  return text.append(copied, last);
}

//===--- What stands around entries ----------------------------------------------===//

void Adopter::directive() {
  size_t begin = at;
  while (word().is(".visible") || word().is(".extern") || word().is(".weak") || word().is(".common"))
    take();
  if (word().is(".version"))
    return readVersion();
  if (word().is(".target"))
    return readTarget();
  if (word().is(".address_size"))
    return take(), void(addressSize = number());
  if (word().is(".file"))
    return readFile();
  if (word().is(".section")) { // of a debugger
    while (!word().is("{") && word().kind != PtxWord::End)
      take();
    return passBrackets();
  }
  if (word().is(".global") || word().is(".const") || word().is(".shared"))
    return readVariable(begin);
  if (word().is(".func"))
    return readFunction();
  if (!word().is(".entry"))
    wants("a directive of PTX that is known here");
  readEntry();
}

void Adopter::readVersion() {
  take();
  auto [major, minor] = word().text.split('.');
  unsigned first = 0, second = 0;
  if (word().kind != PtxWord::Number || major.getAsInteger(10, first) || minor.getAsInteger(10, second) || first > 99 ||
      second > 9)
    wants("a version");
  take();
  version = std::max(80u, 10 * first + second);
}

/// What is for older GPUs runs on a newer one, what ends with a letter on its own alone.
void Adopter::readTarget() {
  take();
  StringRef target = name(), digits = target;
  unsigned capability = 0;
  bool isKnown = digits.consume_front("sm_") && !digits.consumeInteger(10, capability);
  if (!isKnown || capability > 90 || (!digits.empty() && target != "sm_90a"))
    refuse(words[at - 1].line, "it is for " + target.str() + ", and this bundle is for sm_90a");
  while (word().is(",")) {
    take();
    if (StringRef option = name(); option != "debug")
      refuse(words[at - 1].line, "the option '" + option.str() + "' of .target is not known here");
  }
}

/// .file 1 "name" [, time, size]
void Adopter::readFile() {
  take();
  int64_t own = number();
  if (word().kind != PtxWord::Text)
    wants("a file's name in quotes");
  files[own] = word().text.drop_front().drop_back().str();
  take();
  while (word().is(","))
    take(), void(number());
}

/// .global .align 4 .b8 name[12] = {..};
void Adopter::readVariable(size_t begin) {
  take();
  while (!word().isOwnName()) {
    if (word().is(";") || word().kind == PtxWord::End)
      wants("a variable's name");
    take();
  }
  size_t own = at;
  StringRef called = name();
  while (!word().is(";")) {
    if (word().kind == PtxWord::End)
      wants("';'");
    take();
  }
  take();
  if (!variables.try_emplace(called, Variable{{begin, at}}).second)
    refuse(words[own].line, "there are two variables '" + called.str() + "'");
  replace(own, shape.name + "_" + called.str());
}

void Adopter::readFunction() {
  unsigned line = word().line;
  take();
  if (word().is("("))
    passBrackets();
  functions[name()] = line;
  while (!word().is(";") && !word().is("{"))
    if (word().is("("))
      passBrackets();
    else if (word().kind == PtxWord::End)
      wants("the function's body");
    else
      take();
  word().is("{") ? passBrackets() : take();
}

void Adopter::readEntry() {
  size_t begin = at;
  take();
  size_t own = at;
  StringRef called = name();
  bool isMeant = called == from.symbol;
  if (isMeant && entry.end)
    refuse(words[own].line, "there are two entries '" + called.str() + "'");
  size_t open = at;
  if (word().is("("))
    passBrackets();
  size_t close = at;
  while (!word().is("{")) {
    if (word().kind == PtxWord::End || word().is(";"))
      wants("the entry's body");
    take();
  }
  passBrackets();
  if (!isMeant)
    return others.push_back(called.str());
  entry = {begin, at};
  parameters = {open, close};
  replace(own, shape.name);
}

//===--- The entry ---------------------------------------------------------------===//

void Adopter::rewriteEntry() {
  size_t end = at;
  rewriteParameters();
  rewriteTraits();
  rewriteBody();
  at = end;
}

/// .param [.align 64] .b8 name[128]
void Adopter::checkParameter(size_t number, Span span) const {
  bool isMap = number >= static_cast<size_t>(shape.words + (from.takesAll ? 4 : 0));
  int64_t align = 1, bytes = -1;
  bool isWord = false;
  for (size_t i = span.begin; i < span.end; ++i) {
    if (words[i].is(".align"))
      words[i + 1].text.getAsInteger(0, align);
    if (words[i].is("["))
      words[i + 1].text.getAsInteger(0, bytes);
    isWord |= words[i].is(".u64") || words[i].is(".b64") || words[i].is(".s64");
  }
  if (isMap && (bytes != 128 || align < 64))
    refuse(words[span.begin].line,
           "parameter " + std::to_string(number) + " is a tensor map's, which is '.param .align 64 .b8 NAME[128]'");
  if (!isMap && (!isWord || bytes >= 0))
    refuse(words[span.begin].line,
           "parameter " + std::to_string(number) + " is a number of 64 bits: '.param .u64 NAME'");
}

/// Behind buffers and sizes stand four words that every kernel is given.
void Adopter::rewriteParameters() {
  std::vector<Span> each;
  for (size_t i = parameters.begin; i < parameters.end; ++i)
    if (words[i].is("(") || words[i].is(","))
      each.push_back({i + 1, i + 1});
    else if (!each.empty() && i + 1 < parameters.end)
      each.back().end = i + 1;
  if (each.size() == 1 && each[0].begin == each[0].end)
    each.clear();
  int64_t own = shape.words + (from.takesAll ? 4 : 0);
  if (static_cast<int64_t>(each.size()) != own + shape.maps)
    refuse(words[entry.begin].line, "the entry '" + from.symbol + "' has " + std::to_string(each.size()) +
                                        " parameters; its operands, results" + (from.takesAll ? "," : " and") +
                                        " scalars" + (from.takesAll ? " and what every kernel is given" : "") +
                                        " are " + std::to_string(own) + ", and its maps " + std::to_string(shape.maps));
  for (size_t i = 0; i < each.size(); ++i)
    checkParameter(i, each[i]);
  if (from.takesAll)
    return;
  std::string tail;
  for (StringRef part : {"scratch", "share", "results", "status"})
    tail += ",\n\t.param .u64 " + shape.name + "_" + part.str();
  size_t behind = shape.maps ? each[static_cast<size_t>(shape.words)].begin - 1 : parameters.end - 1;
  insert(behind, tail);
}

/// N [, 1 [, 1]]
int64_t Adopter::axes() {
  int64_t first = number();
  for (; word().is(",");)
    if (take(), number() != 1)
      refuse(words[at - 1].line, "blocks and clusters have one axis here");
  return first;
}

void Adopter::rewriteTraits() {
  bool saysThreads = false, saysCluster = false;
  for (at = parameters.end; !word().is("{");) {
    size_t own = at;
    StringRef trait = word().text;
    take();
    if (trait == ".explicitcluster")
      continue;
    int64_t count = axes();
    unsigned line = words[own].line;
    if (trait == ".reqntid" || trait == ".maxntid") {
      if (trait == ".maxntid" ? count < shape.block : count != shape.block)
        refuse(line, trait.str() + " is " + std::to_string(count) + ", and its launch has blocks of " +
                         std::to_string(shape.block) + " threads");
      if (trait == ".maxntid") // which says less
        for (size_t i = own; i < at; ++i)
          replace(i, "");
      saysThreads |= trait == ".reqntid";
    } else if (trait == ".reqnctapercluster") {
      if (count != shape.cluster)
        refuse(line, ".reqnctapercluster is " + std::to_string(count) + ", and its launch has clusters of " +
                         std::to_string(shape.cluster) + " blocks");
      saysCluster = true;
    } else if (trait != ".minnctapersm" && trait != ".maxnreg") {
      refuse(line, "'" + trait.take_front(40).str() + "' is no directive of an entry that is known here");
    }
  }
  if (!saysThreads)
    insert(at, ".reqntid " + std::to_string(shape.block) + ", 1, 1\n");
  if (!saysCluster && shape.cluster > 1)
    insert(at, ".explicitcluster\n.reqnctapercluster " + std::to_string(shape.cluster) + ", 1, 1\n");
}

/// .loc 1 30 5 [, function_name LABEL, inlined_at 1 20 3]: what was inlined has its own line.
void Adopter::rewritePlace() {
  size_t own = at;
  take();
  size_t numberAt = at;
  int64_t file = number();
  number(), number();
  auto known = files.find(file);
  if (known == files.end())
    refuse(words[own].line, "there is no .file " + std::to_string(file));
  replace(numberAt, std::to_string(fileNumber(known->second)));
  while (word().is(",")) {
    size_t begin = at;
    take();
    bool isFunction = word().is("function_name");
    take();
    for (int64_t rest = isFunction ? 1 : 3; rest > 0; --rest)
      take();
    if (word().is("+"))
      take(), take();
    for (size_t i = begin; i < at; ++i)
      replace(i, "");
  }
}

void Adopter::rewriteName() {
  StringRef text = word().text;
  if (auto function = functions.find(text); function != functions.end())
    refuse(word().line, "it calls the function '" + text.str() + "' of line " + std::to_string(function->second) +
                            ", and no functions are called here: inline it");
  if (auto variable = variables.find(text); variable != variables.end()) {
    variable->second.isUsed = true;
    replace(at, shape.name + "_" + text.str());
  }
}

void Adopter::rewriteBody() {
  bool hasPlaces = false, begins = false;
  for (size_t i = at; i < entry.end; ++i)
    hasPlaces |= words[i].is(".loc");
  std::string place = hasPlaces ? "" : ".loc " + std::to_string(fileNumber(from.file)) + " ";
  unsigned lastLine = 0;
  while (at < entry.end) {
    if (word().kind == PtxWord::Bad)
      refuse(word().line, "'" + word().text.take_front(40).str() + "' is no word of PTX");
    if (word().is(".loc")) {
      rewritePlace();
      begins = true;
      continue;
    }
    bool isLabel = begins && word().isOwnName() && words[at + 1].is(":");
    if (begins && !isLabel && (word().isOwnName() || word().is("@")) && !hasPlaces && word().line != lastLine) {
      insert(at, place + std::to_string(word().line) + " 0\n\t");
      lastLine = word().line;
    }
    if (word().isOwnName())
      rewriteName();
    begins = word().is("{") || word().is("}") || word().is(";") || (begins && isLabel);
    take();
    if (isLabel)
      take(); // its colon
  }
}

} // namespace

Result<AdoptedEntry> dmxc::cuda::adoptEntry(const UserText &from, const EntryShape &shape,
                                            const std::function<unsigned(StringRef)> &fileNumber) {
  try {
    return Adopter(from, shape, fileNumber).run();
  } catch (Error &error) {
    return std::move(error);
  }
}
