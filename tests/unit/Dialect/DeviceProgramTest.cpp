//===- DeviceProgramTest.cpp - programs of a device from its table alone --===//
//
// The toy is unlike the targets of the tree: its units are a grid, each has an L1 beside the L2 that all share, and
// copies may have their ends in different queues.
//
//===----------------------------------------------------------------------===//
#include "dmxc/Dialect/DLIR/Device.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dmxc;

namespace {

struct Toy {};

dlir::DeviceModel toy() {
  dlir::DeviceModel model;
  model.name = "toy";
  model.memories = {{"DDR", 1 << 20, 1, 64, false, 4, {{"L2"}}},
                    {"L2", 1 << 16, 1, 32, false, 4, {{"L1", true}, {"DDR"}}},
                    {"L1", 1 << 12, 4, 32, true, 4, {{"L2"}}, 3, 16, 4096, false}};
  model.units = {{"core", {{"dma", 2}, {"vector", 1}}, 4}, {"shim", {{"dma", 1}}, 0}};
  model.scopes = {"all"};
  model.descriptorDims = 3;
  model.largestCount = 255;
  model.largestStep = 8192;
  model.channels = model.arrays = true;
  return model;
}

class DevicePrograms : public testing::Test {
protected:
  DevicePrograms() : context(registry(), MLIRContext::Threading::DISABLED) {}

  static DialectRegistry registry() {
    DialectRegistry made;
    made.insert<dlir::DLIRDialect>();
    dlir::registerDevice<Toy>(made, toy());
    return made;
  }

  /// The module, or null; `error` is the first message.
  OwningOpRef<ModuleOp> parse(StringRef text) {
    error.clear();
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      error = error.empty() ? diagnostic.str() : error;
      return success();
    });
    return parseSourceString<ModuleOp>(text, &context);
  }

  std::string printed(ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream(text) << module;
    return text;
  }

  MLIRContext context;
  std::string error;
};

/// One column of units puts panels, both units of the row get them; tokens count the panels.
constexpr const char *kProgram = R"(
dlir.device_program @panels on "toy" {
  dlir.argument input "x" : tensor<64x64xf32> as "f32"
  %x = dlir.memory "L2" "x" size 16384
  %a = dlir.memory "L1" "a" size 2048
  dlir.piece "x" unit 0 in %x offset 0 begin [0, 0] extent [64, 64] strides [256, 4]
  %d = dlir.descriptor "f32" unit 64 dims [2, 4, 8] source [4096, 256, 4] target [1024, 256, 4]
  dlir.channel @row depth 2
  dlir.scheduled_graph "main" units 2x2 (%i, %j) {
    %full = dlir.token on "core"
    %free = dlir.token credits 2
    %n = dlir.register 0 [1, 2, 3, 4]
    dlir.dispatch_queue "core" "dma" 0 {
      dlir.loop %k times[4] {
        dlir.task_group "put" {
          dlir.put @row %x[%i * 4096 + %k * 1024] with %d units 3
        }
      }
    }
    dlir.dispatch_queue "core" "dma" 1 {
      dlir.loop %k times[2] {
        dlir.task_group "get" wait(%free >= 2) signal(%full += 2) {
          dlir.get @row to %a[0] with %d
          dlir.get @row to %a[1024] with %d count[%n]
        }
      }
    }
    dlir.dispatch_queue "core" "vector" 0 {
      dlir.task_group "drain" wait(%full >= 2) signal(%free += 2) {
        dlir.copy L1 -> L2 %a[%j * 32] to %x[0] with %d units 1
        dlir.task_barrier over "all" id 0 queues [0, 1]
      }
    }
  }
}
)";

TEST_F(DevicePrograms, ReadAsTheyArePrinted) {
  OwningOpRef<ModuleOp> module = parse(kProgram);
  ASSERT_TRUE(module) << error;
  std::string once = printed(*module);
  EXPECT_NE(once.find("units 2x2 (%unit, %unit_0)"), std::string::npos) << once;
  EXPECT_NE(once.find("wait(%drain >= 2) signal(%get += 2)"), std::string::npos) << once;
  EXPECT_NE(once.find("dlir.put @row"), std::string::npos) << once;
  OwningOpRef<ModuleOp> again = parse(once);
  ASSERT_TRUE(again) << error;
  EXPECT_EQ(printed(*again), once);
}

