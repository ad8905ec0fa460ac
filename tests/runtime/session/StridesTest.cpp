//===- StridesTest.cpp - tensors with strides, and caches bound twice -----===//

#include "../RuntimeTest.h"

using namespace dmxtest;

namespace {

/// f32 present[2, p + n, 2] = past[2, p, 2] and rows[2, n, 2] behind it, in memory with room for more.
TestBundle cacheModel() {
  ModelBuilder builder;
  builder.dim("p", 0, 100, 0, 1);
  builder.dim("n", 1, 100, 1, 1);
  Json all = {"add", "n", "p"};
  builder.computedDim("all", all);
  builder.input("past", "f32", {2, "p", 2});
  int rows = builder.input("rows", "f32", {2, "n", 2}), present = builder.output("present", "f32", {2, all, 2});
  builder.dispatch("put_rows", {present, rows, present}, 1, 2, {}, {{"dims", {"p", "n", "all"}}});
  TestBundle model = builder.finish();
  Json &graph = model.graph["graphs"][0];
  graph["dims"][2] = {{"name", "all"}, {"room", all}};
  for (Json &buffer : graph["buffers"])
    if (buffer["kind"] == "output")
      buffer["room"] = "all", buffer["axis"] = 1, buffer["past"] = 0;
  model.manifest["format"]["minor"] = 5;
  model.manifest["required"] = {"caller-caches"};
  return model;
}

struct Strided : testing::Test {
  dmx_error error = DMX_ERROR_INIT;

