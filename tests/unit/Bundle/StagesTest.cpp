//===- StagesTest.cpp - what format 1.1 added -----------------------------===//
#include "SampleBundle.h"
#include "dmxc/Bundle/Diff.h"
#include "dmxc/Bundle/Validate.h"

namespace dmxc::bundle::test {
namespace {

using Op = Expr::Op;

Expr dim(const char *name) { return Expr::dim(name); }
Expr bytesOf(const Expr &count) { return Expr::binary(Op::Mul, count, 8); }

BufferDesc buffer(BufferKind kind, DType dtype, std::vector<Expr> shape, int64_t index = 0) {
  BufferDesc b;
  b.kind = kind;
  b.dtype = dtype;
  b.shape = std::move(shape);
  b.index = index;
  b.size = denseBytes(dtype, b.shape);
  return b;
}

TaskDesc kernel(const char *name, std::vector<int64_t> buffers, std::vector<int64_t> deps) {
  TaskDesc task;
  task.name = task.kernel = name;
  task.buffers = std::move(buffers);
  task.deps = std::move(deps);
  return task;
}

TaskDesc copy(const char *name, int64_t src, int64_t dst, Expr size, std::vector<int64_t> deps) {
  TaskDesc task;
  task.kind = TaskKind::Copy;
  task.name = name;
  task.src = src;
  task.dst = dst;
  task.size = std::move(size);
  task.deps = std::move(deps);
  return task;
}

/// A body that appends to its list: inputs number, condition, list, captured; outputs go on, list, number.
GraphDesc bodyGraph() {
  GraphDesc g;
  g.name = "body";
  g.queues.push_back({"cpu", "cpu"});
  g.dims.push_back({"k", 0, 1000, 2, 0, std::nullopt});
  Expr longer = Expr::binary(Op::Add, dim("k"), 1);
  g.buffers = {buffer(BufferKind::Input, DType::I64, {}, 0), buffer(BufferKind::Input, DType::I64, {dim("k")}, 2),
               buffer(BufferKind::Output, DType::Bool, {}, 0), buffer(BufferKind::Output, DType::I64, {longer}, 1),
               buffer(BufferKind::Output, DType::I64, {}, 2)};
  g.tasks = {kernel("go", {2}, {}), kernel("append", {0, 1, 3}, {}), copy("number", 0, 4, 8, {})};
  return g;
}

GraphDesc branchGraph(const char *name) {
  GraphDesc g;
  g.name = name;
  g.queues.push_back({"cpu", "cpu"});
  g.dims.push_back({"a", 0, 1000, 0, 0, std::nullopt});
  g.buffers = {buffer(BufferKind::Input, DType::I64, {dim("a")}), buffer(BufferKind::Output, DType::I64, {dim("a")})};
  g.tasks = {copy("same", 0, 1, bytesOf(dim("a")), {})};
  return g;
}

/// x -> nonzero (n of them) -> if -> loop -> y, z: four stages.
GraphFile stagedFile() {
  GraphDesc g;
  g.name = "main";
  g.queues.push_back({"cpu", "cpu"});
  g.dims.push_back({"m", 1, 64, 0, 0, std::nullopt});
  auto returned = [&](const char *name, int64_t task, int64_t result, int64_t output, Expr upper) {
    DimDesc row;
    row.name = name;
    row.task = task;
    row.result = result;
    row.output = output;
    row.axis = output < 0 ? -1 : 0;
    row.upper = std::move(upper);
    g.dims.push_back(row);
  };
  returned("n", 0, 0, -1, dim("m"));
  returned("e", 2, -1, 0, 64);
  returned("trips", 3, 0, -1, 10);
  returned("f", 3, -1, 0, 74);
  g.constraints.push_back({Relation::Le, dim("n"), Expr::binary(Op::Broadcast, dim("m"), 1), "no more than there are"});
  g.arenas.push_back({512, 512, 64});
  Expr late = Expr::binary(Op::Mul, Expr::binary(Op::CeilDiv, dim("n"), 8), 64);
  g.arenas.push_back({late, late, 64});
  g.buffers = {
      buffer(BufferKind::Input, DType::F32, {dim("m")}, 0),  buffer(BufferKind::Input, DType::Bool, {}, 1),
      buffer(BufferKind::Arena, DType::I64, {dim("m")}),     buffer(BufferKind::Alias, DType::I64, {dim("n")}),
      buffer(BufferKind::Arena, DType::I64, {dim("n")}),     buffer(BufferKind::Result, DType::I64, {dim("e")}, 0),
      buffer(BufferKind::Result, DType::I64, {dim("f")}, 0), buffer(BufferKind::Result, DType::I64, {dim("trips")}, 1),
      buffer(BufferKind::Output, DType::I64, {dim("f")}, 0), buffer(BufferKind::Output, DType::I64, {dim("trips")}, 1)};
  g.buffers[3].of = 2;
  g.buffers[4].arena = 1;
  g.buffers[5].task = 2;
  g.buffers[6].task = g.buffers[7].task = 3;
  TaskDesc nonzero = kernel("nonzero", {0, 2}, {});
  nonzero.results = 1;
  TaskDesc branch;
  branch.kind = TaskKind::If;
  branch.name = "if";
  branch.nodes = {"If_0"};
  branch.cond = 1;
  branch.thenGraph = "then";
  branch.elseGraph = "else";
  branch.buffers = {4};
  branch.deps = {1};
  TaskDesc loop;
  loop.kind = TaskKind::Loop;
  loop.name = "loop";
  loop.nodes = {"Loop_1"};
  loop.body = "body";
  loop.cond = 1;
  loop.carried = {5};
  loop.scans = 1;
  loop.deps = {2};
  g.tasks = {nonzero, copy("compact", 3, 4, bytesOf(dim("n")), {0}), branch,
             loop,    copy("y", 6, 8, bytesOf(dim("f")), {3}),       copy("z", 7, 9, bytesOf(dim("trips")), {3})};
  GraphFile file;
  file.graphs = {g, branchGraph("then"), branchGraph("else"), bodyGraph()};
  return file;
}

/// Everything validate() says about the file after a change.
std::string problemsAfter(const std::function<void(GraphFile &, Manifest &)> &change) {
  ScratchDir scratch;
  writeSample(scratch.path("m"), BundleFormat::Zip, [&](GraphFile &file, Manifest &m) {
    file = stagedFile();
    EntryPoint entry;
    entry.inputs = {{"x", DType::F32, {dim("m")}}, {"c", DType::Bool, {}}};
    entry.outputs = {{"y", DType::I64, {dim("f")}}, {"z", DType::I64, {dim("trips")}}};
    entry.dims = {{"m", 1, 64}};
    m.entryPoints = {entry};
    change(file, m);
    if (m.required.empty())
      requireFeaturesOf(file, m);
  });
  auto bundle = Bundle::open(scratch.path("m"));
  if (!bundle)
    return bundle.error().message;
  std::string text;
  for (const Problem &problem : validate(*bundle, CheckLevel::Structure))
    text += problem.where + ": " + problem.message + "\n";
  return text;
}

TEST(Stages, TheSampleIsSound) {
  EXPECT_EQ(problemsAfter([](GraphFile &, Manifest &) {}), "");
  auto ends = stageEnds(stagedFile().graphs[0]);
  ASSERT_TRUE(ends);
  EXPECT_EQ(*ends, (std::vector<int64_t>{1, 3, 4, 6}));
  EXPECT_EQ(*stageEnds(bodyGraph()), (std::vector<int64_t>{3}));
  GraphDesc onlyOutputs = stagedFile().graphs[0];
  onlyOutputs.tasks.resize(4);
  EXPECT_EQ(*stageEnds(onlyOutputs), (std::vector<int64_t>{1, 3, 4, 4})) << "the last stage has no tasks";
}

TEST(Stages, JsonKeepsEverything) {
  std::string text = toJson(stagedFile());
  auto parsed = parseGraph(text);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(toJson(*parsed), text);
  for (const char *part :
       {R"({"name": "n", "task": 0, "result": 0, "min": 0, "max": "m"})", R"("output": 0, "axis": 0)",
        R"("results": 1)", R"("kind": "if")", R"("then": "then", "else": "else", "inputs": [4], "outputs": 1)",
        R"("rel": "le")", R"("body": "body", "cond": 1, "carried": [5], "inputs": [], "scans": 1)",
        R"({"kind": "result", "task": 3, "output": 1)"}) {
    std::string compact = text, wanted = part;
    for (std::string *s : {&compact, &wanted})
      std::erase_if(*s, [](char c) { return c == ' ' || c == '\n'; });
    EXPECT_NE(compact.find(wanted), std::string::npos) << part;
  }
}

TEST(Stages, FeaturesAreRequired) {
  EXPECT_EQ(featuresOf(stagedFile()),
            (std::vector<std::string>{"broadcast", "constraints", "control-flow", "returned-dims"}));
  GraphFile plain;
  plain.graphs = {branchGraph("main")};
  Manifest manifest;
  requireFeaturesOf(plain, manifest);
  EXPECT_EQ(manifest.minor, 0) << "a bundle without them can be read by older readers";
  EXPECT_TRUE(manifest.required.empty());
  for (DType type : {DType::F8E8M0, DType::I2, DType::U2}) {
    GraphFile narrow = plain;
    narrow.graphs.front().buffers.front().dtype = type;
    EXPECT_EQ(featuresOf(narrow), std::vector<std::string>{"narrow-types"}) << dtypeName(type);
  }
  requireFeaturesOf(stagedFile(), manifest);
  EXPECT_EQ(manifest.minor, 1);
  EXPECT_NE(problemsAfter([](GraphFile &, Manifest &m) {
              m.required = {"broadcast", "constraints", "control-flow"};
            }).find("uses 'returned-dims', which 'required' does not list"),
            std::string::npos);
}

struct Rule {
  const char *name;
  void (*breakIt)(GraphFile &);
  const char *message;
};

const Rule rules[] = {
    {"DimTask", [](GraphFile &f) { f.graphs[0].dims[1].task = 9; }, "not among what task 9 returns"},
    {"DimFarTask", [](GraphFile &f) { f.graphs[0].dims[1].task = INT64_MAX; }, "not among what task"},
    {"DimResult", [](GraphFile &f) { f.graphs[0].dims[1].result = 1; }, "not among what task 0 returns"},
    {"DimOutput", [](GraphFile &f) { f.graphs[0].dims[2].output = 1; }, "not among what task 2 returns"},
    {"DimAxis", [](GraphFile &f) { f.graphs[0].dims[2].axis = 1; }, "read from axis 1 of output 0"},
    {"DimBound", [](GraphFile &f) { f.graphs[0].dims[1].upper = Expr::dim("trips"); }, "uses dim 'trips'"},
    {"ResultsWork", [](GraphFile &f) { f.graphs[0].tasks[0].work = 2; }, "must have work 1"},
    {"TooEarly", [](GraphFile &f) { f.graphs[0].tasks[0].dims = {Expr::dim("n")}; },
     "task 0 uses what task 0 returns, which is not an earlier one"},
    {"TooEarlyArena", [](GraphFile &f) { f.graphs[0].arenas[0].size = Expr::dim("trips"); },
     "task 0 uses what task 3 returns"},
    {"ConstraintDim", [](GraphFile &f) { f.graphs[0].constraints[0].lhs = Expr::dim("q"); }, "uses dim 'q'"},
    {"ResultTask", [](GraphFile &f) { f.graphs[0].buffers[5].task = 0; }, "task 0 has no output 0"},
    {"ResultTwice", [](GraphFile &f) { f.graphs[0].buffers[7].index = 0; }, "same output of the same task"},
    {"ResultWritten", [](GraphFile &f) { f.graphs[0].tasks[5].dst = 6; }, "which is the result of another task"},
    {"ResultRank", [](GraphFile &f) { f.graphs[0].buffers[7].shape = {Expr::dim("trips"), 1}; },
     "output 1 is i64 of rank 1, but its result buffer is i64 of rank 2"},
    {"Condition", [](GraphFile &f) { f.graphs[0].tasks[2].cond = 0; }, "buffer 0 is not one bool"},
    {"ConditionMissing", [](GraphFile &f) { f.graphs[0].tasks[2].cond = 99; }, "no buffer 99"},
    {"TripCount", [](GraphFile &f) { f.graphs[0].tasks[3].tripCount = 1; }, "buffer 1 is not one i64"},
    {"GraphMissing", [](GraphFile &f) { f.graphs[0].tasks[3].body = "x"; }, "there is no graph 'x'"},
    {"OwnedTwice", [](GraphFile &f) { f.graphs[0].tasks[2].elseGraph = "then"; }, "another task's already"},
    {"OwnsItself", [](GraphFile &f) { f.graphs[0].tasks[3].body = "main"; }, "in itself"},
    {"Unused", [](GraphFile &f) { f.graphs.push_back(branchGraph("idle")); }, "nothing uses it"},
    {"InputForm", [](GraphFile &f) { f.graphs[1].buffers[0].dtype = DType::F64; }, "is f64 of rank 1, but it gets i64"},
    {"InputCount", [](GraphFile &f) { f.graphs[1].buffers[0].index = 1; }, "has input 1, but gets 1 inputs"},
    {"OutputCount", [](GraphFile &f) { f.graphs[0].tasks[3].scans = 0; }, "does not have just outputs 0 to 1"},
    {"CarriedForm", [](GraphFile &f) { f.graphs[3].buffers[3].dtype = DType::F64; }, "is f64 of rank 1, expected i64"},
    {"Target", [](GraphFile &f) { f.graphs[2].queues[0].target = "corsair"; }, "owned graphs run on 'cpu' only"},
    {"Hazard", [](GraphFile &f) { f.graphs[0].tasks[2].deps = {}; },
     "tasks 1 (compact) and 2 (if) touch the same bytes"},
    {"BranchHazard",
     [](GraphFile &f) { f.graphs[3].tasks[2].dst = 3, f.graphs[3].buffers[4].kind = BufferKind::Arena; },
     "graph 'body'"},
};

class StagesRule : public testing::TestWithParam<Rule> {};

TEST_P(StagesRule, IsFound) {
  std::string problems = problemsAfter([](GraphFile &file, Manifest &) { GetParam().breakIt(file); });
  EXPECT_NE(problems.find(GetParam().message), std::string::npos) << problems;
}

INSTANTIATE_TEST_SUITE_P(All, StagesRule, testing::ValuesIn(rules),
                         [](auto &info) { return std::string(info.param.name); });

/// The stage cut orders tasks that no deps order.
TEST(Stages, HazardsKnowStages) {
  EXPECT_EQ(problemsAfter([](GraphFile &f, Manifest &) {
              for (size_t task : {1, 3, 4, 5})
                f.graphs[0].tasks[task].deps = {};
            }),
            "");
}

TEST(Stages, ExtremesThatDoNotFitTogether) {
  GraphDesc g;
  g.dims.push_back({"a", 1, 64, 0, 0, std::nullopt});
  g.dims.push_back({"b", 1, 32, 1, 0, std::nullopt});
  g.dims.push_back({"c", 0, 0, -1, -1, Expr::binary(Op::Broadcast, dim("a"), dim("b"))});
  auto upper = extremeDims(g, true);
  ASSERT_TRUE(upper) << upper.error().message;
  EXPECT_EQ(upper->at("c"), 32);
  EXPECT_EQ(upper->at("a"), 32);
  g.constraints.push_back({Relation::Eq, dim("a"), 7, "only seven"});
  EXPECT_EQ(extremeDims(g, true).error().kind, ErrorKind::Constraint);
  EXPECT_TRUE(holds({Relation::Divides, 4, 12, ""}, {}));
  EXPECT_FALSE(holds({Relation::Divides, 5, 12, ""}, {}));
  EXPECT_FALSE(holds({Relation::Divides, 0, 0, ""}, {}));
  EXPECT_FALSE(holds({Relation::Le, 3, 2, ""}, {}));
}

TEST(Stages, DifferencesAreShown) {
  ScratchDir scratch;
  auto write = [&](const char *name, const std::function<void(GraphFile &)> &change) {
    writeSample(scratch.path(name), BundleFormat::Zip, [&](GraphFile &file, Manifest &m) {
      file = stagedFile();
      change(file);
      requireFeaturesOf(file, m);
    });
  };
  write("a", [](GraphFile &) {});
  write("b", [](GraphFile &f) {
    f.graphs[0].constraints[0].text = "other";
    f.graphs[0].dims[1].upper = 5;
    f.graphs[3].tasks[1].kernel = "append2";
  });
  auto a = Bundle::open(scratch.path("a")), b = Bundle::open(scratch.path("b"));
  ASSERT_TRUE(a && b);
  std::string text;
  for (const Difference &d : diff(*a, *b))
    text += d.what + " " + d.name + ": " + d.a + " / " + d.b + "\n";
  for (const char *part : {"no more than there are / other", "append / append2", "m / 5"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

} // namespace
} // namespace dmxc::bundle::test
