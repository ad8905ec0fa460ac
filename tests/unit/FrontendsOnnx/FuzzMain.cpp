//===- FuzzMain.cpp - runs the fuzz entry over mutated seeds --------------===//
//
// FrontendsOnnxFuzz ROUNDS SEED_FILE...: deterministic, so that a failure can be repeated. Without seeds: exit 0 with a note.
//
//===----------------------------------------------------------------------===//
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace {
void mutate(std::string &bytes, std::mt19937 &random) {
  if (bytes.empty())
    return;
  size_t at = random() % bytes.size();
  switch (random() % 5) {
  case 0: bytes[at] = static_cast<char>(random()); break;
  case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8)); break;
  case 2: bytes.erase(at, 1 + random() % 8); break;
  case 3: bytes.insert(at, bytes, random() % bytes.size(), 1 + random() % 16); break;
  case 4: bytes.resize(at); break;
  }
}
} // namespace

int main(int argc, char **argv) {
  if (argc < 3) {
    std::puts("SKIPPED: no seed files; usage: FrontendsOnnxFuzz ROUNDS SEED_FILE...");
    return 0;
  }
  int rounds = std::atoi(argv[1]), runs = 0;
  for (int i = 2; i < argc; ++i) {
    std::ifstream stream(argv[i], std::ios::binary);
    std::string seed((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
    std::mt19937 random(static_cast<unsigned>(i));
    for (int round = 0; round < rounds; ++round, ++runs) {
      std::string bytes = seed;
      for (int k = 0; k < 1 + round % 6; ++k)
        mutate(bytes, random);
      LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
    }
  }
  std::printf("%d mutated models, no crash\n", runs);
  return 0;
}
