//===- ReadersTest.cpp - the two readers of bundles judge alike -----------===//
//
// Tools read bundles with src/Bundle, programs with libdmxrt. The corpus: models that use all of the format, each value
// of their JSON replaced by each of a list of others, taken out, or given twice; all checksums are right. What one
// reader refuses the other refuses, too.
//
//===----------------------------------------------------------------------===//
#include "SampleModels.h"
#include "TestDir.h"
#include "dmxc/Tools/Check.h"

#include "dmx/dmx.h"
#include "tests/Sample.h"

#include "gtest/gtest.h"

#include <functional>
#include <regex>

namespace dmxc::tools::test {
namespace {

using dmxtest::Json;
using dmxtest::TestBundle;

struct Verdict {
  std::string tools, runtime; ///< the first complaint of each; "" = accepted
};

Verdict judge(const std::string &path) {
  Verdict verdict;
  auto bundle = bundle::Bundle::open(path);
  if (!bundle) { // and checkBundle, which asks the runtime, cannot be called
    verdict.tools = bundle.error().message;
    dmx_error error = DMX_ERROR_INIT;
    dmx_bundle *opened = nullptr;
    if (dmx_bundle_open(path.c_str(), &opened, &error) != DMX_OK)
      verdict.runtime = error.message;
    dmx_bundle_close(opened);
    return verdict;
  }
  auto problems = checkBundle(*bundle, false);
  if (!problems) {
    verdict.tools = problems.error().message;
    return verdict;
  }
  for (const bundle::Problem &problem : *problems) {
    std::string &reader = problem.where.rfind("runtime", 0) == 0 ? verdict.runtime : verdict.tools;
    if (reader.empty())
      reader = problem.where + ": " + problem.message;
  }
  return verdict;
}

/// Calls `use` with a pointer to each value below `json`, the deepest last.
void forEachPlace(const Json &json, const std::string &at, const std::function<void(const std::string &)> &use) {
  for (const auto &item : json.items()) {
    std::string place = at + "/" + item.key();
    use(place);
    if (item.value().is_structured())
      forEachPlace(item.value(), place, use);
  }
}

const std::vector<Json> &lies() {
  static const std::vector<Json> values = {nullptr,
                                           true,
                                           -1,
                                           0,
                                           1,
                                           2,
                                           3,
                                           63,
                                           1 << 20,
                                           1.5,
                                           "",
                                           "n",
                                           "no such",
                                           std::string("a\0b", 3),
                                           "f32",
                                           "i64",
                                           "x86-64-v4",
                                           Json::array(),
                                           Json::object(),
                                           Json::array({"mul", "n", 4}),
                                           Json::array({"floordiv", 1, 0}),
                                           Json::array({1, 2, 3})};
  return values;
}

/// What tools show and the runtime never reads.
bool isForToolsAlone(const std::string &place) {
  static const std::regex places(
      "/(model/(name|sha256|source)|options|placement)(/.*)?|/entry_points/0/dims(/.*)?|/entries/[0-9]+/size|"
      "/graphs/[0-9]+/queues/0/name|/graphs/[0-9]+/buffers/[0-9]+/tensor|"
      "/graphs/[0-9]+/tasks/[0-9]+/(flops|bytes)(/.*)?");
  return std::regex_match(place, places);
}

/// Rules that the compiler's output keeps and the runtime leaves to the tools or to the run that they concern.
bool isLeftToTools(const std::string &complaint) {
  static const std::regex rules("no path of deps orders them"                  // it does not look for races
                                "|is written by no task"                       // nor for stale outputs
                                "|overflows 64 bits or divides by zero"        // refused by the run with these dims
                                "|is negative|copy_3\\): bytes 0\\+"           // so is what a loop gives
                                "|, dim '\\w+': input [0-9]+ has "             // extents of inputs are those bound
                                "|in the graph and .* in the manifest"         // symbols are for who reads the manifest
                                "|expected an expression|shape.*: expected an" // and as such not parsed
                                "|which the manifest lists no code for"        // the session says so
                                "|which 'required' does not list|does not have$" // for older runtimes
                                "|: tensor '.*' lies at ");                      // headers of weights are not read
  return std::regex_search(complaint, rules);
}

class Corpus {
public:
  Corpus(TestBundle given, Json TestBundle::*part) : model(std::move(given)), part(part) {
    // The runtime lays out runs of code whose contracts it can read.
    model.files["code/cpu/x86-64/kernels.so"] = dmxtest::kernelObject("-exported");
  }

