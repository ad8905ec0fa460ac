//===- TorchFuzzer.cpp - hostile PyTorch archives -------------------------===//
//
// The reader alone: archives, programs, tables of weights, pickles, symbolic sizes. The first byte of an input says
// what the rest is: records are put into an archive with right checksums, or else no mutation would get past them.
//
//===----------------------------------------------------------------------===//
#include "ArchiveBuilder.h"
#include "Engine.h"
#include "TextMutator.h"

#include "frontends/torch/SymbolicExpr.h"
#include "frontends/torch/reader/Archive.h"
#include "frontends/torch/reader/ModelFile.h"
#include "frontends/torch/reader/Pickle.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

using namespace dmxc;
using namespace dmxc::torchfe;
using namespace torchtest;
using dmxfuzz::promise;

namespace {

enum Kind : uint8_t { Whole, Json, Table, Pickled, Size, KindCount };

void refused(const Error &error) {
  promise(!error.message.empty(), "a refusal has a reason");
  promise(error.kind == ErrorKind::Model || error.kind == ErrorKind::Usage, "it is the file's fault");
}

/// Every byte of every tensor: those outside of the file would show.
uint64_t touch(const Payloads &payloads) {
  uint64_t sum = 0;
  for (const std::string &name : payloads.names()) {
    Result<Payload> payload = payloads.read(name);
    if (!payload) {
      refused(payload.error());
      continue;
    }
    for (std::byte b : payload->tensor.raw())
      sum += static_cast<uint64_t>(b);
  }
  return sum;
}

void readArchive(const std::string &bytes) {
  Result<ModelFile> file = readModelFile(mapped(bytes), "");
  if (!file)
    return refused(file.error());
  [[maybe_unused]] volatile uint64_t sum = touch(file->weights) + touch(file->constants);
}

std::string weights() { return std::string(64, '\1'); }

Records archiveOf(const std::string &json, const std::string &table) {
  return {{"archive_format", "pt2"},
          {"archive_version", "0"},
          {"models/model.json", json},
          {"data/weights/model_weights_config.json", table},
          {"data/weights/weight_0", weights()}};
}

std::string goodTable() { return configJson(R"([{"as_int":3}])", R"([{"as_int":1}])", 0); }

void readSize(const std::string &text) {
  std::string problem;
  if (!parseSize({0, text}, problem))
    promise(!problem.empty(), "a refusal has a reason");
}

/// Words that mean something to one of the parsers.
const std::vector<std::string> kWords = {"-1",
                                         "0",
                                         "9223372036854775807",
                                         "4611686018427387904",
                                         "1e400",
                                         "null",
                                         "true",
                                         "[]",
                                         "{}",
                                         "{\"as_int\":",
                                         "as_none",
                                         "as_tensors",
                                         "as_sym_int",
                                         "as_expr",
                                         "as_graph",
                                         "token",
                                         "\"NaN\"",
                                         "..",
                                         "Symbol('",
                                         "Mul(",
                                         "//",
                                         "**",
                                         "%",
                                         "collections\nOrderedDict\n",
                                         "ctorch\nSize\n",
                                         "\x85",
                                         "R",
                                         "Q",
                                         "b",
                                         "(",
                                         "t",
                                         "]",
                                         "}",
                                         "a",
                                         "e",
                                         "s",
                                         "u",
                                         "h",
                                         "q",
                                         "PK\1\2",
                                         "PK\3\4",
                                         "PK\5\6",
                                         "PK\6\6",
                                         "\xff\xff\xff\xff"};

/// An archive with another record, and right checksums again; nothing where it is none any more.
std::optional<std::string> withChangedRecord(const std::string &bytes, dmxfuzz::Random &random) {
  Result<Archive> archive = Archive::read({reinterpret_cast<const std::byte *>(bytes.data()), bytes.size()});
  if (!archive || archive->records().empty())
    return std::nullopt;
  Records records;
  for (const auto &[name, record] : archive->records())
    records.push_back({name, std::string(record.text())});
  auto &[name, data] = records[random() % records.size()];
  std::optional<std::string> inner = random() % 4 ? withChangedRecord(data, random) : std::nullopt;
  if (inner)
    data = *inner;
  else if (random() % 8 == 0)
    dmxfuzz::changeText(name, 0, kWords, random);
  else
    dmxfuzz::changeText(data, 0, kWords, random);
  return makeArchive(records, random() % 8 ? "m" : "");
}

} // namespace

std::vector<std::string> dmxfuzz::builtInSeeds() {
  auto of = [](Kind kind, const std::string &text) { return std::string(1, static_cast<char>(kind)) + text; };
  std::string nested = makeArchive({{"data.pkl", pickle()}, {"data/0", weights()}}, "archive");
  return {
      of(Whole, makeArchive(archiveOf(programJson(), goodTable()))),
      of(Whole,
         makeArchive({{"serialized_exported_program.json", programJson()}, {"serialized_state_dict.pt", nested}}, "")),
      of(Json, programJson()),
      of(Table, goodTable()),
      of(Table, configJson(R"([{"as_int":2},{"as_int":3}])", R"([{"as_int":1},{"as_int":2}])", 5)),
      of(Pickled, pickle()),
      of(Size, "Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), FloorDiv(Symbol('s1'), Integer(3)))"),
      of(Size, "2*s0 + (s1 - 1)//2 % 5 ** 2")};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0)
    return 0;
  std::string text(reinterpret_cast<const char *>(data) + 1, size - 1);
  switch (data[0] % KindCount) {
  case Whole:
    readArchive(text);
    break;
  case Json:
    readArchive(makeArchive(archiveOf(text, goodTable())));
    break;
  case Table:
    readArchive(makeArchive(archiveOf(programJson(), text)));
    break;
  case Pickled:
    readArchive(
        makeArchive({{"serialized_exported_program.json", programJson()},
                     {"serialized_state_dict.pt", makeArchive({{"data.pkl", text}, {"data/0", weights()}}, "archive")}},
                    ""));
    break;
  default:
    readSize(text);
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t capacity, unsigned seed) {
  dmxfuzz::Random random(seed);
  std::string text(reinterpret_cast<char *>(data), size);
  if (size < 2 || random() % 3 == 0)
    return LLVMFuzzerMutate(data, size, capacity);
  std::optional<std::string> archive;
  if (data[0] % KindCount == Whole && random() % 4)
    archive = withChangedRecord(text.substr(1), random);
  if (archive)
    text.replace(1, std::string::npos, *archive);
  else
    dmxfuzz::changeText(text, 1, kWords, random);
  if (text.size() > capacity)
    return LLVMFuzzerMutate(data, size, capacity);
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
