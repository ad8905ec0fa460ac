//===- GoldenTest.cpp - bundles of every released format ------------------===//
#include "SampleBundle.h"
#include "dmxc/Bundle/Validate.h"

namespace dmxc::bundle::test {
namespace {

// What today's reader must find in each; never shorten this list.
const char *const released[] = {"format-1.0.bundle"};

class Golden : public testing::TestWithParam<const char *> {};

TEST_P(Golden, StillOpens) {
  std::string path = std::string(DMXC_GOLDEN_DIR) + "/" + GetParam();
  auto bundle = Bundle::open(path);
  ASSERT_TRUE(bundle) << bundle.error().message;
  for (const Problem &problem : validate(*bundle, CheckLevel::Everything))
    ADD_FAILURE() << problem.where << ": " << problem.message;
  const GraphDesc *graph = bundle->graphs().find("main");
  ASSERT_TRUE(graph);
  ASSERT_EQ(graph->tasks.size(), 3u);
  EXPECT_EQ(graph->tasks[0].kernel, "k0_affine");
  EXPECT_EQ(graph->tasks[0].nodes, (std::vector<std::string>{"Mul_0", "Add_1"}));
  EXPECT_EQ(bundle->manifest().entryPoints.at(0).inputs.at(0).shape.at(0).str(), "batch");
  auto dims = graph->evaluateDims({{"batch", 3}});
  ASSERT_TRUE(dims);
  EXPECT_EQ(dims->at("flat"), 15);
  auto weights = readWeights(bundle->find("weights/model.safetensors")->bytes);
  ASSERT_TRUE(weights);
  EXPECT_EQ(weights->at(0).name, "w");
}

INSTANTIATE_TEST_SUITE_P(Released, Golden, testing::ValuesIn(released), [](auto &info) {
  std::string name = info.param;
  for (char &c : name)
    c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

} // namespace
} // namespace dmxc::bundle::test