TEST_F(DevicePrograms, SayWhatTheyReadWriteTakeAndGive) {
  OwningOpRef<ModuleOp> module = parse(kProgram);
  ASSERT_TRUE(module) << error;
  std::string seen;
  module->walk([&](dlir::DeviceTaskOpInterface task) {
    seen += task.getEngine().str() + " reads";
    for (Value memory : task.memoriesRead())
      seen += " " + dlir::memoryOf(memory).str();
    seen += " writes";
    for (Value memory : task.memoriesWritten())
      seen += " " + dlir::memoryOf(memory).str();
    seen += "\n";
  });
  EXPECT_EQ(seen, "dma reads L2 writes\n"
                  "dma reads writes L1\n"
                  "dma reads writes L1\n"
                  "dma reads L1 writes L2\n"
                  "queue reads writes\n");
  int64_t waited = 0, given = 0;
  module->walk([&](dlir::TaskGroupOp group) {
    for (const dlir::TokenCount &token : group.waits())
      waited += token.count;
    for (const dlir::TokenCount &token : group.signals())
      given += token.count;
  });
  EXPECT_EQ(waited, 4);
  EXPECT_EQ(given, 4);
  auto program = cast<dlir::DeviceProgramOpInterface>(&module->getBody()->front());
  ASSERT_EQ(program.deviceArguments().size(), 1u);
  EXPECT_EQ(program.getDevice(), "toy");
  EXPECT_EQ(program.deviceArguments()[0].form, "f32");
}

/// `from` replaced by `to`, the message that it must give.
struct Wrong {
  const char *from, *to, *message;
};

TEST_F(DevicePrograms, AreRefusedByTheTableOfTheDevice) {
  const Wrong all[] = {
      {"on \"toy\"", "on \"other\"", "stands in a program of 'other', which is no target of this build"},
      {"memory \"L1\" \"a\"", "memory \"L3\" \"a\"", "C3: the device has no memory L3; it has DDR, L2, L1"},
      {"\"a\" size 2048", "\"a\" size 8192", "C4: over capacity: 'a' is 8192 bytes at 0, L1 holds 4096"},
      {"size 2048", "size 2048 at 48", "C2: address 48 is not a multiple of 32"},
      {"unit 0 in", "unit 1 in", "C4: there is no unit 1, the device has 1 of L2"},
      {"dims [2, 4, 8] source [4096, 256, 4] target [1024, 256, 4]",
       "dims [1, 2, 4, 8] source [0, 4096, 256, 4] target [0, 1024, 256, 4]",
       "C1: has 4 dims, the device's descriptors 3"},
      {"dims [2, 4, 8]", "dims [2, 4, 256]", "C1: counts 256 items, the device's descriptors 255"},
      {"source [4096,", "source [8193,", "C2: has a step of 8193, the device's descriptors at most 8192"},
      {"depth 2", "depth 0", "C2: a depth of 0"},
      {"@row to %a[0]", "@column to %a[0]", "C1: there is no channel @column"},
      {"dlir.put @row %x", "dlir.copy L2 -> L1 %x", "expected 'to'"},
      {"dlir.put @row %x", "dlir.put @row %a", "C3: the device does not move from L1 to L1, where @row is got"},
      {"copy L1 -> L2 %a", "copy L1 -> DDR %a", "C1: the device does not move from L1 to DDR; from L1 go L2"},
      {"[0] with %d units 1", "[0] with %d peers[1]", "C4: no copy from L1 to L2 reaches other units of the graph"},
      {"[0] with %d units 1", "[0] with %d subunits 1", "C4: L2 has no subunits"},
      {"over \"all\"", "over \"row\"", "C4: the device has no scope \"row\"; it has all"},
      {"%full >= 2", "%full >= -1", "C3: waits and signals count from 1, one number a token"},
      {"wait(%free >= 2) signal(%full += 2)", "wait(%free >= 2)", "C3: is waited for, but nothing signals it"},
      {"[1, 2, 3, 4]", "[1, 2]", "C4: is the only one of register 0, with one value or 4"},
      {"\"dma\" 1", "\"cube\" 1", "C2: core has no queues of cube; those that have are dma, vector"},
      {"\"core\" \"dma\" 1", "\"tile\" \"dma\" 1", "C2: the device has no units of class tile; it has core, shim"},
      {"\"dma\" 1", "\"dma\" 2", "C2: there is no queue 2, dma has 2"},
      {"\"dma\" 1", "\"dma\" 0", "C2: a second queue 0 of dma"},
      {"credits 2", "credits -1", "C2: has -1 credits"},
      {"credits 2", "credits 2 on \"shim\"", "C1: units of class shim hold no tokens"},
      {"credits 2", "credits 2 on \"tile\"", "C1: the device has no units of class tile; it has core, shim"},
      {"%n = ", "%t0 = dlir.token\n %t1 = dlir.token\n %t2 = dlir.token\n %n = ",
       "C5: is one too many: a core holds 4 tokens"},
      {"%k * 1024]", "%k * 1022]", "C5: its place in L2 is no multiple of 4 bytes, which copies cannot divide"},
      {"[1024, 256, 4]", "[1024, 256, 2]", "C5: a step of its descriptor in L1 is no multiple of 4 bytes"},
      {"2x2 (%i, %j)", "4 (%i, %j)", "C1: has an index for each dim of its units"},
  };
  for (const Wrong &wrong : all) {
    std::string text = kProgram;
    size_t at = text.find(wrong.from);
    ASSERT_NE(at, std::string::npos) << wrong.from;
    text.replace(at, std::string(wrong.from).size(), wrong.to);
    EXPECT_FALSE(parse(text)) << wrong.to;
    EXPECT_NE(error.find(wrong.message), std::string::npos) << wrong.to << ": " << error;
  }
}

