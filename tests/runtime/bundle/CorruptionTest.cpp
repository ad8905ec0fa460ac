//===- CorruptionTest.cpp - damaged bundles -------------------------------===//
//
// Whatever happens to a bundle's bytes, the runtime names it or, where a
// check is asked for separately, names it then. Run under sanitizers as well.
//
//===----------------------------------------------------------------------===//

#include "../RuntimeTest.h"

#include <random>

using namespace dmxtest;

namespace {

/// Status of the first step that refuses: open, verify. DMX_OK when none does.
dmx_status openAndVerify(const std::string &text, std::string &message) {
  OpenBundle open(text);
  if (open.status == DMX_OK)
    open.status = dmx_bundle_verify(open.get(), &open.error);
  message = open.error.message;
  return open.status;
}

TestBundle richModel() {
  TestBundle model = batchModel();
  model.files["debug/note"] = "a note";
  model.files["tests/input_0.bin"] = std::string(100, 't');
  return model;
}

} // namespace

TEST(Corruption, EveryFlippedByteIsNamed) {
  std::string text = richModel().zip(), message;
  ASSERT_EQ(openAndVerify(text, message), DMX_OK) << message;
  std::mt19937 random(5);
  size_t step = 0, tried = 0;
  // All of the headers and JSON, and samples of the bulk: kernels and weights.
  size_t code = text.find("\x7f"
                          "ELF"),
         weights = text.find("weights/");
  for (size_t i = 0; i < text.size(); i += step) {
    bool bulk = (i > code + 64 && i < text.size() - 4000) || (i > weights + 100 && i + 100 < code);
    step = bulk ? 1 + random() % 120 : 1;
    std::string flipped = text;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << random() % 8));
    dmx_status status = openAndVerify(flipped, message);
    ASSERT_NE(status, DMX_OK) << "byte " << i;
    ASSERT_NE(status, DMX_STATUS_INTERNAL) << "byte " << i << ": " << message;
    ASSERT_FALSE(message.empty()) << "byte " << i;
    ++tried;
  }
  EXPECT_GT(tried, 3000u);
}

TEST(Corruption, EveryTruncationIsNamed) {
  std::string text = addModel(4).zip();
  // All lengths of the first and last parts, samples between.
  for (size_t size = 0; size < text.size(); size += size < 3000 || size + 1500 > text.size() ? 1 : 37) {
    OpenBundle open(std::string_view(text).substr(0, size));
    ASSERT_EQ(open.status, DMX_STATUS_INVALID_BUNDLE) << size << " bytes";
    ASSERT_NE(std::string(open.error.message), "") << size;
  }
}

/// JSON values replaced one by one by hostile ones, checksums made right: every one is
/// refused or harmless, through creation of a session with inputs bound. Kernels are not run: a
/// graph may lie to them, which no reader can see.
TEST(Corruption, EveryJsonValueMadeHostile) {
  TestBundle good = richModel();
  const Json hostile[] = {nullptr,
                          true,
                          -1,
                          0,
                          1,
                          3,
                          1000000,
                          INT64_MAX,
                          INT64_MIN,
                          UINT64_MAX,
                          1e300,
                          "",
                          "batch",
                          "../x",
                          Json::array(),
                          Json::object(),
                          Json::array({"mul", INT64_MAX, "batch"}),
                          Json::array({"floordiv", 1, 0}),
                          Json::array({0, 1, 2, 3})};
  size_t tried = 0, refused = 0;
  for (Json TestBundle::*document : {&TestBundle::graph, &TestBundle::manifest}) {
    Json flat = (good.*document).flatten();
    for (const auto &item : flat.items()) {
      Json::json_pointer pointer(item.key());
      for (; !pointer.empty(); pointer = pointer.parent_pointer()) { // inner nodes too
        for (const Json &value : hostile) {
          TestBundle bad = good;
          (bad.*document)[pointer] = value;
          OpenBundle open(bad);
          ++tried;
          ASSERT_NE(open.status, DMX_STATUS_INTERNAL) << pointer << " = " << value << ": " << open.error.message;
          refused += open.status != DMX_OK;
          if (open.status != DMX_OK)
            continue;
          dmx_session *session = nullptr;
          dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
          options.threads = 1;
          dmx_status status = dmx_session_create(open.get(), nullptr, &options, &session, &open.error);
          ASSERT_NE(status, DMX_STATUS_INTERNAL) << pointer << " = " << value << ": " << open.error.message;
          if (!session)
            continue;
          int64_t dims[] = {2, 4}, out[DMX_MAX_RANK];
          std::vector<float> data(8);
          dmx_tensor_view view{DMX_DTYPE_F32, 2, dims, data.data()};
          uint32_t rank = 0;
          (void)dmx_session_bind(session, DMX_INPUT, 0, &view, nullptr);
          status = dmx_session_shape(session, DMX_OUTPUT, 0, out, DMX_MAX_RANK, &rank, &open.error);
          EXPECT_NE(status, DMX_STATUS_INTERNAL) << pointer << " = " << value << ": " << open.error.message;
          dmx_session_destroy(session);
        }
        if (document == &TestBundle::manifest)
          break;
      }
    }
  }
  EXPECT_GT(tried, 2000u);
  EXPECT_GT(refused, tried / 2);
}

/// Members taken away one by one.
TEST(Corruption, EveryJsonMemberRemoved) {
  TestBundle good = richModel();
  size_t refused = 0;
  for (Json TestBundle::*document : {&TestBundle::graph, &TestBundle::manifest}) {
    Json flat = (good.*document).flatten();
    for (const auto &item : flat.items()) {
      Json::json_pointer pointer(item.key());
      TestBundle bad = good;
      Json &parent = (bad.*document)[pointer.parent_pointer()];
      if (parent.is_object())
        parent.erase(pointer.back());
      else if (parent.is_array() && !parent.empty())
        parent.erase(parent.size() - 1);
      OpenBundle open(bad);
      EXPECT_NE(open.status, DMX_STATUS_INTERNAL) << pointer << open.error.message;
      refused += open.status != DMX_OK;
    }
  }
  EXPECT_GT(refused, 40u);
}
