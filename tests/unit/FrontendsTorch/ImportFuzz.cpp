//===- ImportFuzz.cpp - imports mutated programs --------------------------===//
//
// dmx-fuzz-torch-import ROUNDS PATH...: each PATH is a .pt2 archive whose program is imported with other numbers,
// shapes, element types and edges. Every import must give a module or a diagnostic that is the program's fault. Each
// seed runs in a child process; exit 1 names those whose child died and the round. Deterministic.
//
//===----------------------------------------------------------------------===//
#include "ArchiveBuilder.h"

#include "dmxc/Reference/Interpreter.h"
#include "frontends/torch/Archive.h"
#include "frontends/torch/TorchFrontend.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <sys/resource.h>
#include <sys/wait.h>

using namespace dmxc;
using Json = nlohmann::json;
using Random = std::mt19937_64;

namespace {

/// Constants that are as large as a mutated shape makes them are left alone: this is no test of memory.
constexpr int64_t kMaxFolded = 1 << 16;

std::optional<std::vector<Tensor>> fold(mlir::Operation *op, llvm::ArrayRef<Tensor> operands, std::string &why) {
  for (mlir::Type type : op->getResultTypes())
    if (auto shaped = llvm::dyn_cast<mlir::ShapedType>(type); !shaped || shaped.getNumElements() > kMaxFolded)
      return std::nullopt;
  for (const Tensor &operand : operands)
    if (operand.numElements() > kMaxFolded)
      return std::nullopt;
  if (!reference::canEvaluate(op->getName()))
    return std::nullopt;
  Result<std::vector<Tensor>> results = reference::evaluateOp(op, operands);
  if (results)
    return std::move(*results);
  why = results.error().message;
  return std::nullopt;
}

void importOnce(const std::string &bytes) {
  int fd = memfd_create("archive", 0);
  if (write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    std::abort();
  {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    Diagnostics diagnostics;
    ImportOptions options;
    options.path = "/proc/self/fd/" + std::to_string(fd);
    options.fold = fold;
    auto imported = torchFrontend().import(context, options, diagnostics);
    int code = diagnostics.exitCode();
    if (imported ? code != 0 : code != 1 && code != 3) {
      std::fprintf(stderr, "broken promise: %s, exit code %d\n", imported ? "a module" : "no module", code);
      for (const Diagnostic &diagnostic : diagnostics.all())
        std::fprintf(stderr, "%s\n", renderText(diagnostic, false).c_str());
      std::abort();
    }
  }
  close(fd);
}

/// Pointers to the parts of the program that a mutation may touch.
void collect(Json &value, std::vector<Json *> &parts) {
  if (value.is_primitive() && !value.is_null())
    parts.push_back(&value);
  for (Json &item : value)
    if (value.is_structured()) {
      if (item.is_array())
        parts.push_back(&item);
      collect(item, parts);
    }
}

int64_t oddNumber(Random &random) {
  static const int64_t numbers[] = {0,  1,  -1,  2,    -2,    3,         4,         5,         7,
                                    -3, 16, 100, -100, 65536, 1LL << 31, 1LL << 40, INT64_MAX, INT64_MIN};
  return numbers[random() % (random() % 4 ? 11 : std::size(numbers))];
}

void change(Json &program, Random &random, const std::vector<std::string> &names) {
  std::vector<Json *> parts;
  Json &graph = program["graph_module"]["graph"];
  for (Json &node : graph["nodes"])
    collect(node["inputs"], parts);
  for (Json &meta : graph["tensor_values"])
    for (const char *key : {"sizes", "dtype"})
      collect(meta[key], parts);
  if (parts.empty())
    return;
  Json &part = *parts[random() % parts.size()];
  if (part.is_boolean())
    part = !part.get<bool>();
  else if (part.is_number())
    part = part.is_number_float() ? Json(static_cast<double>(oddNumber(random)) / 2) : Json(oddNumber(random));
  else if (part.is_string() && !names.empty())
    part = names[random() % names.size()];
  else if (part.is_array() && !part.empty()) {
    size_t at = random() % part.size();
    if (random() % 2)
      part.erase(at);
    else
      part.push_back(Json(part[at]));
  }
}

int currentRound = 0;

void onCrash(int signal) {
  char text[64];
  int length = std::snprintf(text, sizeof(text), "round %d, signal %d\n", currentRound, signal);
  if (write(2, text, length) < 0)
    _exit(3);
  _exit(1);
}

void runSeed(const std::string &path, int rounds) {
  auto file = MappedFile::open(path);
  if (!file)
    std::exit(2);
  auto archive = torchfe::Archive::read((*file)->bytes());
  if (!archive)
    std::exit(2);
  torchtest::Records records;
  for (const auto &[name, record] : archive->records())
    records.push_back({name, std::string(record.text())});
  for (int round = 0; round < rounds; ++round) {
    currentRound = round;
    Random random(round * 0x9E3779B97F4A7C15u + 1);
    for (auto &[name, data] : records)
      if (name == "models/model.json") {
        std::string original = data;
        Json program = Json::parse(data);
        std::vector<std::string> names;
        for (auto item : program["graph_module"]["graph"]["tensor_values"].items())
          names.push_back(item.key());
        for (size_t i = 0, count = 1 + random() % 3; i < count; ++i)
          change(program, random, names);
        data = program.dump();
        importOnce(torchtest::makeArchive(records));
        data = original;
      }
  }
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: dmx-fuzz-torch-import ROUNDS PATH...\n");
    return 2;
  }
  int rounds = std::atoi(argv[1]), broken = 0;
  for (int i = 2; i < argc; ++i) {
    std::fflush(nullptr);
    pid_t child = fork();
    if (child == 0) {
      for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM})
        std::signal(signal, onCrash);
      rlimit memory{rlim_t(4) << 30, rlim_t(4) << 30};
      setrlimit(RLIMIT_DATA, &memory);
      alarm(300);
      runSeed(argv[i], rounds);
      std::_Exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) {
      std::printf("BROKEN %s (status %d)\n", argv[i], status);
      ++broken;
    }
  }
  std::printf("%d seeds, %d rounds each, %d broken\n", argc - 2, rounds, broken);
  return broken != 0;
}
