//===- InspectPageTest.cpp - dmx-inspect's page of a device's code --------===//
#include "DeviceBundle.h"
#include "InspectSupport.h"

#include "dmxc/Tools/Run.h"
#include "schemas/corsair/MemoryMap.h"
#include "schemas/corsair/text/Assembler.h"

#include <regex>

namespace dmxc::tools::test {
namespace {

namespace isa = dmx::corsair;

class InspectPage : public testing::Test {
protected:
  TestDir dir;
  std::string text = readFile(DMXC_DEVICE_KERNELS), bundle = dir.path("m");

  void SetUp() override { writeFile(bundle, deviceBundle(text)); }
  std::string page(const std::vector<std::string> &reports = {}) {
    InspectOptions options;
    options.bundle = bundle;
    options.htmlFile = dir.path("m.html");
    options.reportFiles = reports;
    EXPECT_EQ(inspect(options), "");
    return readFile(options.htmlFile);
  }
  /// Runs the bundle on the simulated card; its report and trace are r.json and t.json.
  void runCard() {
    RunOptions options;
    options.bundle = bundle;
    options.randomSeed = 1;
    options.quiet = true;
    options.session.deviceOptions = {"corsair.report=" + dir.path("r.json"), "corsair.trace=" + dir.path("t.json")};
    std::ostringstream out;
    Status done = runBundle(options, out);
    ASSERT_TRUE(done) << done.error().message;
  }
  Error failure(const std::string &report) {
    InspectOptions options;
    options.bundle = bundle;
    options.htmlFile = dir.path("none.html");
    options.reportFiles = {report};
    Error error;
    inspect(options, &error.kind, &error.message);
    EXPECT_FALSE(std::filesystem::exists(options.htmlFile));
    return error;
  }
};

std::string hex(int64_t value) {
  char buffer[24];
  std::snprintf(buffer, sizeof buffer, "0x%llx", static_cast<unsigned long long>(value));
  return buffer;
}

size_t countOf(const std::string &text, const std::string &part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size())
    ++count;
  return count;
}

/// Every tag is closed in order, no attribute is cut off.
void expectWellFormed(const std::string &html) {
  std::vector<std::string> open;
  const std::regex tag("<(/?)([a-z][a-z0-9]*)((?: [a-z0-9-]+=\"[^\"<>]*\")*)(/?)>");
  for (std::sregex_iterator it(html.begin(), html.end(), tag), end; it != end; ++it) {
    std::string name = (*it)[2];
    if ((*it)[4].length() || name == "meta")
      continue;
    if (!(*it)[1].length()) {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << name;
    ASSERT_EQ(open.back(), name) << html.substr(static_cast<size_t>(it->position()), 200);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty()) << open.back();
  size_t tags = static_cast<size_t>(std::distance(std::sregex_iterator(html.begin(), html.end(), tag), {}));
  EXPECT_EQ(tags + 1, countOf(html, "<")) << "all but the doctype; others would be unescaped text";
}

void expectSelfContained(const std::string &html) {
  for (const char *outside : {"http://", "https://", "<script", "src=", "href=", "url(", "@import"})
    EXPECT_EQ(html.find(outside), std::string::npos) << outside;
}

TEST_F(InspectPage, HoldsEveryPermanentBuffer) {
  std::string html = page(), error;
  auto image = isa::assemble(text, isa::builtinMachine(), error);
  ASSERT_TRUE(image) << error;
  size_t permanent = 0;
  for (const isa::Kernel &kernel : image->kernels)
    for (const isa::MapRange &range : isa::memoryMap(*image, kernel).ranges) {
      // In the figure, by what is under the pointer, and permanent ones in the table.
      std::string place = hex(range.bytes.begin) + ".." + hex(range.bytes.end);
      EXPECT_NE(html.find(std::string(isa::nameOf(range.kind)) +
                          (range.kind == isa::RangeKind::Temporary ? range.name.empty() ? "" : " of " : " ")),
                std::string::npos);
      EXPECT_NE(html.find(": " + place + ", "), std::string::npos) << range.name << " " << place;
      if (range.kind == isa::RangeKind::Temporary)
        continue;
      ++permanent;
      std::string row = "<td>" + hex(range.bytes.begin) + "</td><td>" + hex(range.bytes.end) + "</td><td class=\"n\">" +
                        std::to_string(range.bytes.end - range.bytes.begin) + "</td><td>" +
                        std::string(isa::nameOf(range.kind)) + "</td><td>" + range.name;
      EXPECT_NE(html.find(row), std::string::npos) << row;
    }
  EXPECT_EQ(permanent, 9u) << "seven arguments and what the two inits leave";
  expectParts(html,
              {"GM of a quad: 32.00 KiB of 16.00 MiB (0.20 %)", "capacity 16.00 MiB", "ST of a slice: 8.00 KiB",
               "memories of kernel 'count/1'", "temporary of count &amp; sum: 0x400..0x480, 128 B, units 1",
               "disassembly of code/corsair/corsair-like/kernels.dmxisa", "MARK label=&quot;count &amp; sum&quot;"});
  expectWellFormed(html);
  expectSelfContained(html);
}

TEST_F(InspectPage, SameBytesTwice) {
  runCard();
  std::vector<std::string> reports{dir.path("r.json"), dir.path("t.json")};
  std::string first = page(reports);
  EXPECT_TRUE(first == page(reports));
  // Runs do not depend on the host either.
  runCard();
  EXPECT_TRUE(first == page(reports));
}

TEST_F(InspectPage, FiguresOfAReport) {
  runCard();
  std::string html = page({dir.path("r.json")});
  nlohmann::json report = nlohmann::json::parse(readFile(dir.path("r.json")));
  for (const auto &kernel : report["last"]) {
    std::string name = kernel["kernel"];
    expectParts(html, {("main of '" + name + "'").c_str(), ("init of '" + name + "'").c_str()});
    const auto &main = kernel["main"];
    std::string row = "<td>main of '" + name + "'</td><td class=\"n\">" + main["clocks"].dump() + "</td><td>";
    EXPECT_NE(html.find(row), std::string::npos) << row;
    for (const auto &[engine, share] : main["utilisation"].items()) {
      char busy[80];
      std::snprintf(busy, sizeof busy, "%s: busy for %.2f %% of the run", engine.c_str(), 100 * share.get<double>());
      EXPECT_NE(html.find(busy), std::string::npos) << busy;
    }
  }
  // One array of one slice: 16 cores of 1024 INT8 operations a clock; 64 rows of 64 x 64.
  const auto &roofline = report["last"][0]["main"]["roofline"];
  double clock = report["clock_hz"];
  EXPECT_NEAR(roofline["peak_ops_per_second"].get<double>(), 16 * 1024 * clock, 1e-5 * 16 * 1024 * clock);
  EXPECT_EQ(roofline["ops"], 2 * 64 * 64 * 64);
  EXPECT_NEAR(roofline["memories"]["DDR"]["bytes_per_second"].get<double>(), 43.7 * clock, 1e-5 * 43.7 * clock);
  EXPECT_EQ(roofline["memories"]["ST"]["units"], 4);
  // Nothing is above its roof.
  const std::regex share("([0-9.]+) % of the roof");
  for (std::sregex_iterator it(html.begin(), html.end(), share), end; it != end; ++it)
    EXPECT_LE(std::stod((*it)[1]), 100.0) << (*it)[0];
  expectParts(html, {"roofline over DDR: 50.01 GB/s", "18.75 Top/s", "multiply: ", "of the roof"});
  expectWellFormed(html);
  expectSelfContained(html);
}

TEST_F(InspectPage, TimelineOfATrace) {
  runCard();
  std::string html = page({dir.path("t.json")});
  expectParts(html, {"<h3>quad 0</h3>", "<h3>quad 1</h3>", ">DIMC 0</text>", ">SIMD 3</text>", ">CPU 0</text>",
                     "multiply, MATMUL in product_compute at 4: ", "count &amp; sum, EXEC_CPU in count_main at 1: "});
  nlohmann::json trace = nlohmann::json::parse(readFile(dir.path("t.json")));
  size_t slices = 0;
  for (const auto &event : trace["traceEvents"])
    slices += event["ph"] == "X";
  // A rectangle each; what shares a pixel with its neighbour is one.
  std::string part = html.substr(html.find("timeline of"));
  part = part.substr(0, part.find("<h2>", 10));
  size_t merged = 0;
  const std::regex several("<title>([0-9]+) slices");
  for (std::sregex_iterator it(part.begin(), part.end(), several), end; it != end; ++it)
    merged += std::stoul((*it)[1]) - 1;
  EXPECT_EQ(countOf(part, "<rect") + merged, slices);
  expectWellFormed(html);
}

TEST_F(InspectPage, ProfilesAreTimelinesToo) {
  RunOptions options;
  options.bundle = DMXC_GOLDEN_BUNDLE;
  options.randomSeed = 1;
  options.quiet = true;
  options.profileFile = dir.path("p.json");
  std::ostringstream out;
  ASSERT_TRUE(runBundle(options, out));
  bundle = DMXC_GOLDEN_BUNDLE;
  std::string html = page({dir.path("p.json")});
  expectParts(html, {"timeline of", "thread 0", "affine: "});
  expectWellFormed(html);
}

TEST_F(InspectPage, ReportsOfSomethingElseAreRefused) {
  Error error = failure(dir.path("nothing"));
  EXPECT_EQ(error.kind, ErrorKind::IO);
  writeFile(dir.path("x"), "no json");
  error = failure(dir.path("x"));
  EXPECT_EQ(error.kind, ErrorKind::IO);
  EXPECT_EQ(error.message, "cannot read '" + dir.path("x") + "': it is not JSON");
  writeFile(dir.path("x"), "[1, {\"last\": 3}]");
  EXPECT_EQ(failure(dir.path("x")).message,
            "cannot read '" + dir.path("x") + "': it is neither a report nor a trace of a device");
  runCard();
  std::string report = readFile(dir.path("r.json"));
  report.replace(report.rfind("\"count/1\""), 9, "\"count/2\"");
  writeFile(dir.path("x"), report);
  error = failure(dir.path("x"));
  EXPECT_EQ(error.kind, ErrorKind::Usage);
  EXPECT_EQ(error.message,
            "--report " + dir.path("x") + ": it is of kernel 'count/2', which '" + bundle + "' does not have");
}

/// Whatever stands in a report or a trace, the page is whole.
TEST_F(InspectPage, ReportsWithoutSenseMakeNoTrouble) {
  for (
      const char *json :
      {R"({"last": []})",
       R"({"last": [3, null, {"main": []}, {"main": {"clocks": "x", "seconds": 1e300}}], "runs": -1e300})",
       R"({"last": [{"main": {"roofline": {"peak_ops_per_second": 1, "memories": {"GM": {"bytes_per_second": 1e-300}}},
            "macs": {"int8": 1e300}, "read_bytes": {"GM": 1}, "seconds": 1e-300, "utilisation": {"a<b": 7, "c": "d"}}}]})",
       R"({"traceEvents": [1, {"ph": "X"}, {"ph": "X", "ts": -1e300, "dur": 1e308, "pid": 1e300, "tid": -5, "name": "<&\""},
            {"ph": "M", "name": "thread_name", "args": {"name": ["x"]}}]})",
       R"({"traceEvents": []})"}) {
    SCOPED_TRACE(json);
    writeFile(dir.path("x"), json);
    expectWellFormed(page({dir.path("x")}));
  }
}

} // namespace
} // namespace dmxc::tools::test
