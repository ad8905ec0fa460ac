//===- Sample.h - which cases a plain run of a test takes -------*- C++ -*-===//
//
// A test with many cases of one kind takes one of N of them, others in the next run, and all of them in the long one
// (tools/test --long). What a run takes follows from a number, which it prints: DMXC_SAMPLE=NUMBER takes the same
// again. tests/sampling.py is the same for tests in Python.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>

namespace dmxc::sampling {

inline bool longRun() {
  const char *value = std::getenv("DMXC_LONG");
  return value && *value && std::string_view(value) != "0";
}

/// tools/test has another one for each commit; without it the day decides.
inline uint64_t sampleSeed() {
  const char *value = std::getenv("DMXC_SAMPLE");
  return value && *value ? std::strtoull(value, nullptr, 10) : static_cast<uint64_t>(std::time(nullptr)) / 86400;
}

/// One of `share` cases; `share` seeds in a row take all of them.
class Sample {
public:
  explicit Sample(uint64_t share) : share(longRun() ? 1 : share), seed(sampleSeed()) {
    if (this->share > 1)
      std::printf("a sample: one of %llu cases, DMXC_SAMPLE=%llu\n", static_cast<unsigned long long>(share),
                  static_cast<unsigned long long>(seed));
  }

  /// Whether the run takes the next case.
  bool takesNext() { return takes(count++); }
  /// Whether it takes a case with this number, or with this name: the same one whatever other cases there are.
  bool takes(uint64_t number) const { return (number + seed) % share == 0; }
  bool takes(std::string_view name) const {
    uint64_t hash = 0xcbf29ce484222325; // FNV-1a
    for (char c : name)
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return takes(hash >> 16);
  }
  /// Whether it takes all cases.
  bool whole() const { return share == 1; }

private:
  uint64_t share, seed, count = 0;
};

} // namespace dmxc::sampling
