//===- RingTest.cpp - rings of a device from its table alone --------------===//
//
// The device is no target's: a group of threads whose loader fills slots that two mathematicians drain, a number of
// times that a run brings; and a line of stages with channels between them. Counts were made by hand.
//
//===----------------------------------------------------------------------===//
#include "dmxc/Dialect/DLIR/Device.h"

#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dmxc;

namespace {

struct Pipes {};

dlir::DeviceModel pipes(bool fixedSlots) {
  dlir::DeviceModel model;
  model.name = "pipes";
  model.memories = {{"DDR", 1 << 20, 1, 64, false, 4, {{"L1"}}}, {"L1", 1 << 12, 4, 32, false, 4, {{"L1"}, {"DDR"}}}};
  model.units = {{"group", {{"load", 1}, {"math", 2}}, 6}, {"host", {{"dma", 2}}, 0}};
  model.descriptorDims = 3;
  model.channels = model.arrays = true;
  model.fixedSlots = fixedSlots;
  return model;
}

class Rings : public testing::Test {
protected:
  /// The first message of a text; "" where it is sound.
  static std::string errorOf(StringRef text, bool fixedSlots = false, std::string *printed = nullptr) {
    DialectRegistry registry;
    registry.insert<dlir::DLIRDialect>();
    dlir::registerDevice<Pipes>(registry, pipes(fixedSlots));
    MLIRContext context(registry, MLIRContext::Threading::DISABLED);
    std::string error;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      error = error.empty() ? diagnostic.str() : error;
      return success();
    });
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_EQ(static_cast<bool>(module), error.empty());
    if (module && printed)
      llvm::raw_string_ostream(*printed) << *module;
    return error;
  }

  struct Wrong {
    const char *from, *to, *message; ///< the first `from` becomes `to`; "" for a text that stays sound
  };
  static void expectEach(StringRef good, ArrayRef<Wrong> all, bool fixedSlots = false) {
    EXPECT_EQ(errorOf(good, fixedSlots), "");
    for (const Wrong &wrong : all) {
      std::string text = good.str();
      size_t at = text.find(wrong.from);
      ASSERT_NE(at, std::string::npos) << wrong.from;
      text.replace(at, std::string(wrong.from).size(), wrong.to);
      std::string error = errorOf(text, fixedSlots);
      if (*wrong.message)
        EXPECT_NE(error.find(wrong.message), std::string::npos) << wrong.to << ": " << error;
      else
        EXPECT_EQ(error, "") << wrong.to;
    }
  }
};

/// n * 8 panels, of which each mathematician drains all.
constexpr const char *kPanels = R"(
dlir.device_program @panels on "pipes" {
  dlir.argument scalar "n" : i64 as "i64" register 0
  %x = dlir.memory "DDR" "x" size 16384
  %d = dlir.descriptor "f32" unit 16 dims [4] source [64] target [64]
  dlir.scheduled_graph "main" units 1 (%u) {
    %n = dlir.register 0 [0]
    %two = dlir.register 1 [2]
    %a = dlir.ring "L1" "a" slots 4 size 256 on "group" from "load" 0 to "math" 0, "math" 1
    dlir.dispatch_queue "group" "load" 0 {
      dlir.loop %i times[%n] {
        dlir.loop %k times[8] {
          dlir.fill %a { dlir.copy DDR -> L1 %x[%k * 256] to %a[0] with %d }
        }
      }
    }
    dlir.dispatch_queue "group" "math" 0 {
      dlir.loop %i times[%n * 4] {
        dlir.loop %k times[%two] {
          dlir.drain %a { dlir.copy L1 -> DDR %a[0] to %x[8192] with %d }
        }
      }
    }
    dlir.dispatch_queue "group" "math" 1 {
      dlir.loop %i times[%n * 8] {
        dlir.drain %a {}
      }
    }
  }
}
)";

TEST_F(Rings, AreReadAsTheyArePrinted) {
  std::string once, twice;
  EXPECT_EQ(errorOf(kPanels, false, &once), "");
  EXPECT_NE(once.find("%a_ring = dlir.ring \"L1\" \"a\" slots 4 size 256 on \"group\" from \"load\" 0 to \"math\" 0, "
                      "\"math\" 1"),
            std::string::npos)
      << once;
  EXPECT_NE(once.find("dlir.drain %a_ring {"), std::string::npos) << once;
  EXPECT_EQ(errorOf(once, false, &twice), "");
  EXPECT_EQ(once, twice);
}

