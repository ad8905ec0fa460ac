//===- ValidateTest.cpp - the rules of FORMAT.md --------------------------===//
#include "dmxc/Bundle/Validate.h"
#include "SampleBundle.h"

namespace dmxc::bundle::test {
namespace {

/// Everything validate() says about the sample after a change.
std::string problemsAfter(const std::function<void(GraphFile &, Manifest &)> &change) {
  ScratchDir scratch;
  writeSample(scratch.path("m"), BundleFormat::Zip, change);
  auto bundle = Bundle::open(scratch.path("m"));
  if (!bundle)
    return bundle.error().message;
  std::string text;
  for (const Problem &problem : validate(*bundle, CheckLevel::Structure))
    text += problem.where + ": " + problem.message + "\n";
  return text;
}

struct Rule {
  const char *name;
  void (*breakIt)(GraphDesc &, Manifest &);
  const char *message;
};

const Rule rules[] = {
    {"DimBounds", [](GraphDesc &g, Manifest &) { g.dims[0].max = 0; }, "bounds 1..0"},
    {"DimInput", [](GraphDesc &g, Manifest &) { g.dims[0].input = 4; }, "no buffer is input 4"},
    {"DimAxis", [](GraphDesc &g, Manifest &) { g.dims[0].axis = 2; }, "axis 2 is out of range"},
    {"DimAxisNegative", [](GraphDesc &g, Manifest &) { g.dims[0].axis = -1; }, "axis -1 is out of range"},
    {"DimOtherAxis", [](GraphDesc &g, Manifest &) { g.dims[0].axis = 1; }, "has '3' at axis 1"},
    {"DimTwice", [](GraphDesc &g, Manifest &) { g.dims[1].name = "batch"; }, "used twice"},
    {"DimOrder", [](GraphDesc &g, Manifest &) { std::swap(g.dims[0], g.dims[1]); }, "before this point"},
    {"DimOverflow",
     [](GraphDesc &g, Manifest &) { g.dims[1].expr = Expr::binary(Expr::Op::Mul, Expr::dim("batch"), INT64_MAX); },
     "overflows"},
    {"ArenaAlign", [](GraphDesc &g, Manifest &) { g.arenas[0].align = 96; }, "expected 64"},
    {"ArenaNegative", [](GraphDesc &g, Manifest &) { g.arenas[0].size = -1; }, "size is negative"},
    {"ArenaTooSmall", [](GraphDesc &g, Manifest &) { g.arenas[0].size = 8; }, "leave arena 0 of 8 bytes"},
    {"ArenaUnknown", [](GraphDesc &g, Manifest &) { g.buffers[4].arena = 1; }, "there is no arena 1"},
    {"BufferOffset", [](GraphDesc &g, Manifest &) { g.buffers[4].offset = 4; }, "not a multiple of 64"},
    {"BufferOffsetNegative", [](GraphDesc &g, Manifest &) { g.buffers[4].offset = -64; }, "leave arena 0"},
    {"BufferSmall", [](GraphDesc &g, Manifest &) { g.buffers[4].size = 4; }, "less than dtype and shape need"},
    {"BufferUnknownDim", [](GraphDesc &g, Manifest &) { g.buffers[4].size = Expr::dim("seq"); }, "uses dim 'seq'"},
    {"BufferNegativeDim", [](GraphDesc &g, Manifest &) { g.buffers[4].shape = {-1, 3}; }, "is negative"},
    {"ConstEntry", [](GraphDesc &g, Manifest &) { g.buffers[3].entry = "weights/x"; }, "no weights entry 'weights/x'"},
    {"ConstTensor", [](GraphDesc &g, Manifest &) { g.buffers[3].tensor = "v"; }, "has no tensor 'v'"},
    {"ConstOffset", [](GraphDesc &g, Manifest &) { g.buffers[3].offset = 64; }, "tensor 'w' lies at 4096+60"},
    {"ConstEnd", [](GraphDesc &g, Manifest &) { g.buffers[3].offset = 1 << 20; }, "leave entry"},
    {"StateSize", [](GraphDesc &g, Manifest &) { g.buffers[4].kind = BufferKind::State; }, "must be an integer"},
    {"AliasOfAlias", [](GraphDesc &g, Manifest &) { g.buffers[5].of = 5; }, "not an alias"},
    {"AliasRange", [](GraphDesc &g, Manifest &) { g.buffers[5].offset = 4; }, "leave buffer 4"},
    {"OutputTwice", [](GraphDesc &g, Manifest &) { g.buffers[2].index = 0; }, "has 2 buffers"},
    {"OutputUnknown", [](GraphDesc &g, Manifest &) { g.buffers[2].index = 9; }, "is output 9"},
    {"OutputType", [](GraphDesc &, Manifest &m) { m.entryPoints[0].outputs[1].dtype = DType::I32; }, "in the manifest"},
    {"TaskQueue", [](GraphDesc &g, Manifest &) { g.tasks[0].queue = 1; }, "no queue 1"},
    {"TaskDepSelf", [](GraphDesc &g, Manifest &) { g.tasks[1].deps = {1}; }, "not an earlier one"},
    {"TaskDepNegative", [](GraphDesc &g, Manifest &) { g.tasks[1].deps = {-1}; }, "not an earlier one"},
    {"CopyBuffer", [](GraphDesc &g, Manifest &) { g.tasks[0].dst = 6; }, "copies between buffers 0 and 6"},
    {"CopyRange", [](GraphDesc &g, Manifest &) { g.tasks[2].srcOffset = 4; }, "leave buffer 3"},
    {"CopyNegative", [](GraphDesc &g, Manifest &) { g.tasks[2].size = -4; }, "leave buffer"},
    {"WritesInput",
     [](GraphDesc &g, Manifest &) {
       g.tasks[0].dst = 0;
       g.tasks[0].src = 4;
     },
     "which is an input"},
    {"WritesConst", [](GraphDesc &g, Manifest &) { std::swap(g.tasks[2].src, g.tasks[2].dst); }, "which is a constant"},
    {"OutputUnwritten", [](GraphDesc &g, Manifest &) { g.tasks.pop_back(); }, "written by no task"},
    {"Hazard", [](GraphDesc &g, Manifest &) { g.tasks[1].deps = {}; },
     "tasks 0 (copy4) and 1 (copy1) touch the same bytes"},
    {"EntryPointGraph", [](GraphDesc &g, Manifest &) { g.name = "other"; }, "has no graph of that name"},
    {"Required", [](GraphDesc &, Manifest &m) { m.required = {"teleport"}; }, "requires the feature 'teleport'"},
    {"TargetEntry", [](GraphDesc &, Manifest &m) { m.targets[0].entry = "code/k.so"; }, "no entry 'code/k.so'"},
    {"TargetCommon", [](GraphDesc &, Manifest &m) { m.targets[0].common = "code/c.so"; },
     "no entry 'code/c.so', its 'common'"},
    {"CommonUnlisted", [](GraphDesc &, Manifest &m) { m.targets[0].common = m.targets[0].entry; },
     "'targets' uses 'common-code', which 'required' does not list"},
    {"CommonMinor",
     [](GraphDesc &, Manifest &m) {
       m.targets[0].common = m.targets[0].entry;
       m.required = {"common-code"};
       m.minor = 1;
     },
     "'targets' uses 'common-code', which format 1.1 does not have"},
    {"DescriptionMinor", [](GraphDesc &, Manifest &m) { m.entryPoints[0].outputs[1].description = "a text"; },
     "an input or output has a 'description', which format 1.0 does not have"},
    {"InputNames", [](GraphDesc &, Manifest &m) { m.entryPoints[0].outputs[1].name = "y"; },
     "two outputs are named 'y'"},
};

class ValidateRule : public testing::TestWithParam<Rule> {};

TEST_P(ValidateRule, IsFound) {
  std::string problems = problemsAfter([](GraphFile &g, Manifest &m) { GetParam().breakIt(g.graphs[0], m); });
  EXPECT_NE(problems.find(GetParam().message), std::string::npos) << problems;
}

INSTANTIATE_TEST_SUITE_P(All, ValidateRule, testing::ValuesIn(rules),
                         [](auto &info) { return std::string(info.param.name); });

TEST(Validate, TheSampleIsSound) {
  EXPECT_EQ(problemsAfter([](GraphFile &, Manifest &) {}), "");
}

TEST(Validate, DispatchFields) {
  auto withDispatch = [](const std::function<void(TaskDesc &)> &change) {
    return problemsAfter([&](GraphFile &g, Manifest &) {
      TaskDesc task;
      task.name = "k";
      task.kernel = "k0";
      task.buffers = {0, 4};
      task.work = Expr::dim("batch");
      change(task);
      g.graphs[0].tasks[0] = task;
    });
  };
  EXPECT_EQ(withDispatch([](TaskDesc &) {}), "");
  EXPECT_NE(withDispatch([](TaskDesc &t) { t.outputs = 3; }).find("'outputs' is 3"), std::string::npos);
  EXPECT_NE(withDispatch([](TaskDesc &t) { t.buffers[0] = 77; }).find("no buffer 77"), std::string::npos);
  EXPECT_NE(withDispatch([](TaskDesc &t) { t.grain = 0; }).find("'grain' is less than 1"), std::string::npos);
  EXPECT_NE(withDispatch([](TaskDesc &t) { t.work = -1; }).find("'work' is less than 0"), std::string::npos);
  EXPECT_NE(withDispatch([](TaskDesc &t) { t.scratch = Expr::dim("q"); }).find("uses dim 'q'"), std::string::npos);
  EXPECT_NE(withDispatch([](TaskDesc &t) { t.kernel = ""; }).find("name is empty"), std::string::npos);
}

/// The sample with a second device, a state and a kernel on each device.
std::string mixedAfter(const std::function<void(GraphDesc &, Manifest &)> &change) {
  return problemsAfter([&](GraphFile &file, Manifest &m) {
    GraphDesc &g = file.graphs[0];
    g.queues.push_back({"card", "corsair"});
    m.targets.push_back({"corsair", "corsair-like", "code/cpu/x86-64-v3/kernels.bin", {}});
    BufferDesc state;
    state.kind = BufferKind::State;
    state.shape = {4};
    state.size = 64;
    g.buffers.push_back(state); // 6
    for (int64_t i = 0; i < 2; ++i) {
      TaskDesc task;
      task.name = "k" + std::to_string(i);
      task.kernel = task.name;
      task.queue = 1 - i;
      task.buffers = {5, 6};
      task.work = 1;
      task.deps = {0};
      g.tasks.push_back(task); // 3 on the card, 4 on the host
    }
    g.tasks[4].buffers = {5};
    g.tasks[4].outputs = 0;
    g.tasks[4].deps = {0, 3};
    change(g, m);
  });
}

TEST(Validate, SeveralTargets) {
  EXPECT_EQ(mixedAfter([](GraphDesc &, Manifest &) {}), "");
  EXPECT_EQ(mixedAfter([](GraphDesc &, Manifest &m) { m.targets.pop_back(); }),
            "graph 'main': kernels run on target 'corsair', which the manifest lists no code for\n");
  // Hazards are those of bytes, whoever runs the tasks.
  auto shared = [](std::vector<int64_t> deps) {
    return mixedAfter([&](GraphDesc &g, Manifest &) {
      g.tasks[3].buffers = {6, 4};
      g.tasks[3].deps = {0, 1};
      g.tasks[4].deps = deps;
    });
  };
  EXPECT_EQ(shared({3}), "");
  EXPECT_NE(shared({0, 1}).find("tasks 3 (k0) and 4 (k1) touch the same bytes"), std::string::npos);
  // States stay on one device; copies are the host's.
  EXPECT_NE(mixedAfter([](GraphDesc &g, Manifest &) {
              g.tasks[4].buffers = {5, 6};
            }).find("task 4 (k1): uses state buffer 6 on target 'cpu', an earlier task on 'corsair'"),
            std::string::npos);
  EXPECT_NE(mixedAfter([](GraphDesc &g, Manifest &) {
              BufferDesc part = g.buffers[6];
              part.kind = BufferKind::Alias;
              part.of = 6;
              g.buffers.push_back(part);
              g.tasks[4].buffers = {7};
            }).find("task 4 (k1): uses state buffer 6 on target 'cpu'"),
            std::string::npos);
  auto copied = [](bool mixed) {
    return mixedAfter([&](GraphDesc &g, Manifest &) {
      TaskDesc copy;
      copy.kind = TaskKind::Copy;
      copy.name = "save";
      copy.queue = 1;
      copy.src = 6;
      copy.dst = 2;
      copy.size = 16;
      copy.deps = {2, 3};
      g.tasks.push_back(copy);
      if (mixed)
        return;
      g.queues[0].target = "corsair";
    });
  };
  EXPECT_EQ(copied(false), "");
  EXPECT_NE(copied(true).find("task 5 (save): uses state buffer 6 on target 'cpu', an earlier task on 'corsair'"),
            std::string::npos);
}

TEST(Validate, DamagedWeightsAreFoundOnRequest) {
  ScratchDir scratch;
  writeSample(scratch.path("m"));
  std::string bytes = readFile(scratch.path("m"));
  auto sound = Bundle::open(scratch.path("m"));
  ASSERT_TRUE(sound);
  size_t at = sound->find("weights/model.safetensors")->offset + 4100;
  bytes[at] ^= 1;
  writeFile(scratch.path("damaged"), bytes);
  auto bundle = Bundle::open(scratch.path("damaged"));
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_TRUE(validate(*bundle, CheckLevel::Structure).empty());
  auto problems = validate(*bundle, CheckLevel::Everything);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[0].message.find("sha256"), std::string::npos);
  EXPECT_NE(problems[1].message.find("CRC"), std::string::npos);
}

TEST(Validate, StrangersInADirectory) {
  ScratchDir scratch;
  writeSample(scratch.path("d"), BundleFormat::Directory);
  writeFile(scratch.path("d/debug.txt"), "x");
  auto bundle = Bundle::open(scratch.path("d"));
  ASSERT_TRUE(bundle) << bundle.error().message;
  auto problems = validate(*bundle, CheckLevel::Structure);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].where, "file 'debug.txt'");
}

} // namespace
} // namespace dmxc::bundle::test
