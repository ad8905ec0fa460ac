//===- HazardTest.cpp - what a missing edge does --------------------------===//

#include "Device.h"

#include <fstream>
#include <numeric>
#include <sstream>

using namespace dmxtest;

namespace {

std::string readFile(const std::string &name) {
  std::ifstream file(std::string(DMXC_CORSAIR_TESTS) + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Two quads load half of the input each, send it to both, and store the other's half.
const char kExchange[] = R"(
dlir.device_program @exchange on "corsair" {
  dlir.argument input "x" : tensor<2x64xf16> as "f16"
  dlir.argument output "y" : tensor<2x64xf16> as "f16"
  %x = dlir.memory "DDR" "x" size 256
  %y = dlir.memory "DDR" "y" size 256
  dlir.piece "x" unit 0 in %x offset 0 begin [0, 0] extent [2, 64] strides [128, 2]
  dlir.piece "y" unit 0 in %y offset 0 begin [0, 0] extent [2, 64] strides [128, 2]
  %gm = dlir.memory "GM" "gm" size 256
  %row = dlir.descriptor "f16" unit 64 dims [] source [] target []
  dlir.scheduled_graph "main" units 2 (%q) {
    dlir.dispatch_queue "quad" "dispatch" 0 {
      dlir.task_group "exchange" {
        dlir.copy DDR -> GM %x[%q * 128] to %gm[%q * 128] with %row peers[3]
        dlir.task_barrier over "chiplet" id 0 queues [0]
        dlir.copy GM -> DDR %gm[128 - %q * 128] to %y[128 - %q * 128] with %row
      }
    }
  }
}
)";

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

void expectRace(const std::string &program, std::vector<std::string> parts) {
  auto device = makeDevice(encodeText(program));
  ASSERT_TRUE(device);
  parts.insert(parts.begin(), "race");
  device->expectFault(parts);
}

/// The exchange with `barrier` in the place of its barrier.
std::string withBarrier(const std::string &barrier) {
  std::string text = kExchange, line = "dlir.task_barrier over \"chiplet\" id 0 queues [0]";
  return text.replace(text.find(line), line.size(), barrier);
}

double clocksOf(const std::string &program) {
  auto device = makeDevice(encodeText(program));
  if (!device)
    return 0;
  std::vector<uint16_t> rows(128); // numbers from 1 on
  std::iota(rows.begin(), rows.end(), uint16_t(0x3c00));
  device->set("x", rows);
  device->expectRun();
  EXPECT_EQ(device->get<uint16_t>("y"), rows);
  return device->report()["clocks"].get<double>();
}

} // namespace

TEST(CorsairHazards, AMissingTokenIsARaceOfTwoNamedAccesses) {
  std::string text = readFile("v17.mlir");
  expectRace(withoutWait(text, "product", 0), {"MOVE_GM2IB", "MATMUL"});
  expectRace(withoutWait(text, "product", 1), {"MOVE_ST2WB", "MATMUL"});
  expectRace(withoutWait(text, "store", 0), {"MOVE_OB2GM", "MOVE_GM2DDR"});
}

TEST(CorsairHazards, AMissingBarrierIsARaceBetweenQuads) {
  expectRace(withBarrier(""), {"quad 0", "quad 1", "MOVE_DDR2GM", "MOVE_GM2DDR"});
}

TEST(CorsairHazards, AnExtraBarrierOnlyCostsClocks) {
  const std::string barrier = "dlir.task_barrier over \"chiplet\" id 0 queues [0]\n";
  EXPECT_GT(clocksOf(withBarrier(barrier + "dlir.task_barrier over \"quad\" id 1 queues [0]")), clocksOf(kExchange));
}

TEST(CorsairHazards, GoldenVectorThroughDlirTextAlone) {
  for (bool removesConfigs : {true, false}) {
    auto device = makeDevice(encodeText(readFile("v17.mlir"), removesConfigs));
    ASSERT_TRUE(device);
    device->set("a", goldenInput(1, 64 * 512, 512));
    device->set("b", goldenInput(2, 512 * 64, 64));
    device->expectRun();
    EXPECT_EQ(crcOf(device->get<float>("sums")), 0xd75a42bau);
    EXPECT_EQ(crcOf(device->get<uint16_t>("halves")), 0x60b8a470u);
  }
}
