//===- MixedBundle.cpp - a graph for the host and a card ------------------===//

#include "MixedBundle.h"

#include "schemas/corsair/text/Assembler.h"

namespace dmxtest {
namespace {

namespace isa = dmx::corsair;

/// DDR: 0x0 x, 0x1000 total, 0x2000 w, 0x3000 seen of `collect`; 0x4000 data, 0x5000 at, 0x6000 p of `pick`.
constexpr const char *kKernels = R"(
.stream double
  CONFIG_GM slot=0 kind=f32 unit=64
  MOVE_DDR2GM slot=0 saddr=0x2000 daddr=0x5000
  CONFIG_SIMD slot=0 dk=f32 ak=f32 bk=f32 n3=64 d3=4 a3=4 b3=4 split=4
  EXEC_SIMD fn=add slot=0 a=0x5000 b=0x5000 d=0x6000
  MOVE_GM2DDR slot=0 saddr=0x6000 daddr=0x2000
  HALT
.stream collect
  CONFIG_GM slot=0 kind=f32 unit=64
  MOVE_DDR2GM slot=0 saddr=0x0 daddr=0x0
  MOVE_DDR2GM slot=0 saddr=0x1000 daddr=0x1000
  MOVE_DDR2GM slot=0 saddr=0x2000 daddr=0x2000
  CONFIG_SIMD slot=0 dk=f32 ak=f32 bk=f32 n3=64 d3=4 a3=4 b3=4 split=4
  EXEC_SIMD fn=add slot=0 a=0x0 b=0x1000 d=0x3000
  EXEC_SIMD fn=add slot=0 a=0x3000 b=0x2000 d=0x4000
  MOVE_GM2DDR slot=0 saddr=0x3000 daddr=0x1000
  MOVE_GM2DDR slot=0 saddr=0x4000 daddr=0x3000
  HALT
.stream pick
  CONFIG_GM slot=0 kind=f32 unit=64
  MOVE_DDR2GM slot=0 saddr=0x4000 daddr=0x0
  CONFIG_GM slot=0 kind=i64 unit=4
  MOVE_DDR2GM slot=0 saddr=0x5000 daddr=0x4000
  CONFIG_GM slot=1 kind=f32 n0=4 s0=4 t0=4 ikind=i64 ipitch=8 irange=64
  EXTRACT rule=gather slot=1 saddr=0x0 daddr=0x8000 iaddr=0x4000
  CONFIG_GM slot=0 kind=f32 unit=4
  MOVE_GM2DDR slot=0 saddr=0x8000 daddr=0x6000
  HALT
.kernel collect
  .footprint DDR=0x10000 GM=0x10000
  .argument x input f32 shape=[64] form=f32
    .piece DDR unit=0 addr=0x0 begin=[0] extent=[64] strides=[4]
  .argument w const u8 shape=[256] form=f32
    .piece DDR unit=0 addr=0x2000 begin=[0] extent=[256]
  .argument total state f32 shape=[64] form=f32
    .piece DDR unit=0 addr=0x1000 begin=[0] extent=[64] strides=[4]
  .argument seen output f32 shape=[64] form=f32
    .piece DDR unit=0 addr=0x3000 begin=[0] extent=[64] strides=[4]
  .init
    .launch quad=0 q0=double
  .main
    .launch quad=0 q0=collect
.kernel pick
  .footprint DDR=0x10000 GM=0x10000
  .argument data input f32 shape=[64] form=f32
    .piece DDR unit=0 addr=0x4000 begin=[0] extent=[64] strides=[4]
  .argument at input i64 shape=[4] form=i64
    .piece DDR unit=0 addr=0x5000 begin=[0] extent=[4] strides=[8]
  .argument p output f32 shape=[4] form=f32
    .piece DDR unit=0 addr=0x6000 begin=[0] extent=[4] strides=[4]
  .main
    .launch quad=0 q0=pick
)";

std::string imageOf(const char *text) {
  std::string error;
  auto image = isa::assemble(text, isa::builtinMachine(), error);
  EXPECT_TRUE(image) << error;
  std::vector<uint8_t> bytes = image ? isa::write(*image) : std::vector<uint8_t>();
  return {bytes.begin(), bytes.end()};
}

float weight(size_t i) { return static_cast<float>(i % 5); }

std::string weights() {
  std::vector<float> values(64);
  for (size_t i = 0; i < 64; ++i)
    values[i] = weight(i);
  return {reinterpret_cast<const char *>(values.data()), 256};
}

const Json kCardQueue = {{"name", "card"}, {"target", "corsair"}};

void addCardCode(TestBundle &bundle) {
  bundle.manifest["targets"].push_back({{"target", "corsair"},
                                        {"arch", "corsair-like"},
                                        {"entry", "code/corsair/corsair-like/kernels.dmxisa"},
                                        {"features", Json::array()}});
  bundle.files["code/corsair/corsair-like/kernels.dmxisa"] = imageOf(kKernels);
}

} // namespace

