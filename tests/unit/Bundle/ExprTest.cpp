//===- ExprTest.cpp - expressions and their JSON --------------------------===//
#include "SampleBundle.h"

namespace dmxc::bundle::test {
namespace {

using Op = Expr::Op;

TEST(Expr, RoundsAsItsNameSays) {
  EXPECT_EQ(applyExprOp(Op::FloorDiv, -7, 2), -4);
  EXPECT_EQ(applyExprOp(Op::FloorDiv, 7, -2), -4);
  EXPECT_EQ(applyExprOp(Op::FloorDiv, 7, 2), 3);
  EXPECT_EQ(applyExprOp(Op::CeilDiv, 7, 2), 4);
  EXPECT_EQ(applyExprOp(Op::CeilDiv, -7, 2), -3);
  EXPECT_EQ(applyExprOp(Op::CeilDiv, 8, 2), 4);
  EXPECT_EQ(applyExprOp(Op::Mod, -7, 3), 2);
  EXPECT_EQ(applyExprOp(Op::Mod, 7, -3), -2);
  EXPECT_EQ(applyExprOp(Op::Mod, 6, 3), 0);
}

TEST(Expr, Broadcasts) {
  EXPECT_EQ(applyExprOp(Op::Broadcast, 3, 3), 3);
  EXPECT_EQ(applyExprOp(Op::Broadcast, 1, 3), 3);
  EXPECT_EQ(applyExprOp(Op::Broadcast, 3, 1), 3);
  EXPECT_EQ(applyExprOp(Op::Broadcast, 0, 1), 0);
  EXPECT_EQ(applyExprOp(Op::Broadcast, 3, 4), std::nullopt);
  EXPECT_EQ(applyExprOp(Op::Broadcast, 0, 3), std::nullopt);
  Expr e = Expr::binary(Op::Broadcast, Expr::dim("n"), 4);
  EXPECT_EQ(e.str(), "broadcast(n,4)");
  auto value = e.evaluate({{"n", 3}});
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().message, "cannot broadcast 3 and 4");
  EXPECT_EQ(value.error().kind, ErrorKind::Constraint) << "not a mistake of the bundle's";
}

TEST(Expr, RefusesOverflowAndZero) {
  EXPECT_EQ(applyExprOp(Op::Add, INT64_MAX, 1), std::nullopt);
  EXPECT_EQ(applyExprOp(Op::Sub, INT64_MIN, 1), std::nullopt);
  EXPECT_EQ(applyExprOp(Op::Mul, INT64_MAX, 2), std::nullopt);
  for (Op op : {Op::FloorDiv, Op::CeilDiv, Op::Mod}) {
    EXPECT_EQ(applyExprOp(op, 1, 0), std::nullopt);
    EXPECT_EQ(applyExprOp(op, INT64_MIN, -1), std::nullopt);
  }
  Expr big = Expr::binary(Op::Mul, Expr::dim("n"), INT64_MAX);
  auto value = big.evaluate({{"n", 2}});
  ASSERT_FALSE(value);
  EXPECT_NE(value.error().message.find("overflows"), std::string::npos);
  EXPECT_FALSE(Expr::dim("m").evaluate({{"n", 2}}));
}

TEST(Expr, EvaluatesAndPrints) {
  Expr e = Expr::binary(Op::CeilDiv, Expr::binary(Op::Add, Expr::dim("n"), 3), 4);
  EXPECT_EQ(e.str(), "ceildiv(n+3,4)");
  auto value = e.evaluate({{"n", 6}});
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, 3);
  EXPECT_EQ(Expr::binary(Op::Mul, 6, 7), Expr(42));
  EXPECT_EQ(denseBytes(DType::F32, {2, Expr::dim("n"), 3}).str(), "n*24");
  EXPECT_EQ(denseBytes(DType::I4, {3}).constant(), 2);
}

std::string graphWithSize(const std::string &size) {
  return R"({"graphs":[{"name":"main","buffers":[],"queues":[],"tasks":[],"arenas":[{"size":)" + size + "}]}]}";
}

