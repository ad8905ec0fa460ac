//===- InspectTest.cpp - dmx-inspect on the golden bundle -----------------===//
#include "BundleBuilder.h"
#include "InspectSupport.h"

namespace dmxc::tools::test {
namespace {

InspectOptions golden() {
  InspectOptions options;
  options.bundle = DMXC_GOLDEN_BUNDLE;
  return options;
}

TEST(Inspect, EveryViewAsText) {
  InspectOptions options = golden();
  expectParts(inspect(options), {"golden", "x86-64-v2", "batchx5", "sse4.2", "option numerics", "strict"});
  options.what = "tensors";
  expectParts(inspect(options), {"arena 0 @ 0", "buffer 2 @ 0", "weights/model.safetensors @ 4096", "batch*20"});
  options.what = "dims";
  expectParts(inspect(options), {"input 0, axis 0", "= batch*5", "64"});
  options.what = "tasks";
  expectParts(inspect(options), {"k0_affine", "Mul_0, Add_1", "copy z"});
  options.what = "memory";
  expectParts(inspect(options), {"1.25 KiB", "1.000", "first task"});
  options.what = "kernels";
  expectParts(inspect(options), {"kernels.so", "k0_affine"});
  options.what = "sizes";
  expectParts(inspect(options), {"manifest.json", "tests/in_x.npy", "F32"});
}

TEST(Inspect, EveryViewAsJson) {
  for (const std::string &view : inspectViews()) {
    InspectOptions options = golden();
    options.what = view;
    options.json = true;
    auto json = nlohmann::json::parse(inspect(options), nullptr, false);
    EXPECT_TRUE(json.is_object() && !json.empty()) << view;
  }
}

TEST(Inspect, StagesConstraintsAndOwnedGraphs) {
  dmxtest::ModelBuilder body;
  int i = body.input("i", "i64", dmxtest::Json::array()), go = body.output("go", "bool", dmxtest::Json::array());
  int out = body.output("out", "i64", dmxtest::Json::array());
  body.dispatch("is_true", {go}, 1, 1);
  body.copy(i, out, 8);
  dmxtest::ModelBuilder builder;
  builder.dim("m", 0, 9, 0, 0);
  builder.returnedDim("n", 0, 0, 0, "m");
  builder.constraint("le", "n", 5, "Slice of five");
  builder.input("x", "f32", {"m"});
  int start = builder.input("start", "i64", dmxtest::Json::array()), y = builder.output("y", "i64", {1});
  builder.loop("body", {start}, {}, {}, {{"scans", 0}});
  builder.copy(builder.result(0, 0, "i64", dmxtest::Json::array()), y, 8, {0});
  dmxtest::TestBundle model = builder.finish();
  model.graph["graphs"].push_back(body.graphNamed("body"));
  model.manifest["format"]["minor"] = 1;
  model.manifest["required"] = {"constraints", "control-flow", "returned-dims"};
  TestDir dir;
  InspectOptions options;
  options.bundle = dir.path("m.bundle");
  writeFile(options.bundle, model.zip());
  options.what = "dims";
  expectParts(inspect(options),
              {"task 0 (loop_0) returns 0", "Slice of five", "graphs in tasks", "body   main   loop_0  loop"});
  options.what = "tasks";
  expectParts(inspect(options), {"stage", "loop_0"});
  options.what.clear();
  options.check = true;
  expectParts(inspect(options), {"checked, no problems"});
}

TEST(Inspect, CheckAndVerify) {
  InspectOptions options = golden();
  options.check = true;
  expectParts(inspect(options), {"checked, no problems"});
  options.verify = options.json = true;
  EXPECT_EQ(nlohmann::json::parse(inspect(options))["ok"], true);
}

TEST(Inspect, DamageIsReported) {
  TestDir dir;
  std::string bytes = readFile(DMXC_GOLDEN_BUNDLE);
  auto bundle = bundle::Bundle::open(DMXC_GOLDEN_BUNDLE);
  ASSERT_TRUE(bundle);
  bytes[bundle->find("weights/model.safetensors")->offset + 4097] ^= 4;
  writeFile(dir.path("m"), bytes);
  InspectOptions options;
  options.bundle = dir.path("m");
  options.check = true;
  inspect(options); // structure is sound
  options.verify = true;
  ErrorKind kind = ErrorKind::Internal;
  // Both readers notice.
  expectParts(inspect(options, &kind), {"entry 'weights/model.safetensors': its sha256", "runtime: "});
  EXPECT_EQ(kind, ErrorKind::Mismatch);
  writeFile(dir.path("m"), bytes.substr(0, 1000));
  expectParts(inspect(options, &kind), {"not a bundle or is damaged"});
  EXPECT_EQ(kind, ErrorKind::Mismatch);
}

TEST(Inspect, DiffOfItselfIsEmpty) {
  InspectOptions options = golden();
  options.diffWith = DMXC_GOLDEN_BUNDLE;
  EXPECT_EQ(inspect(options), "no differences\n");
}

TEST(Inspect, HtmlIsSelfContained) {
  auto bundle = bundle::Bundle::open(DMXC_GOLDEN_BUNDLE);
  ASSERT_TRUE(bundle);
  auto made = inspectHtml(*bundle);
  ASSERT_TRUE(made);
  const std::string &page = *made;
  expectParts(page, {"<!DOCTYPE html>", "<svg", "<rect", "k0_affine", "</html>"});
  for (const char *outside : {"http://", "https://", "<script", "src="})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
}

} // namespace
} // namespace dmxc::tools::test