TEST_F(Rings, SayWhatIsAllowed) {
  expectEach(
      kPanels,
      {{"slots 4", "slots 0", "C1: ring 'a' has `slots` 0, they are 1 to 16 of 256 bytes in L1"},
       {"slots 4", "slots 17", "C1: ring 'a' has `slots` 17, they are 1 to 16 of 256 bytes in L1"},
       {"slots 4", "slots 16", ""},
       {"slots 4 size 256", "slots 4 size 0", "C2: ring 'a' has a `size` of 0 bytes, it is 1 to 4096 in L1"},
       {"slots 4 size 256", "slots 1 size 8192", "C2: ring 'a' has a `size` of 8192 bytes, it is 1 to 4096 in L1"},
       {"ring \"L1\"", "ring \"L7\"", "C2: ring 'a' lies in L7, which the device does not have; it has DDR, L1"},
       {"on \"group\" from", "on \"host\" from",
        "C3: ring 'a' is on \"host\", of which the device has none, or which hold"},
       {"to \"math\" 0, \"math\" 1", "to \"math\" 0, \"math\" 0", "C4: ring 'a' names the queue \"math\" 0 twice"},
       {"to \"math\" 0, \"math\" 1", "to \"math\" 0, \"math\" 2",
        "C4: ring 'a' names queue 2 of \"math\" by `to`, there are 0 to 1"},
       {"to \"math\" 0, \"math\" 1", "to \"maths\" 0",
        "C4: ring 'a' names \"maths\" by `to`; engines of a group are load, math"},
       {"from \"load\" 0", "from \"math\" 0", "C3: is of ring 'a', which queue \"group\" \"load\" 0 does not fill"},
       {"    dlir.dispatch_queue",
        "%b = dlir.ring \"L1\" \"a\" slots 1 size 4 on \"group\" from \"load\" 0 to \"math\" 0\n dlir.dispatch_queue",
        "C6: is a second ring named 'a'"},
       {"    %two", "%t = dlir.token\n %v = dlir.token\n %w = dlir.token\n %p = dlir.token\n %q = dlir.token\n %two",
        "C5: ring 'a' is one too many: it takes two tokens, a group holds 6"}});
}

TEST_F(Rings, AreHeldWhereTheirSlotsAreUsed) {
  expectEach(kPanels, {{"dlir.fill %a {", "dlir.drain %a {", "C5: writes into a slot of ring 'a' that it drains"},
                       {"dlir.fill %a {", "dlir.drain %a {}\n dlir.fill %a {",
                        "C3: is of ring 'a', which queue \"group\" \"load\" 0 does not drain"},
                       {"dlir.drain %a { dlir.copy", "dlir.fill %a { dlir.copy",
                        "C3: is of ring 'a', which queue \"group\" \"math\" 0 does not fill"},
                       {"dlir.fill %a {", "dlir.fill %a, %a {", "C2: names ring 'a' twice"},
                       {"dlir.drain %a {}", "dlir.drain %x {}", "C2: names what is no dlir.ring"},
                       {"dlir.drain %a {}", "dlir.drain %a { dlir.drain %a {} }",
                        "C2: names ring 'a', a slot of which is held already"},
                       {"dlir.drain %a {}", "dlir.drain %a { dlir.copy DDR -> L1 %x[0] to %a[0] with %d }",
                        "C5: writes into a slot of ring 'a' that it drains"},
                       {"dlir.fill %a { dlir.copy DDR -> L1 %x[%k * 256] to %a[0] with %d }",
                        "dlir.task_group \"x\" { dlir.copy DDR -> L1 %x[%k * 256] to %a[0] with %d }",
                        "takes a slot of ring 'a' outside of a dlir.fill or dlir.drain of it"},
                       {"dlir.drain %a {}", "", "C5: ring 'a' is never drained by queue \"math\" 1, which `to` names"},
                       {"dlir.fill %a { dlir.copy DDR -> L1 %x[%k * 256] to %a[0] with %d }", "",
                        "C5: ring 'a' is never filled by queue \"load\" 0, which `from` names"}});
}

TEST_F(Rings, AreFilledAsOftenAsDrained) {
  expectEach(
      kPanels,
      {{"times[8]", "times[7]", "C7: ring 'a' is filled 7 times where it is drained 8 by \"math\" 0"},
       {"times[%n * 8]", "times[%n * 8 + 1]", "C7: ring 'a' is filled otherwise than it is drained by \"math\" 1"},
       {"times[%n * 8]", "times[%n * 6]", "C7: ring 'a' is filled 4 times where it is drained 3 by \"math\" 1"},
       {"times[%n * 8]", "times[64]", "C7: ring 'a' is filled 1 times where it is drained 8 by \"math\" 1"},
       {"register 1 [2]", "register 1 [0]", "C7: ring 'a' is filled and never drained by \"math\" 0"},
       {"dlir.drain %a {}", "dlir.drain %a {}\n dlir.drain %a {}",
        "C7: ring 'a' is filled 1 times where it is drained 2 by \"math\" 1"}});
}