TestBundle mixedBundle() {
  ModelBuilder builder;
  int x = builder.input("x", "f32", {64}), index = builder.input("index", "i64", {64});
  int at = builder.input("at", "i64", {4}), u = builder.input("u", "f32", {"n"});
  builder.dim("n", 1, 1000, 3, 0);
  int y = builder.output("y", "f32", {64}), p = builder.output("p", "f32", {4}), v = builder.output("v", "f32", {"n"});
  int w = builder.constant(weights(), "f32", {64});
  int total = builder.state(256, "f32", {64});
  int doubled = builder.arena(256, "f32", {64}), seen = builder.arena(256, "f32", {64});
  int moved = builder.arena(256, "f32", {64}), both = builder.arena(256, "f32", {64});
  int result = builder.arena(256, "f32", {64});
  const Json card = {{"queue", 1}};
  int scale = builder.dispatch("scale", {x, doubled}, 1, 64, {}, {{"dims", {2}}});
  int first = builder.dispatch("collect", {doubled, w, total, seen}, 2, 1, {scale}, card);
  int gather = builder.dispatch("gather", {seen, index, moved}, 1, 64, {first}, {{"dims", {64}}});
  int add = builder.dispatch("add", {moved, x, both}, 1, 64, {gather, scale});
  int second = builder.dispatch("collect", {both, w, total, result}, 2, 1, {add, first}, card);
  builder.copy(result, y, 256, {second}, card);
  builder.dispatch("pick", {result, at, p}, 1, 1, {second}, card);
  builder.dispatch("scale", {u, v}, 1, "n", {}, {{"dims", {3}}});
  TestBundle bundle = builder.finish();
  bundle.graph["graphs"][0]["queues"].push_back(kCardQueue);
  addCardCode(bundle);
  return bundle;
}

TestBundle branchedBundle() {
  const Json card = {{"queue", 1}};
  auto branch = [](const char *name, const char *kernel, int64_t items, int64_t dim) {
    ModelBuilder builder;
    int seen = builder.input("seen", "f32", {64}), at = builder.input("at", "i64", {4});
    int r = builder.output("r", "f32", {items});
    builder.dispatch(kernel, items == 4 ? std::vector<int>{seen, at, r} : std::vector<int>{seen, r}, 1, items, {},
                     {{"dims", {dim}}});
    return builder.graphNamed(name);
  };
  ModelBuilder builder;
  builder.extentDim("k", 2, 0, 0, 0, 64);
  int x = builder.input("x", "f32", {64}), at = builder.input("at", "i64", {4});
  int c = builder.input("c", "bool", Json::array());
  int v = builder.output("v", "f32", {"k"}), p = builder.output("p", "f32", {4});
  int w = builder.constant(weights(), "f32", {64}), total = builder.state(256, "f32", {64});
  int doubled = builder.arena(256, "f32", {64}), seen = builder.arena(256, "f32", {64});
  int r = builder.result(2, 0, "f32", {"k"});
  builder.dispatch("scale", {x, doubled}, 1, 64, {}, {{"dims", {2}}});
  builder.dispatch("collect", {doubled, w, total, seen}, 2, 1, {0}, card);
  builder.branch(c, "then", "else", {seen, at}, 1, {1});
  builder.dispatch("scale", {r, v}, 1, "k", {2}, {{"dims", {3}}});
  builder.dispatch("pick", {seen, at, p}, 1, 1, {1}, card);
  TestBundle bundle = builder.finish();
  bundle.graph["graphs"][0]["queues"].push_back(kCardQueue);
  bundle.graph["graphs"].push_back(branch("then", "gather", 4, 64));
  bundle.graph["graphs"].push_back(branch("else", "scale", 64, 2));
  addCardCode(bundle);
  return bundle;
}

void MixedModel::run(int end) {
  std::vector<float> seen(64), both(64);
  for (size_t i = 0; i < 64 && end > 1; ++i)
    seen[i] = (total[i] += 2 * x[i]) + 2 * weight(i);
  if (end <= 4)
    return;
  for (size_t i = 0; i < 64; ++i)
    both[i] = seen[static_cast<size_t>(index[i])] + x[i];
  for (size_t i = 0; i < 64; ++i)
    y[i] = (total[i] += both[i]) + 2 * weight(i);
  for (size_t i = 0; i < 4 && end > 6; ++i)
    p[i] = y[static_cast<size_t>(at[i])];
}

MixedSession::MixedSession(const dmx_bundle *bundle, uint32_t threads, dmx_session_options options, int64_t n)
    : session(makeSession(bundle, threads, options)) {
  if (!session)
    return;
  std::reverse(model.index.begin(), model.index.end());
  EXPECT_EQ(bindVector(session.get(), DMX_INPUT, 0, model.x, {64}), DMX_OK);
  EXPECT_EQ(bindVector(session.get(), DMX_INPUT, 1, model.index, {64}), DMX_OK);
  EXPECT_EQ(bindVector(session.get(), DMX_INPUT, 2, model.at, {4}), DMX_OK);
  EXPECT_EQ(bindVector(session.get(), DMX_OUTPUT, 0, y, {64}), DMX_OK);
  EXPECT_EQ(bindVector(session.get(), DMX_OUTPUT, 1, p, {4}), DMX_OK);
  bindExtent(n);
}

void MixedSession::bindExtent(int64_t n) {
  u = iota<float>(static_cast<size_t>(n), 7);
  v.assign(u.size(), 0);
  EXPECT_EQ(bindVector(session.get(), DMX_INPUT, 3, u, {n}), DMX_OK);
  EXPECT_EQ(bindVector(session.get(), DMX_OUTPUT, 2, v, {n}), DMX_OK);
}

void MixedSession::expectResults() const {
  EXPECT_EQ(y, model.y);
  EXPECT_EQ(p, model.p);
  for (size_t i = 0; i < v.size(); ++i)
    ASSERT_EQ(v[i], 3 * u[i]) << i;
}

void MixedSession::runAndCompare() {
  std::fill(y.begin(), y.end(), -1.0f);
  std::fill(v.begin(), v.end(), -1.0f);
  dmx_error error = DMX_ERROR_INIT;
  ASSERT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
  model.run();
  expectResults();
}

std::string MixedSession::runAndFail(int task) {
  dmx_error error = DMX_ERROR_INIT;
  EXPECT_EQ(dmx_session_run(session.get(), &error), DMX_STATUS_KERNEL);
  model.run(task);
  return error.message;
}

} // namespace dmxtest
