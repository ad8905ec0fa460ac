//===- HazardTest.cpp - what a missing edge does --------------------------===//

#include "Device.h"
#include "Oracle.h"

#include <fstream>
#include <sstream>

using namespace dmxtest;

namespace {

/// 1024 x 512 x 128 on two quads: halves are used twice and more.
const std::string &program() {
  static const std::string text = lowerToDlir(productText(1024, 512, 128, noise(4, 512 * 128)), {"columns", 2});
  return text;
}

/// The text without the k-th token that group `name` waits for.
std::string withoutWait(std::string text, const std::string &name, size_t k) {
  size_t at = text.find("dlir.task_group \"" + name + "\" wait(");
  EXPECT_NE(at, std::string::npos) << name;
  size_t open = text.find("wait(", at) + 5, close = text.find(')', open);
  std::vector<std::string> tokens;
  std::stringstream list(text.substr(open, close - open));
  for (std::string token; std::getline(list, token, ',');)
    tokens.push_back(token);
  EXPECT_LT(k, tokens.size()) << name;
  tokens.erase(tokens.begin() + static_cast<long>(k));
  std::string rest;
  for (const std::string &token : tokens)
    rest += (rest.empty() ? "" : ",") + token;
  return rest.empty() ? text.replace(open - 5, close - open + 6, "") : text.replace(open, close - open, rest);
}

void expectRace(const std::string &dlir, const std::vector<std::string> &parts, size_t inputs = 1024 * 512) {
  Encoded encoded = encodeText(dlir);
  auto device = makeDevice(encoded);
  ASSERT_TRUE(device);
  device->set("arg0", noise(3, inputs));
  std::vector<std::string> all{"race"};
  all.insert(all.end(), parts.begin(), parts.end());
  device->expectFault(all);
}

std::string readFile(const std::string &name) {
  std::ifstream file(std::string(DMXC_CORSAIR_TESTS) + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

} // namespace

TEST(CorsairHazards, TheWholeProgramRuns) {
  auto device = makeDevice(encodeText(program()));
  ASSERT_TRUE(device);
  std::vector<float> a = noise(3, 1024 * 512);
  device->set("arg0", a);
  device->expectRun();
  EXPECT_TRUE(device->get<float>("result0") == expectedProduct(a, noise(4, 512 * 128), 1024, 512, 128, 16));
}

TEST(CorsairHazards, AMissingTokenIsARaceOfTwoNamedAccesses) {
  expectRace(withoutWait(program(), "fetch tiles", 1), {"MOVE_DDR2GM", "MOVE_GM2IB"});
  expectRace(withoutWait(program(), "fetch tiles", 0), {"MATMUL", "MOVE_GM2IB"});
  expectRace(withoutWait(program(), "matmul", 0), {"MOVE_OB2GM", "MATMUL"});
  expectRace(withoutWait(program(), "matmul", 1), {"MOVE_GM2IB", "MATMUL"});
  expectRace(withoutWait(program(), "drain", 0), {"MATMUL", "MOVE_OB2GM"});
  expectRace(withoutWait(program(), "store results", 0), {"MOVE_OB2GM", "MOVE_GM2DDR"});
}

TEST(CorsairHazards, WeightsThatPassTilesByAreOrderedByTheirOwnTokens) {
  // One round of rows: the tiles stay, columns of weights come one after the other.
  std::string text = lowerToDlir(productText(64, 512, 2048, noise(4, 512 * 2048)), {"columns", 1});
  expectRace(withoutWait(text, "columns", 0), {"MOVE_ST2WB", "MATMUL"}, 64 * 512);
  expectRace(withoutWait(text, "fetch weights", 0), {"MATMUL", "MOVE_ST2WB"}, 64 * 512);
}

TEST(CorsairHazards, AMissingBarrierIsARaceBetweenQuads) {
  std::string text = program();
  size_t at = text.find("dlir.task_barrier over \"chiplet\"");
  ASSERT_NE(at, std::string::npos);
  text.erase(at, text.find('\n', at) - at);
  expectRace(text, {"quad 0", "quad 1", "MOVE_DDR2GM", "MOVE_GM2IB"});
}

TEST(CorsairHazards, AnExtraBarrierOnlyCostsClocks) {
  std::string text = program();
  size_t at = text.find("dlir.task_barrier over \"chiplet\"");
  ASSERT_NE(at, std::string::npos);
  text.insert(at, "dlir.task_barrier over \"quad\" id 1 queues [0]\n");
  nlohmann::json reports[2];
  for (int i = 0; i < 2; ++i) {
    auto device = makeDevice(encodeText(i ? text : program()));
    ASSERT_TRUE(device);
    device->set("arg0", noise(3, 1024 * 512));
    reports[i] = device->report();
  }
  EXPECT_GT(reports[1]["clocks"].get<int64_t>(), reports[0]["clocks"].get<int64_t>());
}

TEST(CorsairHazards, GoldenVectorThroughDlirTextAlone) {
  Encoded encoded = encodeText(readFile("v17.mlir"));
  auto device = makeDevice(encoded);
  ASSERT_TRUE(device);
  device->set("a", goldenInput(1, 64 * 512, 512));
  device->set("b", goldenInput(2, 512 * 64, 64));
  device->expectRun();
  EXPECT_EQ(crcOf(device->get<float>("sums")), 0xd75a42bau);
  EXPECT_EQ(crcOf(device->get<uint16_t>("halves")), 0x60b8a470u);
}