  dmx_status bind(dmx_session *session, dmx_io io, uint32_t index, float *data, std::vector<int64_t> dims,
                  std::vector<int64_t> strides) {
    dmx_tensor_view view{DMX_DTYPE_F32, static_cast<uint32_t>(dims.size()), dims.data(), data};
    return dmx_session_bind_strided(session, io, index, &view, strides.data(), &error);
  }
  uint64_t copiedBytes(dmx_session *session) {
    dmx_session_info info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(dmx_session_get_info(session, &info, &error), DMX_OK) << error.message;
    return info.copied_bytes;
  }
  void expectRefused(dmx_status status, const std::string &part) {
    EXPECT_EQ(status, DMX_STATUS_INVALID_ARGUMENT);
    EXPECT_NE(std::string(error.message).find(part), std::string::npos)
        << "message: " << error.message << "\nexpected part: " << part;
  }
};

TEST_F(Strided, AnyTensor) {
  OpenBundle open(batchModel());
  SessionPtr session = makeSession(open.get());
  std::vector<float> x = iota<float>(64), y(64, -1);
  // Columns of an array of 8 rows, and every other column of another.
  ASSERT_EQ(bind(session.get(), DMX_INPUT, 0, x.data(), {3, 4}, {1, 8}), DMX_OK) << error.message;
  ASSERT_EQ(bind(session.get(), DMX_OUTPUT, 0, y.data(), {3, 4}, {10, 2}), DMX_OK) << error.message;
  for (float add : {0.0f, 100.0f}) { // the second run reads x anew
    for (float &value : x)
      value += add;
    ASSERT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
    for (size_t i = 0; i < 64; ++i) {
      size_t row = i / 10, column = i % 10;
      bool written = row < 3 && column % 2 == 0 && column < 8;
      EXPECT_EQ(y[i], written ? (x[row + 8 * (column / 2)] + 1) * 3 : -1) << i;
    }
    EXPECT_EQ(copiedBytes(session.get()), 2 * 12 * sizeof(float));
  }
  // Strides of a dense tensor are no others.
  ASSERT_EQ(bind(session.get(), DMX_INPUT, 0, x.data(), {1, 4}, {77, 1}), DMX_OK) << error.message;
  ASSERT_EQ(bind(session.get(), DMX_OUTPUT, 0, y.data(), {1, 4}, {0, 1}), DMX_OK) << error.message;
  ASSERT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
  EXPECT_EQ(y[3], x[3] + 1);
  EXPECT_EQ(copiedBytes(session.get()), 0u);
  dmx_tensor_view view{};
  expectRefused(dmx_session_output(session.get(), 0, &view, &error), "output 'y' is bound with strides");
  std::vector<float> dense(4);
  ASSERT_EQ(bindVector(session.get(), DMX_OUTPUT, 0, dense, {1, 4}, &error), DMX_OK) << error.message;
  ASSERT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
  EXPECT_EQ(dmx_session_output(session.get(), 0, &view, &error), DMX_OK) << error.message;
  EXPECT_EQ(dense, std::vector<float>(y.begin(), y.begin() + 4));
}

/// Value of (head, row, column).
float valueOf(int64_t head, int64_t row, int64_t column) { return static_cast<float>(head * 1000 + row * 10 + column); }

TEST_F(Strided, CacheInOneBuffer) {
  OpenBundle open(cacheModel());
  ASSERT_EQ(open.status, DMX_OK) << open.error.message;
  SessionPtr session = makeSession(open.get());
  const int64_t room = 9;
  std::vector<float> cache(2 * room * 2, -1), rows;
  int64_t there = 0;
  for (int64_t n : {3, 1, 4, 1}) {
    rows.clear();
    for (int64_t i = 0; i < 2 * n * 2; ++i)
      rows.push_back(valueOf(i / (n * 2), there + i / 2 % n, i % 2));
    ASSERT_EQ(bind(session.get(), DMX_INPUT, 0, cache.data(), {2, there, 2}, {room * 2, 2, 1}), DMX_OK);
    ASSERT_EQ(bindVector(session.get(), DMX_INPUT, 1, rows, {2, n, 2}, &error), DMX_OK) << error.message;
    ASSERT_EQ(bind(session.get(), DMX_OUTPUT, 0, cache.data(), {2, there + n, 2}, {room * 2, 2, 1}), DMX_OK);
    ASSERT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
    EXPECT_EQ(copiedBytes(session.get()), 0u);
    there += n;
    for (int64_t i = 0; i < 2 * room * 2; ++i)
      EXPECT_EQ(cache[static_cast<size_t>(i)],
                i / 2 % room < there ? valueOf(i / (room * 2), i / 2 % room, i % 2) : -1);
  }
  // Two tensors: all rows but the run's are copied.
  std::vector<float> dense(2 * 9 * 2), old(2 * 8 * 2), last = {1, 2, 3, 4};
  for (size_t i = 0; i < old.size(); ++i)
    old[i] = static_cast<float>(i);
  ASSERT_EQ(bindVector(session.get(), DMX_INPUT, 0, old, {2, 8, 2}, &error), DMX_OK) << error.message;
  ASSERT_EQ(bindVector(session.get(), DMX_INPUT, 1, last, {2, 1, 2}, &error), DMX_OK) << error.message;
  ASSERT_EQ(bindVector(session.get(), DMX_OUTPUT, 0, dense, {2, 9, 2}, &error), DMX_OK) << error.message;
  ASSERT_EQ(dmx_session_run(session.get(), &error), DMX_OK) << error.message;
  EXPECT_EQ(copiedBytes(session.get()), old.size() * sizeof(float));
  for (size_t i = 0; i < dense.size(); ++i) {
    size_t head = i / 18, row = i / 2 % 9, column = i % 2;
    EXPECT_EQ(dense[i], row < 8 ? old[head * 16 + row * 2 + column] : last[head * 2 + column]);
  }
}

TEST_F(Strided, Refused) {
  OpenBundle open(cacheModel());
  SessionPtr session = makeSession(open.get());
  dmx_session *s = session.get();
  std::vector<float> cache(200), rows(4);
  expectRefused(bind(s, DMX_INPUT, 0, cache.data(), {2, 3, 2}, {-6, 2, 1}),
                "input 'past': the stride of axis 0 is -6, and strides are not negative; copy the tensor");
  expectRefused(
      bind(s, DMX_OUTPUT, 0, cache.data(), {2, 4, 2}, {7, 2, 1}),
      "output 'present': the stride of axis 0 is 7 elements, less than the 8 from the first to the last one that "
      "it steps over, so that elements overlap; give each its room");
  expectRefused(bind(s, DMX_OUTPUT, 0, cache.data(), {2, 4, 2}, {INT64_MAX, 2, 1}), "more than 63 bits");
  expectRefused(bind(s, DMX_OUTPUT, 0, cache.data(), {2, 4}, {8, 1}), "rank is 2, expected 3");
  dmx_tensor_view view{};
  expectRefused(dmx_session_bind_strided(s, DMX_INPUT, 0, &view, nullptr, &error), "dtype is unknown");
  int64_t dims[] = {2, 3, 2};
  view = {DMX_DTYPE_F32, 3, dims, cache.data()};
  expectRefused(dmx_session_bind_strided(s, DMX_INPUT, 0, &view, nullptr, &error), "view or strides is NULL");
  // One buffer, but not as a cache lies in it.
  ASSERT_EQ(bindVector(s, DMX_INPUT, 1, rows, {2, 1, 2}, &error), DMX_OK) << error.message;
  ASSERT_EQ(bind(s, DMX_INPUT, 0, cache.data() + 2, {2, 3, 2}, {20, 2, 1}), DMX_OK) << error.message;
  ASSERT_EQ(bind(s, DMX_OUTPUT, 0, cache.data(), {2, 4, 2}, {20, 2, 1}), DMX_OK) << error.message;
  expectRefused(dmx_session_run(s, &error), "input 'past' overlaps output 'present' in memory");
  ASSERT_EQ(bind(s, DMX_INPUT, 0, cache.data(), {2, 3, 2}, {18, 2, 1}), DMX_OK) << error.message;
  expectRefused(dmx_session_run(s, &error), "overlaps");
  ASSERT_EQ(bind(s, DMX_INPUT, 0, cache.data(), {2, 3, 2}, {20, 2, 1}), DMX_OK) << error.message;
  ASSERT_EQ(bind(s, DMX_INPUT, 1, cache.data() + 4, {2, 1, 2}, {20, 2, 1}), DMX_OK) << error.message;
  expectRefused(dmx_session_run(s, &error), "input 'rows' overlaps output 'present' in memory");
}

TEST_F(Strided, BundlesThatSayItWrong) {
  auto with = [](auto change) {
    TestBundle model = cacheModel();
    change(model.graph["graphs"][0]);
    return model;
  };
  auto output = [](Json &graph) -> Json & {
    for (Json &buffer : graph["buffers"])
      if (buffer["kind"] == "output")
        return buffer;
    return graph;
  };
  dmxtest::expectRefused(with([&](Json &graph) { output(graph)["past"] = 2; }), DMX_STATUS_INVALID_BUNDLE,
                         "output 0 cannot begin with the rows of input 2 along axis 1");
  dmxtest::expectRefused(with([&](Json &graph) { output(graph)["axis"] = 3; }), DMX_STATUS_INVALID_BUNDLE,
                         "cannot begin with the rows of input 0 along axis 3");
  dmxtest::expectRefused(with([&](Json &graph) { output(graph)["room"] = "p"; }), DMX_STATUS_INVALID_BUNDLE,
                         "'p' is no dim that says how much room there is");
}

} // namespace
