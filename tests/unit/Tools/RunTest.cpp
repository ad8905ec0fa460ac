//===- RunTest.cpp - dmx-run on the golden bundle -------------------------===//
#include "dmxc/Tools/Run.h"
#include "BundleBuilder.h"
#include "TestDir.h"
#include "dmxc/Bundle/Reader.h"
#include "dmxc/Tools/TensorFile.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

namespace dmxc::tools::test {
namespace {

/// A golden bundle's sample tensors, unpacked.
class Run : public testing::Test {
protected:
  void SetUp() override { unpack(DMXC_GOLDEN_BUNDLE); }
  void unpack(const std::string &path) {
    options.bundle = path;
    options.session.threads = 2;
    auto bundle = bundle::Bundle::open(options.bundle);
    ASSERT_TRUE(bundle) << bundle.error().message;
    for (const bundle::BundleEntry &entry : bundle->entries())
      if (entry.name.starts_with("tests/"))
        writeFile(dir.path(entry.name.substr(6)), std::string(entry.text()));
  }
  Status run() { return runBundle(options, out); }

  TestDir dir;
  RunOptions options;
  std::ostringstream out;
};

TEST_F(Run, ComparesWithExpected) {
  options.inputsDir = options.expectDir = dir.path();
  Status done = run();
  EXPECT_TRUE(done) << done.error().message;
  EXPECT_EQ(out.str(), "y: ok, max abs 0, max rel 0\nz: ok, max abs 0, max rel 0\n"
                       "rule: |error| <= 0.002 |expected| + 0.0002 max |expected|; integers equal\nPASS\n");
}

/// Every released format, newest last.
class RunGolden : public Run, public testing::WithParamInterface<const char *> {
protected:
  void SetUp() override { unpack(std::string(DMXC_GOLDEN_DIR) + "/" + GetParam()); }
};

TEST_P(RunGolden, GivesWhatItWasReleasedWith) {
  options.inputsDir = options.expectDir = dir.path();
  options.tolerance = {0, 0};
  Status done = run();
  EXPECT_TRUE(done) << done.error().message << out.str();
  EXPECT_NE(out.str().find("y: ok"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("z: ok"), std::string::npos) << out.str();
}

INSTANTIATE_TEST_SUITE_P(Released, RunGolden,
                         testing::Values("format-1.0.bundle", "format-1.1.bundle", "format-1.2.bundle",
                                         "format-1.3.bundle", "format-1.4.bundle", "format-1.5.bundle"),
                         [](auto &info) { return std::string("format_1_") + info.param[9]; });

TEST_F(Run, AMismatchFails) {
  Tensor y = readNpy(dir.path("out_y.npy"))->reshaped({3, 5});
  Tensor changed(DType::F32, {3, 5});
  std::copy_n(y.as<float>(), 15, changed.as<float>());
  changed.as<float>()[7] += 1;
  ASSERT_TRUE(writeNpy(dir.path("changed.npy"), changed));
  std::filesystem::rename(dir.path("changed.npy"), dir.path("out_y.npy"));
  options.inputsDir = options.expectDir = dir.path();
  Status done = run();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::Mismatch);
  EXPECT_NE(out.str().find("first mismatch at [1, 2]"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("FAIL"), std::string::npos);
}

TEST_F(Run, WritesOutputs) {
  options.inputs = {{"x", dir.path("in_x.npy")}};
  options.outputs = {{"y", dir.path("y.npy")}};
  options.outputDir = dir.path("made/here");
  Status done = run();
  ASSERT_TRUE(done) << done.error().message;
  auto y = readNpy(dir.path("y.npy"));
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_TRUE(compareTensors(*y, *readNpy(dir.path("out_y.npy")), {0, 0}).pass);
  EXPECT_TRUE(compareTensors(*readNpy(dir.path("made/here/out_z.npy")), *readNpy(dir.path("out_z.npy")), {0, 0}).pass);
}

/// An output whose shape only the run tells: the positions of x's elements that are not 0.
TEST_F(Run, OutputsOfUnknownShape) {
  dmxtest::ModelBuilder builder;
  builder.dim("m", 0, 100, 0, 0);
  builder.returnedDim("n", 0, 0, 0, "m");
  dmxtest::Json bytes = {"mul", "n", 8};
  int x = builder.input("x", "f32", {"m"}), room = builder.arenaOf({"mul", "m", 8}, "i64", {"m"});
  int part = builder.alias(room, 0, bytes, "i64", {"n"}), y = builder.output("y", "i64", {"n"});
  builder.dispatch("nonzero", {x, room}, 1, 1, {}, {{"dims", {"m"}}, {"results", 1}});
  builder.copy(part, y, bytes, {0});
  options.bundle = dir.path("late.bundle");
  writeFile(options.bundle, builder.finish().zip());
  std::filesystem::remove(dir.path("out_y.npy"));
  std::filesystem::remove(dir.path("out_z.npy"));
  Tensor in(DType::F32, {5}), expected(DType::I64, {2});
  in.as<float>()[1] = in.as<float>()[4] = 3;
  expected.as<int64_t>()[0] = 1;
  expected.as<int64_t>()[1] = 4;
  ASSERT_TRUE(writeNpy(dir.path("x.npy"), in) && writeNpy(dir.path("out_y.npy"), expected));
  options.inputs = {{"x", dir.path("x.npy")}};
  options.outputs = {{"y", dir.path("given.npy")}};
  options.expectDir = dir.path();
  Status done = run();
  ASSERT_TRUE(done) << done.error().message << out.str();
  EXPECT_EQ(readNpy(dir.path("given.npy"))->shape(), (Shape{2}));
  expected.as<int64_t>()[1] = 3;
  std::filesystem::remove(dir.path("out_y.npy"));
  ASSERT_TRUE(writeNpy(dir.path("out_y.npy"), expected));
  EXPECT_FALSE(run());
}

TEST_F(Run, MissingAndUnknownTensorsAreNamed) {
  Status done = run();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::Usage);
  EXPECT_NE(done.error().message.find("'x' (f32 batchx5)"), std::string::npos) << done.error().message;
  options.inputs = {{"xx", dir.path("in_x.npy")}};
  done = run();
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("did you mean 'x'"), std::string::npos) << done.error().message;
  options.inputs = {{"x", dir.path("in_x.npy")}};
  options.outputs = {{"q", "q.npy"}};
  done = run();
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("no output 'q'"), std::string::npos) << done.error().message;
}

