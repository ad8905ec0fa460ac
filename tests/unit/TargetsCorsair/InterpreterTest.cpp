//===- InterpreterTest.cpp - what programs of queues mean -----------------===//

#include "Device.h"
#include "Mutated.h"

#include <cstdlib>
#include <regex>

using namespace dmxtest;
using dmxc::Tensor;

namespace {

constexpr int64_t kRows = 64, kDepth = 512, kColumns = 64;

Tensor tensorOf(const std::vector<float> &values, dmxc::Shape shape) {
  Tensor tensor(dmxc::DType::F32, std::move(shape));
  std::memcpy(tensor.mutableData(), values.data(), tensor.byteSize());
  return tensor;
}

std::string joined(const std::vector<std::string> &lines) {
  std::string text;
  for (const std::string &line : lines)
    text += line + "\n";
  return text;
}

/// The golden text with one word in the place of another.
std::string changed(const std::string &old, const std::string &now) {
  std::string text = joined(goldenLines());
  const size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return at == std::string::npos ? text : text.replace(at, old.size(), now);
}

/// Whether the arguments are those of the golden text, and buffers such as a test has room for.
bool bringsTheSame(const std::string &text) {
  size_t at = 0;
  for (const char *argument : {"input \"a\" : tensor<64x512xf32> as", "input \"b\" : tensor<512x64xf32> as",
                               "output \"sums\"", "output \"halves\""})
    at = std::min(text.find(argument, at), text.size());
  return at < text.size() && !std::regex_search(text, std::regex("size \\d{8}"));
}

class CorsairPrograms : public testing::Test {
protected:
  std::vector<float> a = goldenInput(1, kRows *kDepth, kDepth), b = goldenInput(2, kDepth *kColumns, kColumns);
  std::vector<Tensor> operands{tensorOf(a, {kRows, kDepth}), tensorOf(b, {kDepth, kColumns})};

  void expectError(const std::string &text, const std::vector<std::string> &parts) {
    const Evaluated made = evaluateText(text, operands);
    EXPECT_TRUE(made.results.empty());
    for (const std::string &part : parts)
      EXPECT_NE(made.error.find(part), std::string::npos) << made.error;
  }
};

} // namespace

TEST_F(CorsairPrograms, GoldenVectorByTheTextAlone) {
  const Evaluated made = evaluateText(joined(goldenLines()), operands);
  ASSERT_EQ(made.results.size(), 2U) << made.error;
  EXPECT_EQ(crcOfBytes(made.results[0].data(), made.results[0].byteSize()), 0xd75a42bau);
  EXPECT_EQ(crcOfBytes(made.results[1].data(), made.results[1].byteSize()), 0x60b8a470u);
}

TEST_F(CorsairPrograms, WhatHasNoMeaningIsNamed) {
  expectError(changed("wait(%done)", "wait(%done >= 2)"), {"waits for ever", "group \"store\" of queue 0, quad 0"});
  expectError(changed("signal(%cols)", ""), {"nothing signals it"});
  expectError(changed("subunits 255", "subunits 127"),
              {"('corsair.matmul') reads byte 0 of 'wb' (WB 7), which nothing"});
  expectError(changed("%ib[0] x %wb[0]", "%ib[64] x %wb[0]"), {"of 'ib' (IB 0), which has 33280"});
  expectError(changed("num_imc 8 ppr_mode 3", "num_imc 8 ppr_mode 5"), {"num_imc 8 and ppr_mode 5"});
  expectError(changed("extent [64, 512] strides", "extent [64, 513] strides"), {"is no box of the tensor of 'a'"});
}

/// What the simulated card runs, changed or not, means the same here, and what has no meaning here is a fault there.
TEST_F(CorsairPrograms, MutatedTextsMeanWhatTheCardGives) {
  const std::vector<std::string> lines = goldenLines();
  const char *seed = std::getenv("DMXC_CORSAIR_SEED");
  std::mt19937 random(static_cast<unsigned>(seed ? std::atol(seed) : 3));
  int same = 0, wrong = 0;
  for (int i = 0; i < 700; ++i) {
    const std::string text = mutated(lines, random);
    SCOPED_TRACE(text);
    const Encoded encoded = encodeText(text);
    if (encoded.assembly.empty() || !bringsTheSame(text))
      continue;
    const Evaluated made = evaluateText(text, operands);
    CorsairProgram program(encoded.assembly);
    program.set("a", a);
    program.set("b", b);
    const dmxrt::RunOutcome ran = program.run();
    if (!made.error.empty() || made.results.size() != 2) {
      ++wrong;
      const bool ends = made.error.find(", which has ") != std::string::npos ||
                        made.error.find("more bytes than") != std::string::npos; // where the card's memory goes on
      EXPECT_TRUE(ran.code != 0 || ends) << made.error;
      continue;
    }
    if (ran.code != 0) // a race, or a buffer beyond its memory
      continue;
    ++same;
    const auto sums = program.get<float>("sums");
    const auto halves = program.get<uint16_t>("halves");
    EXPECT_EQ(crcOfBytes(made.results[0].data(), made.results[0].byteSize()), crcOf(sums));
    EXPECT_EQ(crcOfBytes(made.results[1].data(), made.results[1].byteSize()), crcOf(halves));
  }
  std::printf("%d texts give the same, %d have no meaning\n", same, wrong);
  EXPECT_GT(same, 60);
  EXPECT_GT(wrong, 30);
}
