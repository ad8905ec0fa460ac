//===- Engine.cpp - a fuzzer's main where libFuzzer is not there ----------===//
//
//   FUZZER [--rounds N] [--from ROUND] [--only ROUND] [--write-corpus DIR] [FILE or FOLDER...]
//
// Runs all seeds, then N mutations of them. A round depends on its number and its seed only. The rounds run in a child
// process: one that crashes, hangs or takes too much memory is named with its round, and its input is kept.
//
//===----------------------------------------------------------------------===//
#include "Engine.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace {

/// Seconds that one input may take.
constexpr unsigned kTimeLimit = 60;
constexpr size_t kCapacity = size_t(1) << 16;

/// The input that runs now, where the parent sees it.
struct Shared {
  unsigned long long round;
  size_t size;
  uint8_t data[kCapacity];
};
Shared *shared;

std::mt19937 byteRandom;

void run(const std::string &input, unsigned long long round) {
  shared->round = round;
  shared->size = std::min(input.size(), kCapacity);
  std::memcpy(shared->data, input.data(), shared->size);
  alarm(kTimeLimit);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(input.data()), input.size());
  alarm(0);
}

std::string mutated(std::string input, unsigned long long round) {
  std::mt19937_64 random(round * 0x9E3779B97F4A7C15u + 1);
  byteRandom.seed(static_cast<unsigned>(random()));
  for (uint64_t changes = 1 + random() % 3; changes; --changes) {
    size_t size = input.size();
    input.resize(kCapacity);
    size = LLVMFuzzerCustomMutator(reinterpret_cast<uint8_t *>(input.data()), std::min(size, kCapacity), kCapacity,
                                   static_cast<unsigned>(random()));
    input.resize(size);
  }
  return input;
}

std::string readFile(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Options {
  unsigned long long rounds = 2000, first = 0;
  std::vector<std::string> seeds = dmxfuzz::builtInSeeds();
  std::string writeCorpus;
};

void addSeeds(const std::string &path, std::vector<std::string> &seeds) {
  if (!fs::is_directory(path)) {
    if (!fs::exists(path)) {
      std::fprintf(stderr, "there is no '%s'\n", path.c_str());
      std::exit(2);
    }
    seeds.push_back(readFile(path));
    return;
  }
  std::vector<fs::path> files;
  for (const auto &entry : fs::recursive_directory_iterator(path))
    if (entry.is_regular_file())
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path &file : files)
    seeds.push_back(readFile(file));
}

Options parse(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string option = argv[i];
    if (option.rfind("--", 0) != 0) {
      addSeeds(option, options.seeds);
      continue;
    }
    if (++i == argc ||
        (option != "--rounds" && option != "--only" && option != "--from" && option != "--write-corpus")) {
      std::fprintf(stderr,
                   "usage: %s [--rounds N] [--from ROUND] [--only ROUND] [--write-corpus DIR] [FILE or FOLDER...]\n",
                   argv[0]);
      std::exit(2);
    }
    if (option == "--write-corpus")
      options.writeCorpus = argv[i];
    else if (option == "--rounds")
      options.rounds = std::strtoull(argv[i], nullptr, 10);
    else if (option == "--from")
      options.first = std::strtoull(argv[i], nullptr, 10);
    else if (option == "--only")
      options.first = std::strtoull(argv[i], nullptr, 10), options.rounds = 1;
  }
  return options;
}

/// Runs [0, seeds) as they are and the rounds behind them; the child's work.
void runAll(const Options &options) {
  if (options.first == 0)
    for (size_t i = 0; i < options.seeds.size(); ++i)
      run(options.seeds[i], i);
  for (unsigned long long round = options.first; round < options.first + options.rounds; ++round)
    run(mutated(options.seeds[round % options.seeds.size()], round), round);
}

int reportDeath(int status) {
  std::string kept = "crash-" + std::to_string(shared->round);
  std::ofstream(kept, std::ios::binary).write(reinterpret_cast<char *>(shared->data), std::streamsize(shared->size));
  bool late = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
  std::fprintf(stderr, "round %llu: %s %d%s; its input is in %s, repeat it with --only %llu\n", shared->round,
               WIFSIGNALED(status) ? "signal" : "exit code",
               WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), late ? " (it took too long)" : "",
               kept.c_str(), shared->round);
  return 1;
}

} // namespace

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t capacity) {
  std::string text(reinterpret_cast<char *>(data), size);
  size_t at = size ? byteRandom() % size : 0;
  switch (size ? byteRandom() % 6 : 3) {
  case 0:
    text[at] = static_cast<char>(byteRandom());
    break;
  case 1:
    text[at] = static_cast<char>(text[at] ^ (1 << byteRandom() % 8));
    break;
  case 2:
    text.erase(at, 1 + byteRandom() % 8);
    break;
  case 3: {
    std::string copy = text.substr(size ? byteRandom() % size : 0, 1 + byteRandom() % 16);
    text.insert(at, copy.empty() ? std::string(1, '\0') : copy);
    break;
  }
  case 4: { // a number in place
    uint64_t number = byteRandom() % 2 ? uint64_t(0) - byteRandom() % 3 : uint64_t(1) << byteRandom() % 64;
    size_t width = size_t(1) << byteRandom() % 4;
    std::memcpy(text.data() + at, &number, std::min(width, text.size() - at));
    break;
  }
  default:
    text.resize(at);
  }
  text.resize(std::min(text.size(), capacity));
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

int main(int argc, char **argv) {
  Options options = parse(argc, argv);
  if (!options.writeCorpus.empty()) {
    for (size_t i = 0; i < options.seeds.size(); ++i)
      std::ofstream(options.writeCorpus + "/seed" + std::to_string(i), std::ios::binary) << options.seeds[i];
    return 0;
  }
  if (options.seeds.empty()) {
    std::fprintf(stderr, "no seeds\n");
    return 2;
  }
  void *memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("mmap");
    return 3;
  }
  shared = static_cast<Shared *>(memory);
  pid_t child = fork();
  if (child == 0) {
    runAll(options);
    std::exit(0);
  }
  int status = 0;
  while (child < 0 || (waitpid(child, &status, 0) < 0 && errno == EINTR))
    if (child < 0) {
      std::perror("fork");
      return 3;
    }
  if (status != 0)
    return reportDeath(status);
  std::printf("%zu seeds, %llu rounds\n", options.seeds.size(), options.rounds);
  return 0;
}