TEST_F(DevicePrograms, NeedBothEndsOfAChannel) {
  auto without = [&](StringRef word) {
    std::string text;
    for (StringRef rest = kProgram; !rest.empty();) {
      auto [line, tail] = rest.split('\n');
      if (!line.contains(word))
        text += line.str() + "\n";
      rest = tail;
    }
    return text;
  };
  EXPECT_FALSE(parse(without("dlir.get")));
  EXPECT_NE(error.find("'dlir.put' op C6: nothing gets what is put into @row"), std::string::npos) << error;
  EXPECT_FALSE(parse(without("dlir.put")));
  EXPECT_NE(error.find("'dlir.get' op C6: nothing is put into @row"), std::string::npos) << error;
}

/// Two shims feed the rows of a grid of cores; each core has a way back of its own.
constexpr const char *kGrid = R"(
dlir.device_program @grid on "toy" {
  %x = dlir.memory "L2" "x" size 16384
  %a = dlir.memory "L1" "a" size 2048
  %d = dlir.descriptor "f32" unit 16 dims [4] source [64] target [64]
  dlir.channel @rows [2] depth 2
  dlir.channel @cores [2, 2]
  dlir.channel @all
  dlir.scheduled_graph "main" units 2x2 (%i, %j) {
    dlir.dispatch_queue "core" "dma" 0 {
      dlir.loop %k times[4] {
        dlir.task_group "rows" {
          dlir.get @rows[%i] to %a[0] with %d
        }
      }
      dlir.task_group "all" {
        dlir.get @all to %a[1024] with %d
      }
    }
    dlir.dispatch_queue "core" "dma" 1 {
      dlir.task_group "cores" {
        dlir.put @cores[%i, 1 - %j] %a[0] with %d
      }
    }
    dlir.dispatch_queue "shim" "dma" 0 units 2 (%s) {
      dlir.task_group "feed" {
        dlir.put @rows[%s] %x[%s * 256] with %d
        dlir.put @all %x[0] with %d
        dlir.get @cores[%s, 0] to %x[0] with %d
        dlir.get @cores[%s, 1] to %x[4096] with %d
      }
    }
  }
}
)";