TEST_F(Run, WrongShapesAndTypesAreRefused) {
  ASSERT_TRUE(writeNpy(dir.path("bad.npy"), Tensor(DType::F32, {3, 4})));
  options.inputs = {{"x", dir.path("bad.npy")}};
  EXPECT_FALSE(run());
  ASSERT_TRUE(writeNpy(dir.path("type.npy"), Tensor(DType::F64, {3, 5})));
  options.inputs = {{"x", dir.path("type.npy")}};
  Status done = run();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::Usage);
  ASSERT_TRUE(writeNpy(dir.path("large.npy"), Tensor(DType::F32, {65, 5})));
  options.inputs = {{"x", dir.path("large.npy")}};
  EXPECT_FALSE(run());
}

TEST_F(Run, RandomInputsTakeDims) {
  options.randomSeed = 5;
  options.dims = {{"batch", 4}};
  options.outputDir = dir.path("out");
  Status done = run();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(readNpy(dir.path("out/out_y.npy"))->shape(), (Shape{4, 5}));
  options.dims = {{"bach", 4}};
  done = run();
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().message.find("did you mean 'batch'"), std::string::npos);
}

TEST_F(Run, BenchmarkProfileAndJson) {
  options.benchmark = options.perTask = true;
  options.iters = 20;
  options.jsonFile = dir.path("b.json");
  options.profileFile = dir.path("t.json");
  Status done = run();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_NE(out.str().find("20 runs"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("affine [k0_affine]"), std::string::npos);
  auto report = nlohmann::json::parse(readFile(dir.path("b.json")));
  EXPECT_EQ(report["iters"], 20);
  EXPECT_EQ(report["threads"], 2);
  for (const char *key : {"min", "median", "mean", "p90", "p99"})
    EXPECT_GT(report["latency"][key].get<double>(), 0) << key;
  for (const char *key : {"load_ms", "session_ms", "peak_rss_mb", "arena_bytes"})
    EXPECT_GT(report[key].get<double>(), 0) << key;
  ASSERT_EQ(report["tasks"].size(), 3u);
  EXPECT_EQ(report["tasks"][0]["calls"], 10);
  auto trace = nlohmann::json::parse(readFile(dir.path("t.json")));
  size_t slices = 0;
  for (auto &event : trace["traceEvents"])
    if (event["ph"] == "X") {
      ++slices;
      EXPECT_GE(event["dur"].get<double>(), 0);
      EXPECT_GE(event["ts"].get<double>(), 0);
    }
  EXPECT_GE(slices, 30u);
}

TEST_F(Run, BadBundlesHaveTheirExitCodes) {
  options.bundle = dir.path("missing");
  Status done = run();
  ASSERT_FALSE(done);
  EXPECT_EQ(exitCodeOf(done.error().kind), 3);
  writeFile(dir.path("text"), "this is no bundle");
  options.bundle = dir.path("text");
  done = run();
  ASSERT_FALSE(done);
  EXPECT_EQ(exitCodeOf(done.error().kind), 1);
}

} // namespace
} // namespace dmxc::tools::test