  /// Judges the whole corpus; each disagreement is a failure.
  void run() {
    const Json whole = model.*part;
    forEachPlace(whole, "", [&](const std::string &place) {
      if (isForToolsAlone(place) || !places.takesNext())
        return;
      Json::json_pointer pointer(place);
      for (const Json &lie : lies())
        if (lie != whole.at(pointer)) {
          (model.*part).at(pointer) = lie;
          check(place + " = " + lie.dump());
          model.*part = whole;
        }
      Json &parent = (model.*part).at(pointer.parent_pointer());
      if (parent.is_array()) {
        parent.push_back(Json(parent.at(std::stoul(pointer.back()))));
        check(place + " twice");
        model.*part = whole;
        Json &list = (model.*part).at(pointer.parent_pointer());
        list.erase(std::stoul(pointer.back()));
      } else {
        parent.erase(pointer.back());
      }
      check("without " + place);
      model.*part = whole;
    });
    EXPECT_GT(judged, places.whole() ? 900U : 225U);
    EXPECT_GT(refused, judged / 2);
  }

private:
  TestBundle model;
  Json TestBundle::*part;
  TestDir dir;
  size_t judged = 0, refused = 0;
  sampling::Sample places{3};

  void check(const std::string &what) {
    std::string path = dir.path("b");
    writeFile(path, model.zip());
    Verdict verdict = judge(path);
    ++judged;
    refused += !verdict.runtime.empty();
    // What laying out a run shows dmx-inspect --check shows, too.
    bool rehearsed = verdict.runtime.rfind("runtime, entry point", 0) == 0;
    if (verdict.runtime.empty() ? isLeftToTools(verdict.tools) : rehearsed && verdict.tools.empty())
      return;
    EXPECT_EQ(verdict.tools.empty(), verdict.runtime.empty())
        << what << "\n  tools:   " << verdict.tools << "\n  runtime: " << verdict.runtime;
  }
};

TEST(Readers, ManifestOfEveryBuffer) {
  TestBundle model = dmxtest::everyBuffer();
  model.manifest["format"]["minor"] = 3;
  model.manifest["model"]["metadata"] = {{"labels", "cat, dog"}};
  model.manifest["entry_points"][0]["inputs"][0]["description"] = "an image";
  Corpus(std::move(model), &TestBundle::manifest).run();
}
TEST(Readers, GraphOfEveryBuffer) {
  TestBundle model = dmxtest::everyBuffer();
  model.manifest["format"]["minor"] = 5;
  model.manifest["required"].push_back("caller-caches");
  model.manifest["required"].push_back("state-lengths");
  Json &graph = model.graph["graphs"][0];
  graph["dims"].push_back({{"name", "rows"}, {"next", {"add", "n", "rows"}}, {"max", 100}});
  graph["dims"].push_back({{"name", "n_room"}, {"room", "n"}});
  for (Json &buffer : graph["buffers"])
    if (buffer["kind"] == "output" && buffer["index"] == 0)
      buffer["room"] = "n_room", buffer["axis"] = 0, buffer["past"] = 0;
  for (Json &buffer : graph["buffers"])
    if (buffer["kind"] == "state")
      buffer["length"] = "rows", buffer["axis"] = 0, buffer["shape"] = {100}, buffer["size"] = 448;
  Corpus(std::move(model), &TestBundle::graph).run();
}
TEST(Readers, ManifestOfEveryControl) { Corpus(dmxtest::everyControl(), &TestBundle::manifest).run(); }
TEST(Readers, GraphOfEveryControl) { Corpus(dmxtest::everyControl(), &TestBundle::graph).run(); }

} // namespace
} // namespace dmxc::tools::test
