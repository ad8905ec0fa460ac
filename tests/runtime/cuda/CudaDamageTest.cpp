//===- CudaDamageTest.cpp - kernels of blocks that are damaged ----------------===//
//
// Whatever a text says, it is refused or it runs to an end. The kernel has an instruction of every family.
//
//===----------------------------------------------------------------------===//

#include "CudaBody.h"
#include "CudaLaunch.h"

#include <random>

using namespace dmxtest;
using namespace dmxrt::cuda;

namespace {

TEST(CudaDamage, BlocksEndWhateverTheyDo) {
  std::string start;
  for (int i = 30; i < 34; ++i)
    start += "\tmov.b32 %r" + std::to_string(i) + ", 0;\n";
  const std::string text = blockKernel(start + kEveryFamily, 1, 2);
  auto runOf = [](const std::string &kernel, uint64_t seed) {
    BlockTrial run;
    run.seed = seed;
    run.shared = 16384;
    run.to.resize(1024);
    run.filled = true;
    run.mostSteps = 3000;
    run.from = {std::vector<uint32_t>(512, 0x3f803f80)};
    run.maps = {matrixMap(1, MapType::Bf16, 64, 16, 64, 16, 128), matrixMap(0, MapType::U32, 32, 16, 32, 16, 128)};
    return run(kernel).fault;
  };
  ASSERT_EQ(runOf(text, 0), "");
  std::mt19937 random(5);
  int refused = 0, faulty = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string damaged = text;
    size_t body = damaged.find(".shared .align 8");
    for (int n = 1 + static_cast<int>(random() % 2); n > 0; --n) {
      size_t at = body + random() % (damaged.size() - body);
      switch (random() % 4) {
      case 0: // another digit
        at = damaged.find_first_of("0123456789", at);
        if (at != damaged.npos)
          damaged[at] = static_cast<char>('0' + random() % 10);
        break;
      case 1: { // a line less
        size_t begin = damaged.find('\n', at), end = damaged.find('\n', begin + 1);
        if (end != damaged.npos)
          damaged.erase(begin, end - begin);
        break;
      }
      case 2:
        damaged[at] = static_cast<char>(random() % 128);
        break;
      default:
        damaged.insert(at, damaged.substr(body + random() % (damaged.size() - body), random() % 40));
      }
    }
    std::string fault = runOf(damaged, static_cast<uint64_t>(i));
    refused += fault.find("line ") != std::string::npos && fault.find("kernel 'k'") != std::string::npos;
    faulty += !fault.empty();
  }
  EXPECT_GT(refused, 300);
  EXPECT_GT(faulty - refused, 200);
}

} // namespace
