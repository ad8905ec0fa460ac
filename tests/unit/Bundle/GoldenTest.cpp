//===- GoldenTest.cpp - bundles of every released format ------------------===//
#include "SampleBundle.h"
#include "dmxc/Bundle/Validate.h"

namespace dmxc::bundle::test {
namespace {

// What today's reader must find in each; never shorten this list.
struct Released {
  const char *file;
  int64_t minor;
  std::vector<TaskKind> tasks; ///< of the graph "main"
  std::vector<std::string> nodes, required;
  std::string firstDim, computedDim;
  int64_t computed; ///< for inputs with three rows
};

const Released released[] = {
    {"format-1.0.bundle",
     0,
     {TaskKind::Dispatch, TaskKind::Copy, TaskKind::Copy},
     {"Mul_0", "Add_1"},
     {},
     "batch",
     "flat",
     15},
    {"format-1.1.bundle",
     1,
     {TaskKind::Dispatch, TaskKind::If, TaskKind::Loop, TaskKind::Copy, TaskKind::Copy},
     {"Add_0"},
     {"broadcast", "constraints", "control-flow", "returned-dims"},
     "batch",
     "both",
     3},
    {"format-1.2.bundle",
     2,
     {TaskKind::Dispatch, TaskKind::If, TaskKind::Loop, TaskKind::Copy, TaskKind::Copy},
     {"Add_0"},
     {"broadcast", "common-code", "constraints", "control-flow", "returned-dims"},
     "batch",
     "both",
     3},
    {"format-1.3.bundle",
     3,
     {TaskKind::Dispatch, TaskKind::If, TaskKind::Loop, TaskKind::Copy, TaskKind::Copy},
     {"Add_0"},
     {"broadcast", "common-code", "constraints", "control-flow", "returned-dims"},
     "batch",
     "both",
     3},
    {"format-1.4.bundle",
     4,
     {TaskKind::Dispatch, TaskKind::If, TaskKind::Loop, TaskKind::Copy, TaskKind::Copy},
     {"Add_0"},
     {"broadcast", "common-code", "constraints", "control-flow", "returned-dims", "state-lengths"},
     "batch",
     "both",
     3},
    {"format-1.5.bundle",
     5,
     {TaskKind::Dispatch, TaskKind::If, TaskKind::Loop, TaskKind::Copy, TaskKind::Copy, TaskKind::Copy},
     {"Add_0"},
     {"broadcast", "caller-caches", "common-code", "constraints", "control-flow", "returned-dims", "state-lengths"},
     "batch",
     "both",
     3},
    {"format-1.6.bundle",
     6,
     {TaskKind::Dispatch, TaskKind::If, TaskKind::Loop, TaskKind::Copy, TaskKind::Copy, TaskKind::Copy},
     {"Add_0"},
     {"broadcast", "caller-caches", "common-code", "constraints", "control-flow", "returned-dims", "state-lengths"},
     "batch",
     "both",
     3}};

class Golden : public testing::TestWithParam<Released> {};

TEST_P(Golden, StillOpens) {
  const Released &wanted = GetParam();
  auto bundle = Bundle::open(std::string(DMXC_GOLDEN_DIR) + "/" + wanted.file);
  ASSERT_TRUE(bundle) << bundle.error().message;
  for (const Problem &problem : validate(*bundle, CheckLevel::Everything))
    ADD_FAILURE() << problem.where << ": " << problem.message;
  EXPECT_EQ(bundle->manifest().minor, wanted.minor);
  EXPECT_EQ(bundle->manifest().required, wanted.required);
  const GraphDesc *graph = bundle->graphs().find("main");
  ASSERT_TRUE(graph);
  std::vector<TaskKind> kinds;
  for (const TaskDesc &task : graph->tasks)
    kinds.push_back(task.kind);
  EXPECT_EQ(kinds, wanted.tasks);
  EXPECT_EQ(graph->tasks[0].kernel, "k0_affine");
  EXPECT_EQ(graph->tasks[0].nodes, wanted.nodes);
  EXPECT_EQ(bundle->manifest().entryPoints.at(0).inputs.at(0).shape.at(0).str(), wanted.firstDim);
  auto weights = readWeights(bundle->find("weights/model.safetensors")->bytes);
  ASSERT_TRUE(weights);
  EXPECT_EQ(weights->at(0).name, "w");
  // What tasks return is not known before the run; here it is 0.
  DimValues known;
  for (const DimDesc &dim : graph->dims)
    if (!dim.expr)
      known[dim.name] = dim.input >= 0 ? 3 : 0;
  auto dims = graph->evaluateDims(known);
  ASSERT_TRUE(dims);
  EXPECT_EQ(dims->at(wanted.computedDim), wanted.computed);
}

INSTANTIATE_TEST_SUITE_P(Released, Golden, testing::ValuesIn(released), [](auto &info) {
  std::string name = info.param.file;
  for (char &c : name)
    c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

} // namespace
} // namespace dmxc::bundle::test
