//===- Oracle.cpp - what a product must give, computed otherwise ----------===//

#include "Oracle.h"

#include "schemas/blockfp/DotProduct.h"
#include "schemas/corsair/SimdFunctions.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <sys/wait.h>
#include <unistd.h>

namespace isa = dmx::corsair;

namespace dmxtest {
namespace {

/// The blocks of 64 of one row of A or column of W.
struct Blocks {
  std::vector<uint8_t> exponents;
  std::vector<std::vector<int16_t>> mantissas;

  void add(const std::vector<float> &block) {
    mantissas.emplace_back(block.size());
    exponents.push_back(isa::quantizeBlock(block, {8}, mantissas.back()));
  }
};

std::vector<Blocks> blocksOf(const std::vector<float> &values, int64_t count, int64_t k, int64_t across,
                             int64_t along) {
  std::vector<Blocks> all(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    for (int64_t first = 0; first < k; first += 64) {
      std::vector<float> block(64, 0.0f);
      for (int64_t j = first; j < std::min(k, first + 64); ++j)
        block[static_cast<size_t>(j - first)] = values[static_cast<size_t>(i * across + j * along)];
      all[static_cast<size_t>(i)].add(block);
    }
  return all;
}

} // namespace

std::vector<float> expectedProduct(const std::vector<float> &a, const std::vector<float> &w, int64_t m, int64_t k,
                                   int64_t n, int64_t imc, const std::vector<float> &bias) {
  std::vector<Blocks> rows = blocksOf(a, m, k, k, 1), columns = blocksOf(w, n, k, 1, n);
  std::vector<float> out;
  size_t blocks = static_cast<size_t>((k + 63) / 64);
  for (const Blocks &row : rows)
    for (const Blocks &column : columns) {
      float ob = 0;
      for (size_t first = 0; first < blocks; first += static_cast<size_t>(imc)) {
        std::vector<float> partials;
        for (size_t i = first; i < std::min(blocks, first + static_cast<size_t>(imc)); ++i)
          partials.push_back(isa::partialToF32(
              isa::dotBlocks({row.exponents[i], row.mantissas[i], 8}, {column.exponents[i], column.mantissas[i], 8})));
        float sum = isa::roundSum(isa::reducePartials(partials));
        ob = first ? isa::addToSum(ob, isa::reducePartials(partials)) : sum;
      }
      if (!bias.empty())
        ob = isa::addToSum(ob, isa::roundToBfp32(bias[out.size() % columns.size()]));
      out.push_back(isa::f16Widen(isa::f16Round(ob)));
    }
  return out;
}

std::optional<std::vector<uint16_t>> specifiedTile(const std::vector<float> &a, const std::vector<float> &w, int64_t k,
                                                   int64_t n, int64_t rowTile, int64_t columnTile) {
  std::string path = testing::TempDir() + "/corsair-oracle-" + std::to_string(getpid());
  {
    std::ofstream file(path, std::ios::binary);
    auto bytes = [&](const float *values, int64_t count) {
      file.write(reinterpret_cast<const char *>(values), static_cast<std::streamsize>(count * 4));
    };
    bytes(a.data() + rowTile * 64 * k, 64 * k);
    for (int64_t i = 0; i < k; ++i)
      bytes(w.data() + i * n + columnTile * 64, 64);
  }
  std::string command =
      "/usr/bin/python3 -B '" DMXC_CORSAIR_TESTS "/oracle.py' " + std::to_string(k) + " '" + path + "'";
  std::vector<uint16_t> result(64 * 64);
  FILE *pipe = popen(command.c_str(), "r");
  size_t count = pipe ? fread(result.data(), sizeof(uint16_t), result.size(), pipe) : 0;
  int status = pipe ? pclose(pipe) : -1;
  std::remove(path.c_str());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
    return std::nullopt;
  EXPECT_EQ(status, 0) << command;
  EXPECT_EQ(count, result.size());
  return result;
}

} // namespace dmxtest
