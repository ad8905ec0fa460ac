//===- ErrorsTest.cpp - bundles whose JSON is wrong -----------------------===//
//
// Checksums are right here: what the runtime finds is the content.
//
//===----------------------------------------------------------------------===//

#include "RuntimeTest.h"

#include <functional>

using namespace dmxtest;

namespace {

struct Case {
  const char *part;                                 // of the expected sentence
  std::function<void(TestBundle &, Json &)> change; // gets the bundle and its graph
  dmx_status status = DMX_STATUS_INVALID_BUNDLE;
};

void check(const Case &test, TestBundle model) {
  SCOPED_TRACE(test.part);
  Json &graph = model.graph["graphs"][0];
  test.change(model, graph);
  expectRefused(model, test.status, test.part);
}

} // namespace

TEST(ManifestErrors, VersionsAndFeatures) {
  const Case cases[] = {
      {"format 2.0 (written by test 0.1.0)", [](auto &b, auto &) { b.manifest["format"]["major"] = 2; },
       DMX_STATUS_UNSUPPORTED},
      {"install a newer runtime", [](auto &b, auto &) { b.manifest["format"]["minor"] = 9; }, DMX_STATUS_UNSUPPORTED},
      {"compile the model again", [](auto &b, auto &) { b.manifest["format"]["major"] = 0; }, DMX_STATUS_UNSUPPORTED},
      {"needs runtime 9.1.0", [](auto &b, auto &) { b.manifest["min_runtime"] = "9.1.0"; }, DMX_STATUS_UNSUPPORTED},
      {"is not a version", [](auto &b, auto &) { b.manifest["min_runtime"] = "soon"; }},
      {"is not a version", [](auto &b, auto &) { b.manifest["min_runtime"] = "0.1.0x"; }},
      {"requires feature 'paged_kv'", [](auto &b, auto &) { b.manifest["required"] = {"paged_kv"}; },
       DMX_STATUS_UNSUPPORTED},
  };
  for (const Case &test : cases)
    check(test, addModel(8));
}

TEST(ManifestErrors, Content) {
  const Case cases[] = {
      {"member 'format' is missing", [](auto &b, auto &) { b.manifest.erase("format"); }},
      {"model.metadata: an object was expected", [](auto &b, auto &) { b.manifest["model"]["metadata"] = "pytorch"; }},
      {"model.metadata.k: a string was expected", [](auto &b, auto &) { b.manifest["model"]["metadata"]["k"] = 1; }},
      {"inputs[0].description: a string was expected",
       [](auto &b, auto &) { b.manifest["entry_points"][0]["inputs"][0]["description"] = Json::array(); }},
      {"format.major: an integer was expected", [](auto &b, auto &) { b.manifest["format"]["major"] = "1"; }},
      {"not within", [](auto &b, auto &) { b.manifest["format"]["major"] = -1; }},
      {"entry_points: an array was expected", [](auto &b, auto &) { b.manifest["entry_points"] = 5; }},
      {"there is no entry point", [](auto &b, auto &) { b.manifest["entry_points"] = Json::array(); }},
      {"two entry points are named 'main'",
       [](auto &b, auto &) { b.manifest["entry_points"].push_back(b.manifest["entry_points"][0]); }},
      {"entry_points[0].inputs[0].dtype: unknown dtype 'f33'",
       [](auto &b, auto &) { b.manifest["entry_points"][0]["inputs"][0]["dtype"] = "f33"; }},
      {"another dtype or shape", [](auto &b, auto &) { b.manifest["entry_points"][0]["inputs"][0]["dtype"] = "i32"; }},
      {"another dtype or shape", [](auto &b, auto &) { b.manifest["entry_points"][0]["inputs"][0]["shape"] = {7}; }},
      {"another dtype or shape",
       [](auto &b, auto &) { b.manifest["entry_points"][0]["outputs"][0]["shape"] = {8, 1}; }},
      {"the name 'a' is used twice", [](auto &b, auto &) { b.manifest["entry_points"][0]["inputs"][1]["name"] = "a"; }},
      {"rank 33",
       [](auto &b, auto &) { b.manifest["entry_points"][0]["inputs"][0]["shape"] = std::vector<int>(33, 1); }},
      {"has 1 inputs and 1 outputs, its graph 2 and 1",
       [](auto &b, auto &) { b.manifest["entry_points"][0]["inputs"].erase(1); }},
      {"no graph for entry point 'other'", [](auto &b, auto &) { b.manifest["entry_points"][0]["name"] = "other"; }},
      {"targets names code 'code/none'", [](auto &b, auto &) { b.manifest["targets"][0]["entry"] = "code/none"; }},
      {"does not list 'graph.json'", [](auto &b, auto &) { b.manifest["entries"] = Json::array(); }},
      {"a string was expected", [](auto &b, auto &) { b.manifest["targets"][0]["features"] = {5}; }},
      {"a string was expected",
       [](auto &b, auto &) { b.manifest["entry_points"][0]["name"] = std::string("ma\0in", 5); }},
      {"it is not valid JSON", [](auto &b, auto &) { b.manifestText = "{\"format\": "; }},
      {"an object was expected", [](auto &b, auto &) { b.manifestText = "[]"; }},
      {"nests deeper", [](auto &b, auto &) { b.manifestText = std::string(200000, '['); }},
      {"it is not valid JSON", [](auto &b, auto &) { b.manifestText = "{\"a\": \"\xff\"}"; }},
  };
  for (const Case &test : cases)
    check(test, addModel(8));
}