/// The host puts 12 rows, which a stage passes on two by two for ever, by a slot of its own; 6 pairs come back.
constexpr const char *kStages = R"(
dlir.device_program @stages on "pipes" {
  %x = dlir.memory "DDR" "x" size 16384
  %row = dlir.descriptor "f32" unit 16 dims [] source [] target []
  %pair = dlir.descriptor "f32" unit 16 dims [2] source [64] target [64]
  dlir.channel @in [2]
  dlir.channel @out [2]
  dlir.scheduled_graph "main" units 2 (%u) {
    %odd = dlir.register 0 [1]
    %a = dlir.ring "L1" "a" slots 2 size 64 on "group" from "load" 0 to "math" 0
    %b = dlir.ring "L1" "b" slots 3 size 128 on "group" from "math" 0 to "math" 1
    dlir.dispatch_queue "host" "dma" 0 {
      dlir.loop %i times[12] { dlir.task_group "rows" { dlir.put @in[%u] %x[%i * 64] with %row } }
    }
    dlir.dispatch_queue "host" "dma" 1 {
      dlir.loop %i times[6] { dlir.task_group "pairs" { dlir.get @out[%u] to %x[%i * 128] with %pair } }
    }
    dlir.dispatch_queue "group" "load" 0 {
      dlir.loop %i times[4294967295] { dlir.fill %a { dlir.get @in[%u] to %a[0] with %row } }
    }
    dlir.dispatch_queue "group" "math" 0 {
      dlir.loop %i times[4294967295] {
        dlir.fill %b {
          dlir.drain %a {}
          dlir.loop %k times[%odd] { dlir.drain %a {} }
        }
      }
    }
    dlir.dispatch_queue "group" "math" 1 {
      dlir.loop %i times[4294967295] { dlir.drain %b { dlir.put @out[%u] %b[0] with %pair } }
    }
  }
}
)";

TEST_F(Rings, AreCountedByWhatChannelsBring) {
  expectEach(
      kStages,
      {{"times[12]", "times[6]", "C7: ring 'b' is filled 1 times where it is drained 2 by \"math\" 1"},
       {"times[6]", "times[12]", "C7: ring 'b' is filled 1 times where it is drained 2 by \"math\" 1"},
       {"register 0 [1]", "register 0 [2]", "C7: ring 'b' is filled 2 times where it is drained 3 by \"math\" 1"},
       {"register 0 [1]", "register 0 [1, 2]", "C7: ring 'b' is filled 2 times where it is drained 3 by \"math\" 1"},
       {"register 0 [1]", "register 0 [1, 1]", ""},
       {"dlir.drain %a {}\n", "", "C7: ring 'b' is filled 2 times where it is drained 1 by \"math\" 1"},
       {"slots 2", "slots 1", ""},
       {"get @in[%u] to %a[0] with %row", "get @in[1 - %u] to %a[0] with %row", ""},
       {"slots 2 size 64", "slots 2 size 128", ""}});
}

/// One row more comes before the endless loop and is drained in each of the six trips that make pairs.
TEST_F(Rings, AreFilledOnceBeforeALoopWithoutAnEnd) {
  std::string text = kStages;
  auto replace = [&](StringRef from, StringRef to) {
    size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from.str();
    text.replace(at, from.size(), to);
  };
  replace("times[12]", "times[13]");
  replace("    %b = dlir.ring", "    %f = dlir.ring \"L1\" \"first\" slots 1 size 64 on \"group\" from \"load\" 0 to "
                                "\"math\" 0 {uses = 6}\n    %b = dlir.ring");
  replace("      dlir.loop %i times[4294967295] { dlir.fill %a",
          "      dlir.fill %f { dlir.get @in[%u] to %f[0] with %row }\n"
          "      dlir.loop %i times[4294967295] { dlir.fill %a");
  replace("          dlir.drain %a {}\n", "          dlir.drain %f {}\n          dlir.drain %a {}\n");
  expectEach(text,
             {{"times[13]", "times[12]", "C7: ring 'first' is filled 12 times where it is drained 11 by \"math\" 0"},
              {"uses = 6", "uses = 5", "C7: ring 'first' is filled 5 times where it is drained 6 by \"math\" 0"},
              {"dlir.fill %f {", "dlir.fill %f { dlir.get @in[%u] to %f[0] with %row",
               "C7: ring 'first' is filled 12 times where it is drained 11 by \"math\" 0"}});
}

TEST_F(Rings, OfWhichCodeNamesSlotsKeepTheirTurns) {
  std::string known = kStages; // both drains in one loop of two trips
  size_t at = known.find("dlir.drain %a {}\n");
  known.replace(at, std::string("dlir.drain %a {}\n").size(), "");
  at = known.find("register 0 [1]");
  known.replace(at, std::string("register 0 [1]").size(), "register 0 [2]");
  EXPECT_EQ(errorOf(known), "");
  EXPECT_NE(errorOf(known, true).find("C2: takes ring 'a' 1 slot further in each trip"), std::string::npos);
  at = known.find("times[%odd]");
  known.replace(at, std::string("times[%odd]").size(), "times[2]");
  EXPECT_EQ(errorOf(known, true), "");
  expectEach(
      known,
      {{"slots 2", "slots 1", ""}, {"slots 2", "slots 3", "drains it in a trip is a multiple of its `slots`, 3"}},
      true);
}

} // namespace
