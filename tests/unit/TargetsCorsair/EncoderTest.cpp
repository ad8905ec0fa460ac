//===- EncoderTest.cpp - DLIR against the machine; texts that are not right ===//

#include "Device.h"
#include "Mutated.h"

#include "targets/corsair/dialect/Corsair/Corsair.h"

#include <cstdlib>
#include <random>

using namespace dmxtest;
namespace dlir = dmxc::dlir;

TEST(CorsairEncoder, TheTableHasTheMemoriesMovesAndScopesOfTheMachine) {
  const isa::Machine &machine = isa::builtinMachine();
  dlir::DeviceModel model = dmxc::corsair::deviceModel(machine);
  ASSERT_EQ(model.memories.size(), size_t(isa::kMemories));
  for (int from = 0; from < isa::kMemories; ++from) {
    const dlir::MemoryModel &row = model.memories[from];
    EXPECT_EQ(row.name, isa::nameOf(static_cast<isa::Memory>(from)));
    EXPECT_EQ(row.size, static_cast<int64_t>(machine.memories[from].size));
    for (int to = 0; to < isa::kMemories; ++to)
      EXPECT_EQ(row.moveTo(model.memories[to].name) != nullptr,
                isa::isLegalMove(static_cast<isa::Memory>(from), static_cast<isa::Memory>(to)))
          << from << " to " << to;
  }
  EXPECT_TRUE(model.memory("GM")->moveTo("GM")->toPeers);
  EXPECT_FALSE(model.memory("GM")->moveTo("IB")->toPeers);
  EXPECT_EQ(model.scopes[static_cast<size_t>(isa::Scope::Card)], "card");
}

TEST(CorsairEncoder, TextsThatAreNotRightAreRefusedOrFault) {
  const std::vector<std::string> lines = goldenLines();
  const char *seed = std::getenv("DMXC_CORSAIR_SEED");
  std::mt19937 random(static_cast<unsigned>(seed ? std::atol(seed) : 1));
  int refused = 0, ran = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string text = mutated(lines, random);
    SCOPED_TRACE(text);
    Encoded encoded = encodeText(text);
    EXPECT_NE(encoded.error.empty(), encoded.assembly.empty());
    if (encoded.assembly.empty()) {
      ++refused;
      continue;
    }
    std::string error;
    auto image = isa::assemble(encoded.assembly, isa::builtinMachine(), error);
    ASSERT_TRUE(image) << error;
    auto fits = [](const isa::Argument &argument) { return argument.hostBytes() < 1 << 24; };
    if (!std::all_of(image->kernels[0].arguments.begin(), image->kernels[0].arguments.end(), fits))
      continue; // buffers of the host, too large for a test
    CorsairProgram program(encoded.assembly);
    (void)program.run(); // right, or a fault with a name
    ++ran;
  }
  std::printf("%d texts refused, %d encoded and run\n", refused, ran);
  EXPECT_GT(refused, 300);
  EXPECT_GT(ran, 100);
}