TEST(ManifestErrors, EntriesAndArchiveMustAgree) {
  TestBundle model = addModel(8);
  std::string text = model.zip();
  auto entries = Json::parse(std::string(dmx_bundle_describe(OpenBundle(text).get())))["entries"];
  auto with = [&](Json list) {
    TestBundle changed = model;
    changed.manifest["entries"] = std::move(list);
    return changed;
  };
  Json list = entries;
  list[0]["size"] = 5;
  expectRefused(with(list), DMX_STATUS_INVALID_BUNDLE, "the manifest says 5");
  list = entries;
  list[1]["sha256"] = std::string(64, '0');
  expectRefused(with(list), DMX_STATUS_CHECKSUM, "kernels.so' does not have its recorded sha256");
  list = entries;
  list[1]["sha256"] = "00";
  expectRefused(with(list), DMX_STATUS_INVALID_BUNDLE, "64 hex digits");
  list = entries;
  list.push_back(list[0]);
  expectRefused(with(list), DMX_STATUS_INVALID_BUNDLE, "twice");
  list = entries;
  list.push_back({{"name", "weights/none"}, {"size", 0}, {"sha256", std::string(64, '0')}});
  expectRefused(with(list), DMX_STATUS_INVALID_BUNDLE, "archive has none of that name");
  list = entries;
  TestBundle more = with(list);
  more.files["debug/extra"] = "x";
  expectRefused(more, DMX_STATUS_INVALID_BUNDLE, "the archive has 4 entries, the manifest lists 3");
}

TEST(GraphErrors, StructureOfTheStaticGraph) {
  const Case cases[] = {
      {"member 'graphs' is missing", [](auto &b, auto &) { b.graph = Json::object(); }},
      {"graphs[0].tasks[0].buffers[2]: buffer 9 does not exist",
       [](auto &, Json &g) { g["tasks"][0]["buffers"][2] = 9; }},
      {"not within", [](auto &, Json &g) { g["tasks"][0]["buffers"][0] = -1; }},
      {"writes buffer 1, which lies in an input", [](auto &, Json &g) { g["tasks"][0]["buffers"] = {0, 2, 1}; }},
      {"not within 0..3", [](auto &, Json &g) { g["tasks"][0]["outputs"] = 4; }},
      {"earlier task 0 does not exist", [](auto &, Json &g) { g["tasks"][0]["deps"] = {0}; }},
      {"queue 1 does not exist", [](auto &, Json &g) { g["tasks"][0]["queue"] = 1; }},
      {"unknown kind of task 'jump'", [](auto &, Json &g) { g["tasks"][0]["kind"] = "jump"; }},
      {"work is -1", [](auto &, Json &g) { g["tasks"][0]["work"] = -1; }},
      {"grain is 0", [](auto &, Json &g) { g["tasks"][0]["grain"] = 0; }},
      {"scratch is -5", [](auto &, Json &g) { g["tasks"][0]["scratch"] = -5; }},
      {"leaves 64 bits", [](auto &, Json &g) { g["tasks"][0]["work"] = {"mul", INT64_MAX, 2}; }},
      {"dim 'n' is not in the table", [](auto &, Json &g) { g["tasks"][0]["work"] = "n"; }},
      {"unknown kind of buffer 'heap'", [](auto &, Json &g) { g["buffers"][0]["kind"] = "heap"; }},
      {"unknown dtype", [](auto &, Json &g) { g["buffers"][0]["dtype"] = "float"; }},
      {"the same kind and index", [](auto &, Json &g) { g["buffers"][1]["index"] = 0; }},
      {"has 2 inputs and 1 outputs, its graph 3 and 1", [](auto &, Json &g) { g["buffers"][1]["index"] = 2; }},
      {"shape: 0 - 8 is -8",
       [](auto &, Json &g) { g["buffers"][0]["shape"] = Json::array({Json::array({"sub", 0, 8})}); }},
      {"two graphs are named 'main'", [](auto &b, auto &) { b.graph["graphs"].push_back(b.graph["graphs"][0]); }},
      {"two dims are named 'n'",
       [](auto &, Json &g) { g["dims"] = {{{"name", "n"}, {"expr", 1}}, {{"name", "n"}, {"expr", 1}}}; }},
      {"which no buffer stands for",
       [](auto &, Json &g) { g["dims"] = {{{"name", "n"}, {"min", 1}, {"max", 2}, {"input", 9}, {"axis", 0}}}; }},
      {"which the input does not have",
       [](auto &, Json &g) { g["dims"] = {{{"name", "n"}, {"min", 1}, {"max", 2}, {"input", 0}, {"axis", 1}}}; }},
      {"not within 5..",
       [](auto &, Json &g) { g["dims"] = {{{"name", "n"}, {"min", 5}, {"max", 2}, {"input", 0}, {"axis", 0}}}; }},
      {"dim 'n' is not among what task 0 returns",
       [](auto &, Json &g) { g["dims"] = {{{"name", "n"}, {"task", 0}, {"result", 0}}}; }},
      {"align is 3, not the 64", [](auto &, Json &g) { g["arenas"][0]["align"] = 3; }},
      {"align is 4096, not the 64", [](auto &, Json &g) { g["arenas"][0]["align"] = 4096; }},
      {"size is -1", [](auto &, Json &g) { g["arenas"][0]["size"] = -1; }},
      {"arena 0: size is", [](auto &, Json &g) { g["arenas"][0]["size"] = INT64_MAX; }},
      {"divides by zero", [](auto &, Json &g) { g["arenas"][0]["size"] = {"floordiv", 1, 0}; }},
  };
  for (const Case &test : cases)
    check(test, addModel(8));
}

