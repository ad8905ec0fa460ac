//===- CorsairDeviceKernels.cpp - kernels.c for the simulated card --------===//
//
// The kernels that DeviceTest.cpp uses, one per number of items: add_1000, fill_64, ...
//
//===----------------------------------------------------------------------===//

#include "../DeviceParam.h"

#include "schemas/corsair/text/Assembler.h"

#include <gtest/gtest.h>

namespace dmxtest {
namespace {

namespace isa = dmx::corsair;

/// `body` between loads of the inputs to GM at 0x0, 0x4000 and the store of the result from 0x8000.
std::string kernelText(const std::string &name, int64_t items,
                       const std::vector<std::pair<std::string, int64_t>> &inputs, const std::string &outputKind,
                       const std::string &body, const std::string &tail = "") {
  auto bytes = [](const std::string &kind) { return std::to_string(isa::elementBytes(*isa::elemKindFromName(kind))); };
  std::string stream = ".stream " + name + "\n", arguments;
  auto argument = [&](const std::string &role, const std::string &kind, int64_t count, const std::string &address) {
    arguments += "  .argument " + role + address + " " + role + " " + kind + " shape=[" + std::to_string(count) +
                 "] form=" + kind + "\n    .piece DDR unit=0 addr=" + address + " begin=[0] extent=[" +
                 std::to_string(count) + "] strides=[" + bytes(kind) + "]\n";
  };
  const char *places[] = {"0x0", "0x4000"};
  for (size_t i = 0; i < inputs.size(); ++i) {
    argument("input", inputs[i].first, inputs[i].second, places[i]);
    stream += "  CONFIG_GM slot=0 kind=" + inputs[i].first + " unit=" + std::to_string(inputs[i].second) +
              "\n  MOVE_DDR2GM slot=0 saddr=" + places[i] + " daddr=" + places[i] + "\n";
  }
  argument("output", outputKind, items, "0x8000");
  stream += body + "  CONFIG_GM slot=0 kind=" + outputKind + " n3=" + std::to_string(items) +
            " s3=" + bytes(outputKind) + " t3=" + bytes(outputKind) +
            "\n  MOVE_GM2DDR slot=0 saddr=0x8000 daddr=0x8000\n  HALT\n";
  return stream + ".kernel " + name + "\n  .footprint DDR=0x10000 GM=0x10000\n" + arguments + tail +
         "  .main\n    .launch quad=0 q0=" + name + "\n";
}

/// A .dmxisa image of them.
std::string corsairObject() {
  std::string text;
  text += kernelText("add_1000", 1000, {{"f32", 1000}, {"f32", 1000}}, "f32",
                     "  CONFIG_SIMD slot=0 dk=f32 ak=f32 bk=f32 n3=1000 d3=4 a3=4 b3=4 split=4\n  EXEC_SIMD fn=add "
                     "slot=0 a=0x0 b=0x4000 d=0x8000\n");
  // The factor is the task's dim, in register 1.
  text += kernelText("scale_1000", 1000, {{"f32", 1000}}, "f32",
                     "  CONFIG_SIMD slot=0 dk=i64\n  EXEC_SIMD fn=fill slot=0 slices=0x1 d=0x4000 index=0+R1\n  "
                     "CONFIG_SIMD slot=1 dk=f32 ak=i64\n"
                     "  EXEC_SIMD fn=copy slot=1 slices=0x1 a=0x4000 d=0x4008\n  CONFIG_SIMD slot=2 dk=f32 ak=f32 "
                     "bk=f32 n3=1000 d3=4 a3=4 split=4\n"
                     "  EXEC_SIMD fn=mul slot=2 a=0x0 b=0x4008 d=0x8000\n",
                     "  .dims [1]\n");
  for (int64_t items : {0, 4, 64, 1024})
    text += kernelText("fill_" + std::to_string(items), items, {}, "i32",
                       "  CONFIG_SIMD slot=0 dk=i32 n3=" + std::to_string(items) +
                           " d3=4 split=4\n  EXEC_SIMD fn=iota slot=0 d=0x8000\n");
  for (int64_t items : {0, 1, 50, 100})
    text += kernelText("range_" + std::to_string(items), items, {}, "i64",
                       "  CONFIG_SIMD slot=0 dk=i64 n3=" + std::to_string(items) +
                           " d3=8 split=4\n  EXEC_SIMD fn=iota slot=0 d=0x8000\n");
  text += kernelText("gather_4", 4, {{"f32", 10}, {"i64", 4}}, "f32",
                     "  CONFIG_GM slot=1 kind=f32 n0=4 s0=4 t0=4 ikind=i64 ipitch=8 irange=10\n  EXTRACT rule=gather "
                     "slot=1 saddr=0x0 daddr=0x8000 iaddr=0x4000\n");
  std::string error;
  auto image = isa::assemble(text, isa::builtinMachine(), error);
  EXPECT_TRUE(image) << error;
  std::vector<uint8_t> bytes = image ? isa::write(*image) : std::vector<uint8_t>();
  return {bytes.begin(), bytes.end()};
}

const bool added = addDevice({"corsair", 1, corsairObject, /*namedBySize=*/true});

} // namespace
} // namespace dmxtest
