//===- InspectCodeTest.cpp - dmx-inspect on a device's code ---------------===//
#include "DeviceBundle.h"
#include "InspectSupport.h"

#include "schemas/corsair/text/Assembler.h"

namespace dmxc::tools::test {
namespace {

namespace isa = dmx::corsair;

constexpr const char *kEntry = "code/corsair/corsair-like/kernels.dmxisa";

/// The kernels of device_kernels.txt in a file, with one text replaced.
class InspectCode : public testing::Test {
protected:
  TestDir dir;
  std::string text = readFile(DMXC_DEVICE_KERNELS);

  std::string bundleWith(const std::string &name, const std::string &from = "", const std::string &to = "") {
    std::string changed = text;
    if (!from.empty()) {
      EXPECT_NE(changed.find(from), std::string::npos) << from;
      changed.replace(changed.find(from), from.size(), to);
    }
    writeFile(dir.path(name), deviceBundle(changed));
    return dir.path(name);
  }
  InspectOptions kernels() {
    InspectOptions options;
    options.bundle = bundleWith("m");
    options.what = "kernels";
    return options;
  }
  static std::string entryBytes(const std::string &path) {
    auto bundle = bundle::Bundle::open(path);
    EXPECT_TRUE(bundle);
    return std::string(bundle->find(kEntry)->text());
  }
  static std::string assembled(const std::string &assembly) {
    std::string error;
    auto image = isa::assemble(assembly, isa::builtinMachine(), error);
    EXPECT_TRUE(image) << error << " in\n" << assembly;
    std::vector<uint8_t> bytes = image ? isa::write(*image) : std::vector<uint8_t>();
    return {bytes.begin(), bytes.end()};
  }
  /// A bundle that is sound but for its code object, of which one byte is other than what it was made of.
  std::string damaged(size_t at) {
    std::string path = bundleWith("m"), bytes = readFile(path);
    auto bundle = bundle::Bundle::open(path);
    bytes[bundle->find(kEntry)->offset + at] ^= 1;
    writeFile(dir.path("bad"), bytes);
    return dir.path("bad");
  }
};

TEST_F(InspectCode, DisassemblyAssemblesToTheSameBytes) {
  InspectOptions options = kernels();
  std::string out = inspect(options);
  expectParts(out, {"instructions in code/corsair", "product  quads 0", "count/1  quads 1", "MATMUL st=0x40 stream=1",
                    ".footprint DDR=0x9000 GM=0x8000", ".argument \"total\" state f32",
                    ".launch quad=1 q0=count_main R5=7"});
  size_t at = out.find(std::string("\n; ") + kEntry);
  ASSERT_NE(at, std::string::npos);
  EXPECT_TRUE(assembled(out.substr(at)) == entryBytes(options.bundle));
  // Everything but the tables is a comment or assembly: nothing of the text is lost on the way.
  EXPECT_TRUE(assembled(text) == entryBytes(options.bundle));
}

TEST_F(InspectCode, DataIsTheSameAsText) {
  InspectOptions options = kernels();
  options.json = true;
  nlohmann::ordered_json json = nlohmann::ordered_json::parse(inspect(options)), object = json["objects"][0];
  EXPECT_EQ(json["code"][0]["entry"], kEntry);
  EXPECT_EQ(json["kernels"].size(), 2u);
  EXPECT_FALSE(json.contains(std::string("instructions in ") + kEntry)) << "of the text only";
  EXPECT_EQ(object["target"], "corsair");
  EXPECT_TRUE(assembled(object["disassembly"]) == entryBytes(options.bundle));
  EXPECT_EQ(object["kernels"][0]["footprint"]["IB"], 0x2000);
  EXPECT_EQ(object["kernels"][1]["main"][0]["streams"]["q0"], "count_main");
  std::string code;
  for (const auto &stream : object["streams"])
    for (const auto &line : stream["code"]) {
      code += line["op"].get<std::string>();
      for (const auto &[name, value] : line["fields"].items())
        code += " " + name + "=" + value.get<std::string>();
      code += "\n";
    }
  expectParts(code, {"MATMUL st=0x40 stream=1\n", "EXEC_CPU fn=@next\n", "MARK label=\"count & sum\"\n"});
}

TEST_F(InspectCode, OneKernel) {
  InspectOptions options = kernels();
  options.kernel = "count/1";
  std::string out = inspect(options);
  expectParts(out, {".kernel \"count/1\"", ".stream count_main", ".function next"});
  for (const char *other : {"product", "MATMUL", "load x"})
    EXPECT_EQ(out.find(other), std::string::npos) << other << " in\n" << out;
  assembled(out.substr(out.find("\n; ")));
  options.json = true;
  nlohmann::json json = nlohmann::json::parse(inspect(options));
  EXPECT_EQ(json["kernels"].size(), 1u);
  EXPECT_EQ(json["objects"][0]["kernels"].size(), 1u);
  options.kernel = "prodct";
  ErrorKind kind = ErrorKind::Internal;
  std::string message;
  inspect(options, &kind, &message);
  EXPECT_EQ(kind, ErrorKind::Usage);
  EXPECT_EQ(message, "--kernel prodct: the bundle has no such kernel (did you mean 'product'?)");
}

TEST_F(InspectCode, SummaryCountsInstructions) {
  InspectOptions options = kernels();
  options.what = "summary";
  std::string out = inspect(options);
  expectParts(out, {"instructions in code/corsair/corsair-like/kernels.dmxisa"});
  EXPECT_EQ(out.find("MATMUL"), std::string::npos);
  options.json = true;
  nlohmann::json rows = nlohmann::json::parse(inspect(options))[std::string("instructions in ") + kEntry];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["kernel"], "product");
  EXPECT_EQ(rows[0]["streams"], 3);
  EXPECT_EQ(rows[0]["compute"], 1);
  EXPECT_EQ(rows[0]["move"], 5);
  EXPECT_EQ(rows[1]["SIMD"], 3);
  EXPECT_EQ(rows[1]["CPU"], 1);
  EXPECT_EQ(rows[1]["CPU bytecode"], 2);
}

TEST_F(InspectCode, MemoryHasTheRangesOfKernels) {
  InspectOptions options = kernels();
  options.what = "memory";
  expectParts(inspect(options), {"memory of 'product' in code/corsair", "memory of 'count/1' in code/corsair"});
  options.json = true;
  nlohmann::json rows = nlohmann::json::parse(inspect(options))[std::string("memory of 'count/1' in ") + kEntry];
  ASSERT_EQ(rows.size(), 8u) << "three pieces in DDR, state and resident in GM, three temporaries";
  EXPECT_EQ(rows[3]["kind"], "state");
  EXPECT_EQ(rows[4]["kind"], "resident");
  EXPECT_EQ(rows[4]["name"], "b");
  EXPECT_EQ(rows[5]["begin"], 0x400);
  EXPECT_EQ(rows[5]["bytes"], 128);
  EXPECT_EQ(rows[5]["units"], "1");
  EXPECT_EQ(rows[5]["name"], "count & sum");
  EXPECT_LT(rows[5]["first step"].get<int>(), rows[5]["last step"].get<int>());
}

TEST_F(InspectCode, FormatsWithoutAViewerAreListed) {
  InspectOptions options;
  options.bundle = DMXC_GOLDEN_BUNDLE;
  options.what = "kernels";
  EXPECT_EQ(inspect(options), "code\n"
                              "  entry                          bytes\n"
                              "  code/cpu/x86-64-v2/kernels.so  13280\n"
                              "\n"
                              "kernels\n"
                              "  kernel     tasks  flops  used by\n"
                              "  k0_affine      1  640.0  affine\n");
  options.kernel = "k0_affine";
  expectParts(inspect(options), {"k0_affine"});
}

TEST_F(InspectCode, DiffNamesTheChangedInstruction) {
  InspectOptions options;
  options.bundle = bundleWith("a");
  options.diffWith = bundleWith("b", "EXEC_SIMD fn=add slot=0 d=0x480", "EXEC_SIMD fn=sub slot=0 d=0x480");
  ErrorKind kind = ErrorKind::Internal;
  std::string message, out = inspect(options, &kind, &message);
  EXPECT_EQ(kind, ErrorKind::Mismatch);
  EXPECT_NE(message.find("differ in 1 place"), std::string::npos) << message;
  EXPECT_EQ(out, "stream code/corsair/corsair-like/kernels.dmxisa: count_main at 6\n"
                 "  - EXEC_SIMD fn=add d=0x480 a=0x100 b=0x200\n"
                 "  + EXEC_SIMD fn=sub d=0x480 a=0x100 b=0x200\n");
  options.json = true;
  options.diffWith = bundleWith("b", "quad=1 q0=count_main R5=7", "quad=2 q0=count_main R5=7");
  nlohmann::json json = nlohmann::json::parse(inspect(options, &kind));
  ASSERT_EQ(json["differences"].size(), 2u);
  EXPECT_EQ(json["differences"][0]["what"], "kernel");
  EXPECT_EQ(json["differences"][0]["name"], std::string(kEntry) + ": count/1 main on quad 1");
  EXPECT_EQ(json["differences"][0]["b"], "");
  EXPECT_EQ(json["differences"][1]["b"], ".launch quad=2 q0=count_main R5=7");
  options.json = false;
  options.diffWith = bundleWith("b");
  EXPECT_EQ(inspect(options), "no differences\n");
}

TEST_F(InspectCode, LongDifferencesAreCutAroundThePlace) {
  std::string pieces;
  for (int i = 0; i < 32; ++i)
    pieces += "    .piece GM unit=" + std::to_string(i) + " addr=0x100 begin=[0] extent=[64] strides=[2]\n";
  std::string old = "    .piece GM unit=1 addr=0x100 begin=[0] extent=[64] strides=[2]\n", moved = pieces;
  size_t at = moved.find("unit=30 addr=0x100");
  moved.replace(at, 18, "unit=30 addr=0x140");
  InspectOptions options;
  options.bundle = bundleWith("a", old, pieces);
  options.diffWith = bundleWith("b", old, moved);
  ErrorKind kind = ErrorKind::Internal;
  std::string out = inspect(options, &kind);
  expectParts(out, {"kernel code/corsair/corsair-like/kernels.dmxisa: count/1 argument 2", "unit=30 addr=0x100",
                    "unit=30 addr=0x140", "..."});
  EXPECT_LT(out.size(), 1600u);
}

TEST_F(InspectCode, DamagedCodeIsNamed) {
  InspectOptions options;
  options.bundle = damaged(300);
  options.what = "kernels";
  ErrorKind kind = ErrorKind::Internal;
  std::string message;
  EXPECT_EQ(inspect(options, &kind, &message), "");
  EXPECT_EQ(kind, ErrorKind::Model);
  EXPECT_EQ(message, "'" + options.bundle + "': entry '" + kEntry + "': section MACH fails its checksum");
  options.what = "memory";
  EXPECT_EQ(inspect(options, &kind, &message), "");
  EXPECT_EQ(kind, ErrorKind::Model);
  options.what = "summary";
  expectParts(inspect(options), {"damaged", "section MACH fails its checksum", "inputs and outputs"});
  options.what.clear();
  options.check = true;
  expectParts(inspect(options, &kind), {kEntry});
  EXPECT_EQ(kind, ErrorKind::Mismatch);
  options.check = false;
  options.htmlFile = dir.path("page");
  inspect(options, &kind, &message);
  EXPECT_EQ(kind, ErrorKind::Model);
  EXPECT_FALSE(std::filesystem::exists(dir.path("page")));
  // Beside a sound one it is a difference. The manifests must differ for the code to be looked at.
  options.htmlFile.clear();
  options.diffWith = bundleWith("other", "imm=1", "imm=2");
  expectParts(inspect(options, &kind), {"code code/corsair", "section MACH fails its checksum", "+ sound"});
  EXPECT_EQ(kind, ErrorKind::Mismatch);
}

} // namespace
} // namespace dmxc::tools::test