TEST(GraphErrors, Ranges) {
  // Buffers: 0 x, 1 const, 2 arena, 3 alias, 4 y.
  auto model = [] {
    ModelBuilder builder;
    int x = builder.input("x", "f32", {16});
    int c = builder.constant(std::string(64, '\0'), "f32", {16});
    int sum = builder.arena(64, "f32", {16});
    int part = builder.alias(sum, 32, 32, "f32", {8});
    int y = builder.output("y", "f32", {8});
    int add = builder.dispatch("add", {x, c, sum}, 1, 16);
    builder.copy(part, y, 32, {add});
    return builder.finish();
  };
  {
    OpenBundle good(model());
    ASSERT_EQ(good.status, DMX_OK) << good.error.message;
  }
  const Case cases[] = {
      {"leave the arena of 64 bytes", [](auto &, Json &g) { g["buffers"][2]["offset"] = 64; }},
      {"not a multiple of 64",
       [](auto &, Json &g) {
         g["buffers"][2]["offset"] = 32;
         g["arenas"][0]["size"] = 128;
       }},
      {"offset is -64", [](auto &, Json &g) { g["buffers"][2]["offset"] = -64; }},
      {"size is ", [](auto &, Json &g) { g["buffers"][2]["size"] = INT64_MAX; }},
      {"less than its shape needs, 64", [](auto &, Json &g) { g["buffers"][2]["size"] = 63; }},
      {"arena 1 does not exist", [](auto &, Json &g) { g["buffers"][2]["arena"] = 1; }},
      {"more elements than any memory", [](auto &, Json &g) { g["buffers"][2]["shape"] = {INT64_MAX, 2}; }},
      {"leave the entry", [](auto &, Json &g) { g["buffers"][1]["offset"] = 8192; }},
      {"leave the entry", [](auto &, Json &g) { g["buffers"][1]["size"] = 100000; }},
      {"not a multiple of 64", [](auto &, Json &g) { g["buffers"][1]["offset"] = 4032 + 4; }},
      {"must be integers", [](auto &, Json &g) { g["buffers"][1]["offset"] = {"add", 1, 1}; }},
      {"lies in entry 'weights/none'", [](auto &, Json &g) { g["buffers"][1]["entry"] = "weights/none"; }},
      {"leave the buffer it is an alias of", [](auto &, Json &g) { g["buffers"][3]["offset"] = 36; }},
      {"not a multiple of 4", [](auto &, Json &g) { g["buffers"][3]["offset"] = 2; }},
      {"an alias of an alias", [](auto &, Json &g) { g["buffers"][3]["of"] = 3; }},
      {"buffer 77 does not exist", [](auto &, Json &g) { g["buffers"][3]["of"] = 77; }},
      {"writes buffer 1, which lies in an input or a constant", [](auto &, Json &g) { g["tasks"][1]["dst"] = 1; }},
      {"writes buffer 3, which lies in an input or a constant",
       [](auto &, Json &g) {
         g["buffers"][3]["of"] = 0;
         g["tasks"][1]["dst"] = 3;
       }},
      {"leaves its buffers", [](auto &, Json &g) { g["tasks"][1]["size"] = 33; }},
      {"leaves its buffers", [](auto &, Json &g) { g["tasks"][1]["src_offset"] = 1; }},
      {"leaves its buffers", [](auto &, Json &g) { g["tasks"][1]["dst_offset"] = (int64_t(1) << 46); }},
      {"dst_offset is -1", [](auto &, Json &g) { g["tasks"][1]["dst_offset"] = -1; }},
      {"an output index has no buffer", [](auto &, Json &g) { g["buffers"][4]["index"] = 1; }},
      {"the size of a state buffer must be an integer",
       [](auto &, Json &g) {
         g["buffers"][2] = {{"kind", "state"}, {"size", {"add", 1, 1}}, {"dtype", "f32"}, {"shape", {16}}};
       }},
      {"state buffer 2 is used by tasks of targets 'corsair' and 'cpu'",
       [](auto &, Json &g) {
         g["buffers"][2] = {{"kind", "state"}, {"size", 64}, {"dtype", "f32"}, {"shape", {16}}};
         g["queues"].push_back({{"name", "x"}, {"target", "corsair"}});
         g["tasks"][0]["queue"] = 1; // the copy of its alias is the host's
       }},
  };
  for (const Case &test : cases)
    check(test, model());
}