TEST_F(DevicePrograms, HaveQueuesInGridsOfTheirOwnAndArraysOfChannels) {
  OwningOpRef<ModuleOp> module = parse(kGrid);
  ASSERT_TRUE(module) << error;
  std::string once = printed(*module);
  for (const char *part :
       {"dlir.channel @rows [2] depth 2", "\"shim\" \"dma\" 0 units 2 (%unit", "dlir.get @rows[%unit] to %a[0]",
        "dlir.put @cores[%unit, -%unit_0 + 1] %a[0]", "dlir.put @all %x[0]"})
    EXPECT_NE(once.find(part), std::string::npos) << part << " in " << once;
  OwningOpRef<ModuleOp> again = parse(once);
  ASSERT_TRUE(again) << error;
  EXPECT_EQ(printed(*again), once);
}

TEST_F(DevicePrograms, OfGridsAreRefusedWhereElementsOrUnitsAreNotThere) {
  const Wrong all[] = {
      {"@rows[%i]", "@rows", "C4: names an element by 0 indices, @rows has 1"},
      {"@all to", "@all[%i] to", "C4: names an element by 1 indices, @all has 0"},
      {"@rows[%i]", "@rows[%k]", "C4: names an element by something else than its unit's place"},
      {"put @rows[%s]", "put @rows[%s + 1]", "C4: names element 2 of @rows, of which there are 2"},
      {"put @rows[%s]", "put @rows[%s - 1]", "C4: names element -1 of @rows, of which there are 2"},
      {"@cores[%s, 1]", "@cores[%s, 0]", "'dlir.put' op C6: nothing gets what is put into @cores[0, 1]"},
      {"units 2 (%s)", "units 1 (%s)", "'dlir.get' op C6: nothing is put into @rows[1]"},
      {"units 2 (%s)", "units 2x1 (%s)", "C3: has a grid of one unit or more, and an index for each dim of it"},
      {"units 2 (%s)", "units 0 (%s)", "C3: has a grid of one unit or more, and an index for each dim of it"},
      {"[2, 2]", "[2, 0]", "C3: has one to three extents from 1 on"},
      {"[2, 2]", "[2, 4194304]", "and at most 1048576 elements"},
      {"[2, 2]", "[2, 2, 2, 2]", "C3: has one to three extents"},
      {"dims [4]", "dims [17]", "C6: its descriptor counts 17, copies at an end in L1 at most 16"},
      {"target [64]", "target [4100]", "C6: its descriptor steps over 4100, copies at an end in L1 at most 4096"},
      {"target [64]", "target [64] {high = array<i64: 3>}",
       "C6: its descriptor has items that do not exist, which copies at an end in L1 do not make"},
  };
  for (const Wrong &wrong : all) {
    std::string text = kGrid;
    size_t at = text.find(wrong.from);
    ASSERT_NE(at, std::string::npos) << wrong.from;
    text.replace(at, std::string(wrong.from).size(), wrong.to);
    EXPECT_FALSE(parse(text)) << wrong.to;
    EXPECT_NE(error.find(wrong.message), std::string::npos) << wrong.to << ": " << error;
  }
}

TEST_F(DevicePrograms, OfGridsNeedADeviceThatHasThem) {
  dlir::DeviceModel plain = toy();
  plain.arrays = false;
  context.getOrLoadDialect<dlir::DLIRDialect>()->addDevice(plain);
  EXPECT_FALSE(parse(kGrid));
  EXPECT_NE(error.find("C3: the device has no arrays of channels"), std::string::npos) << error;
  EXPECT_FALSE(parse(R"(
dlir.device_program @grid on "toy" {
  dlir.scheduled_graph "main" units 2 (%i) {
    dlir.dispatch_queue "shim" "dma" 0 units 1 (%s) {
    }
  }
})"));
  EXPECT_NE(error.find("C3: has a grid of units, queues of the device have that of their graph"), std::string::npos)
      << error;
}

TEST_F(DevicePrograms, OfAModelThatIsGivenAgainHaveTheLastOne) {
  auto *dialect = context.getOrLoadDialect<dlir::DLIRDialect>();
  dlir::DeviceModel smaller = toy();
  smaller.memories[2].size = 1024;
  dialect->addDevice(smaller);
  EXPECT_FALSE(parse(kProgram));
  EXPECT_NE(error.find("L1 holds 1024"), std::string::npos) << error;
}

} // namespace