TEST(GraphJson, ErrorsNameThePlace) {
  auto messageOf = [](const std::string &size) {
    auto graph = parseGraph(graphWithSize(size));
    return graph ? std::string("accepted") : graph.error().message;
  };
  EXPECT_EQ(messageOf("[\"add\",1,\"n\"]"), "accepted");
  EXPECT_EQ(messageOf("1.5"), "graph.json: graphs[0].arenas[0].size: expected "
                              "an integer, got a fraction");
  EXPECT_NE(messageOf("9223372036854775808").find("does not fit"), std::string::npos);
  EXPECT_NE(messageOf("[\"pow\",1,2]").find("unknown operation 'pow'"), std::string::npos);
  EXPECT_NE(messageOf("[\"add\",1]").find("expected an expression"), std::string::npos);
  EXPECT_NE(messageOf("{}").find("got an object"), std::string::npos);
  std::string deep = "1"; // FORMAT.md: at most 48 operations
  for (int i = 0; i < 48; ++i)
    deep = "[\"add\",\"n\"," + deep + "]";
  EXPECT_EQ(messageOf(deep), "accepted");
  deep = "[\"add\",\"n\"," + deep + "]";
  EXPECT_NE(messageOf(deep).find("nested deeper"), std::string::npos);
}

TEST(GraphJson, MissingAndUnknownFields) {
  auto messageOf = [](const std::string &text) {
    auto graph = parseGraph(text);
    return graph ? std::string("accepted") : graph.error().message;
  };
  EXPECT_EQ(messageOf("{}"), "graph.json: field 'graphs' is missing");
  EXPECT_EQ(messageOf("[]"), "graph.json: expected an object, got an array");
  EXPECT_EQ(messageOf("{\"graphs\": 1}"), "graph.json: graphs: expected an array, got an integer");
  EXPECT_EQ(messageOf("{"), "graph.json: not valid JSON");
  EXPECT_EQ(messageOf("{\"graphs\": [], \"later\": 1}"), "accepted");
  std::string prefix = R"({"graphs":[{"name":"g","arenas":[],"buffers":[],"queues":[],"tasks":[)";
  EXPECT_NE(
      messageOf(prefix + R"({"kind":"call","queue":0,"name":"","deps":[]}]}]})").find("unknown kind of task 'call'"),
      std::string::npos);
}

TEST(ManifestJson, WordsOfTheModelAreKept) {
  Manifest manifest = sampleManifest();
  manifest.modelMetadata = {{"names", "{0: 'cat', 1: 'd\u00f6g'}"}, {"author", "a \"test\"\n"}};
  requireFeaturesOf(GraphFile(), manifest);
  EXPECT_EQ(manifest.minor, 0);
  manifest.entryPoints[0].inputs[0].description = "RGB, 0 to 1";
  requireFeaturesOf(GraphFile(), manifest);
  EXPECT_EQ(manifest.minor, 3);
  auto read = parseManifest(toJson(manifest));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->modelMetadata, manifest.modelMetadata);
  EXPECT_EQ(read->entryPoints[0].inputs[0].description, "RGB, 0 to 1");
  EXPECT_EQ(read->entryPoints[0].outputs[0].description, "");
}

TEST(ManifestJson, VersionRule) {
  std::string text = toJson(sampleManifest());
  auto withFormat = [&](const std::string &format) {
    std::string changed = text;
    changed.replace(changed.find("{\"major\":1,\"minor\":0}"), 21, format);
    auto manifest = parseManifest(changed);
    return manifest ? std::string("accepted") : manifest.error().message;
  };
  EXPECT_EQ(withFormat("{\"major\":1,\"minor\":0}"), "accepted");
  std::string newer = withFormat("{\"major\":2,\"minor\":0}");
  std::string producer = std::string("dmxc ") + versionOfThisBuild();
  for (const std::string &part :
       {std::string("format 2.0"), producer, std::string("up to 1.6"), std::string("newer version")})
    EXPECT_NE(newer.find(part), std::string::npos) << newer;
  EXPECT_EQ(withFormat("{\"major\":1,\"minor\":1}"), "accepted");
  EXPECT_NE(withFormat("{\"major\":1,\"minor\":7}").find("format 1.7"), std::string::npos);
  EXPECT_NE(withFormat("{\"major\":0,\"minor\":9}").find("Compile the model again"), std::string::npos);
  EXPECT_NE(withFormat("{}").find("field 'major' is missing"), std::string::npos);
}

TEST(ManifestJson, RoundTrips) {
  Manifest m = sampleManifest();
  m.required = {"control-flow"};
  m.entries.push_back({"graph.json", 12, std::string(64, '0')});
  std::string text = toJson(m);
  auto again = parseManifest(text);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(toJson(*again), text);
  EXPECT_EQ(again->options, m.options);
}

} // namespace
} // namespace dmxc::bundle::test