TEST(SessionErrors, CodeAndTargets) {
  auto creates = [](TestBundle model, dmx_status status, const std::string &part, const char *isa = nullptr) {
    OpenBundle open(model);
    ASSERT_EQ(open.status, DMX_OK) << open.error.message;
    dmx_session_options options = DMX_SESSION_OPTIONS_INIT;
    options.isa = isa;
    dmx_session *session = nullptr;
    EXPECT_EQ(dmx_session_create(open.get(), nullptr, &options, &session, &open.error), status) << open.error.message;
    EXPECT_EQ(session, nullptr);
    EXPECT_NE(std::string(open.error.message).find(part), std::string::npos)
        << "message: " << open.error.message << "\nexpected part: " << part;
  };
  TestBundle model = addModel(8);
  model.graph["graphs"][0]["tasks"][0]["kernel"] = "missing";
  creates(model, DMX_STATUS_INVALID_BUNDLE, "needs kernel 'missing'");
  model = addModel(8);
  model.graph["graphs"][0]["queues"][0]["target"] = "nowhere";
  creates(model, DMX_STATUS_UNSUPPORTED, "target 'nowhere', which this runtime has no device for");
  model = addModel(8);
  model.manifest["targets"][0]["features"] = {"sse2", "quantum"};
  creates(model, DMX_STATUS_UNSUPPORTED, "needs CPU feature 'quantum'");
  model = addModel(8);
  model.manifest["targets"][0]["target"] = "nowhere";
  creates(model, DMX_STATUS_UNSUPPORTED, "no code for target 'cpu'");
  // The compiler's default, on a machine without either level.
  Json v3 = model.manifest["targets"][0], v4 = v3;
  v3["target"] = v4["target"] = "cpu";
  v3["arch"] = "x86-64-v3", v3["features"] = {"no-avx2", "fma"};
  v4["arch"] = "x86-64-v4", v4["features"] = {"no-avx2", "no-avx512f"};
  model.manifest["targets"] = {v3, v4};
  creates(model, DMX_STATUS_UNSUPPORTED,
          "its x86-64-v3 code needs CPU feature 'no-avx2'; its x86-64-v4 code needs CPU feature 'no-avx2'");
  creates(model, DMX_STATUS_UNSUPPORTED, "compile the model for a lower level, e.g. -t cpu:x86-64-v2");
  creates(addModel(8), DMX_STATUS_INVALID_ARGUMENT, "no code of ISA level 'x86-64-v9'; it has x86-64", "x86-64-v9");
  model = addModel(8);
  model.manifest["targets"][0]["common"] = "code/cpu/common/kernels.so";
  {
    OpenBundle none(model);
    EXPECT_NE(std::string(none.error.message).find("targets names code 'code/cpu/common/kernels.so'"),
              std::string::npos)
        << none.error.message;
  }
  model.files["code/cpu/common/kernels.so"] = kernelObject("-undefined");
  creates(model, DMX_STATUS_INVALID_BUNDLE, "code/cpu/common/kernels.so': the kernel object is not one");
  model = addModel(8);
  model.files["code/cpu/x86-64/kernels.so"] = kernelObject("-undefined");
  creates(model, DMX_STATUS_INVALID_BUNDLE, "code/cpu/x86-64/kernels.so': the kernel object is not one");
  OpenBundle open(model);
  EXPECT_EQ(dmx_bundle_verify(open.get(), &open.error), DMX_STATUS_INVALID_BUNDLE) << "verify looks at code too";
  model.files["code/cpu/x86-64/kernels.so"] = kernelObject("-otherabi");
  creates(model, DMX_STATUS_UNSUPPORTED, "kernel ABI");
}
