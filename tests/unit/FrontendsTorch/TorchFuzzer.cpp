//===- TorchFuzzer.cpp - hostile PyTorch archives -------------------------===//
//
// LLVMFuzzerTestOneInput for libFuzzer or AFL, and a main of its own that mutates a small corpus for a fixed number of
// rounds, the same on every machine. The first byte of an input says what the rest is: records are put into an archive
// with right checksums, or else no mutation would get past them.
//
//===----------------------------------------------------------------------===//
#include "ArchiveBuilder.h"

#include "frontends/torch/ModelFile.h"
#include "frontends/torch/Pickle.h"
#include "frontends/torch/SymbolicExpr.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

using namespace dmxc;
using namespace dmxc::torchfe;
using namespace torchtest;

namespace {

enum Kind : uint8_t { Whole, Json, Table, Pickled, Size, KindCount };

void check(bool condition, const char *what) {
  if (condition)
    return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

void refused(const Error &error) {
  check(!error.message.empty(), "a refusal has a reason");
  check(error.kind == ErrorKind::Model || error.kind == ErrorKind::Usage, "it is the file's fault");
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
  static volatile uint64_t sink;
  sink = touch(file->weights) + touch(file->constants);
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
    check(!problem.empty(), "a refusal has a reason");
}

std::vector<std::string> seeds() {
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

} // namespace

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
  case Size:
    readSize(text);
    break;
  }
  return 0;
}

#ifndef DMX_LIBFUZZER
namespace {

using Random = std::mt19937_64;

/// Words that mean something to one of the parsers.
const char *const kWords[] = {"-1",
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

void change(std::string &text, Random &random) {
  if (text.size() < 2)
    return;
  size_t at = 1 + random() % (text.size() - 1);
  switch (random() % 7) {
  case 0:
    text[at] = static_cast<char>(random());
    break;
  case 1:
    text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
    break;
  case 2:
    text.erase(at, 1 + random() % 16);
    break;
  case 3: {
    size_t from = 1 + random() % (text.size() - 1);
    text.insert(at, text.substr(from, 1 + random() % 40));
    break;
  }
  case 4:
  case 5: {
    std::string word = kWords[random() % std::size(kWords)];
    if (random() % 2)
      text.insert(at, word);
    else
      text.replace(at, std::min(word.size(), text.size() - at), word);
    break;
  }
  case 6:
    text.resize(at);
    break;
  }
}

} // namespace

int main(int argc, char **argv) {
  unsigned long long rounds = 2000, first = 0;
  for (int i = 1; i < argc; ++i) {
    std::string option = argv[i];
    if (option == "--rounds" && i + 1 < argc) {
      rounds = std::strtoull(argv[++i], nullptr, 10);
    } else if (option == "--first" && i + 1 < argc) {
      first = std::strtoull(argv[++i], nullptr, 10);
    } else { // an input that was found earlier
      std::ifstream file(option, std::ios::binary);
      std::string text{std::istreambuf_iterator<char>(file), {}};
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(text.data()), text.size());
      rounds = 0;
    }
  }
  std::vector<std::string> corpus = seeds();
  for (const std::string &seed : corpus)
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(seed.data()), seed.size());
  for (unsigned long long round = first; round < first + rounds; ++round) {
    Random random(round * 0x9E3779B97F4A7C15u + 1); // a round does not depend on those before
    std::string text = corpus[round % corpus.size()];
    for (size_t i = 0, count = 1 + random() % 4; i < count; ++i)
      change(text, random);
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(text.data()), text.size());
  }
  std::printf("%llu rounds\n", rounds);
  return 0;
}
#endif
