//===- CorsairProductTest.cpp - kinds, rows, groups and times of MATMUL ---===//

#include "CorsairHarness.h"

#include "schemas/blockfp/DotProduct.h"

using namespace dmxtest;

namespace {

/// 64 x K by K x N of any kinds, K chunks and N groups as asked; result as bfp32 [64, N].
constexpr const char *kProduct = R"(
.stream all
  CONFIG_GM slot=0 kind=${ak} unit=${abytes}
  MOVE_DDR2GM slot=0 saddr=0x0 daddr=0x0
  MOVE_GM2IB slot=0 saddr=0x0 daddr=0x0
  CONFIG_ST slot=0 kind=${wk} unit=${wbytes}
  MOVE_DDR2ST slot=0 saddr=0x40000 daddr=0x0
  CONFIG_ST slot=1 kind=${wk} unit=${wtile} score=${wtile}
  MOVE_ST2WB slot=1 saddr=0x0 daddr=0x0 cores=${cores}
  CONFIG_AC slot=0 kind=${ak} wkind=${wk} ib_chunk=${atile}
  MARK label="product"
  MATMUL slot=0 imc=${imc} ppr=${ppr} groups=${groups} rows=${rows} row=${row}
  MARK label="rest"
  CONFIG_GM slot=1 kind=bfp32 unit=64 n0=${groups} s0=16384 t0=256 n1=${rows} s1=256 t1=${pitch}
  MOVE_OB2GM slot=1 saddr=0x0 daddr=0x40000
  CONFIG_GM slot=2 kind=bfp32 unit=${count}
  MOVE_GM2DDR slot=2 saddr=0x40000 daddr=0x80000
  HALT
.kernel mm
  .footprint DDR=0x100000 GM=0x100000 ST=0x40000 OB=0x10000 IB=0x12000 WB=0x2100
  .argument a input f32 shape=[64,${k}] form=${ak}
    .piece DDR unit=0 addr=0x0 begin=[0,0] extent=[64,${k}] strides=[${abytes},${atile}]
  .argument b input f32 shape=[${k},${n}] form=${wk}
    .piece DDR unit=0 addr=0x40000 begin=[0,0] extent=[${k},${n}] strides=[${band},${wtile}]
  .argument c output f32 shape=[${rows},${n}] form=bfp32
    .piece DDR unit=0 addr=0x80000 begin=[0,0] extent=[${rows},${n}] strides=[${pitch},4]
  .main
    .launch quad=0 q0=all
)";

struct Case {
  const char *acts, *weights;
  int64_t k, groups, rows, row;
};

int64_t log2Ceil(int64_t value) {
  int64_t level = 0;
  while ((int64_t(1) << level) < value)
    ++level;
  return level;
}

std::string productText(const Case &c) {
  isa::TileShape act = *isa::tileOf(*isa::elemKindFromName(c.acts)),
                 weight = *isa::tileOf(*isa::elemKindFromName(c.weights));
  int64_t chunks = (c.k + act.depth - 1) / act.depth;
  auto str = [](int64_t value) { return std::to_string(value); };
  return fill(kProduct, {{"ak", c.acts},
                         {"wk", c.weights},
                         {"k", str(c.k)},
                         {"n", str(64 * c.groups)},
                         {"groups", str(c.groups)},
                         {"rows", str(c.rows)},
                         {"row", str(c.row)},
                         {"imc", str(chunks)},
                         {"ppr", str(log2Ceil(chunks))},
                         {"abytes", str(chunks * act.bytes())},
                         {"wbytes", str(c.groups * chunks * weight.bytes())},
                         {"atile", str(act.bytes())},
                         {"wtile", str(weight.bytes())},
                         {"band", str(chunks * weight.bytes())},
                         {"cores", str((int64_t(1) << c.groups * chunks) - 1)},
                         {"pitch", str(c.groups * 256)},
                         {"count", str(c.rows * c.groups * 64)}});
}

/// Blocks of one run along K.
struct Run {
  std::vector<uint8_t> exponents;
  std::vector<std::vector<int16_t>> mantissas;
  Run(const std::vector<float> &values, int depth, int precision) {
    for (size_t at = 0; at < values.size(); at += static_cast<size_t>(depth)) {
      std::vector<float> block(static_cast<size_t>(depth));
      std::copy(values.begin() + static_cast<long>(at),
                values.begin() + static_cast<long>(std::min(at + block.size(), values.size())), block.begin());
      mantissas.emplace_back(block.size());
      exponents.push_back(isa::quantizeBlock(block, {precision}, mantissas.back()));
    }
  }
};

std::vector<float> expectedProduct(const Case &c, const std::vector<float> &a, const std::vector<float> &b) {
  isa::TileShape act = *isa::tileOf(*isa::elemKindFromName(c.acts)),
                 weight = *isa::tileOf(*isa::elemKindFromName(c.weights));
  int p = act.format.precision, q = weight.format.precision;
  auto k = static_cast<size_t>(c.k), n = static_cast<size_t>(64 * c.groups);
  std::vector<Run> columns;
  for (size_t j = 0; j < n; ++j) {
    std::vector<float> column;
    for (size_t i = 0; i < k; ++i)
      column.push_back(b[i * n + j]);
    columns.emplace_back(column, weight.depth, q);
  }
  std::vector<float> out;
  for (size_t i = static_cast<size_t>(c.row); i < static_cast<size_t>(c.row + c.rows); ++i) {
    Run row(std::vector<float>(a.begin() + static_cast<long>(i * k), a.begin() + static_cast<long>((i + 1) * k)),
            act.depth, p);
    for (size_t j = 0; j < n; ++j) {
      std::vector<float> partials;
      for (size_t chunk = 0; chunk < row.exponents.size(); ++chunk)
        partials.push_back(
            isa::partialToF32(isa::dotBlocks({row.exponents[chunk], row.mantissas[chunk], p},
                                             {columns[j].exponents[chunk], columns[j].mantissas[chunk], q})));
      out.push_back(isa::roundSum(isa::reducePartials(partials)));
    }
  }
  return out;
}

const nlohmann::json &taskOf(const nlohmann::json &report, const std::string &name) {
  for (const auto &task : report["tasks"])
    if (task["name"] == name)
      return task;
  ADD_FAILURE() << "no task " << name;
  return report["tasks"][0];
}

int64_t clocksOf(const nlohmann::json &task) {
  return task["last_clock"].get<int64_t>() - task["first_clock"].get<int64_t>();
}

} // namespace

TEST(CorsairProduct, EveryKindRowCountAndGroupIsExactAndTakesItsClocks) {
  const Case cases[] = {
      {"bfp16r", "bfp16c", 512, 1, 64, 0},    {"bfp16r", "bfp16c", 512, 2, 1, 0},  {"bfp16r", "bfp16c", 512, 2, 7, 3},
      {"bfp16r", "bfp16c", 64, 1, 64, 0},     {"bfp16r", "bfp16c", 100, 4, 5, 59}, {"bfp16r", "bfp16c", 1024, 1, 2, 62},
      {"bfp12r", "bfp12c", 1024, 2, 33, 1},   {"bfp12r", "bfp12c", 130, 1, 64, 0}, {"bfp24r", "bfp24c", 256, 4, 9, 0},
      {"bfp16r", "bfp12x64c", 320, 3, 17, 2},
  };
  for (const Case &c : cases) {
    SCOPED_TRACE(std::string(c.acts) + " x " + c.weights + ", K " + std::to_string(c.k) + ", rows " +
                 std::to_string(c.rows));
    std::vector<float> a = noise(3, static_cast<size_t>(64 * c.k)),
                       b = noise(4, static_cast<size_t>(c.k * 64 * c.groups));
    CorsairProgram program(productText(c));
    program.set("a", a);
    program.set("b", b);
    nlohmann::json report = program.report();
    EXPECT_EQ(program.get<float>("c"), expectedProduct(c, a, b));
    isa::TileShape act = *isa::tileOf(*isa::elemKindFromName(c.acts));
    int64_t rowClocks = act.format.precision == 16 ? 32 : act.format.precision == 4 ? 4 : 8;
    int64_t chunks = (c.k + act.depth - 1) / act.depth;
    EXPECT_EQ(clocksOf(taskOf(report, "product")), c.rows * rowClocks + 24 + 2 * log2Ceil(chunks));
    const char *kind = act.format.precision == 16 ? "int16" : act.format.precision == 4 ? "int4" : "int8";
    EXPECT_EQ(report["macs"][kind].get<int64_t>(), c.rows * chunks * act.depth * 64 * c.groups);
  }
}

TEST(CorsairProduct, KindsThatDoNotGoTogetherAreRefused) {
  CorsairProgram mixed(productText({"bfp16r", "bfp24c", 64, 1, 4, 0}));
  mixed.expectFault({"format-mismatch", "MATMUL"});
  CorsairProgram swapped(productText({"bfp16c", "bfp16r", 64, 1, 4, 0}));
  swapped.expectFault({"format-mismatch", "an R and a C kind are needed"});
}

TEST(CorsairProduct, NaNAndInfinityStayInTheirRow) {
  Case c{"bfp16r", "bfp16c", 128, 1, 64, 0};
  std::vector<float> a(64 * 128, 1.0f), b(128 * 64, 0.5f);
  a[3 * 128 + 70] = std::numeric_limits<float>::quiet_NaN();
  a[9 * 128] = std::numeric_limits<float>::infinity();
  CorsairProgram program(productText(c));
  program.set("a", a);
  program.set("b", b);
  program.expectRun();
  std::vector<float> out = program.get<float>("c");
  for (int row = 0; row < 64; ++row)
    for (int column = 0; column < 64; ++column)
      if (row == 3 || row == 9)
        EXPECT_TRUE(std::isnan(out[static_cast<size_t>(row * 64 + column)]));
      else
        EXPECT_EQ(out[static_cast<size_t>(row * 64 + column)], 64.0f);
}

// --- resident weights ---------------------------------------------------------

namespace {

/// `rows` activation rows of K = 1024 against 64 * steps columns of weights that lie in ST.
constexpr const char *kResident = R"(
.stream setup
  CONFIG_ST slot=0 kind=bfp16c unit=66560 n0=${steps} s0=66560 t0=66560
  MOVE_DDR2ST slot=0 saddr=0x0 daddr=0x0
  HALT
.stream all
  CONFIG_GM slot=0 kind=bfp16r unit=66560
  MOVE_DDR2GM slot=0 saddr=0x800000 daddr=0x0
  MOVE_GM2IB slot=0 saddr=0x0 daddr=0x0
  CONFIG_AC slot=0 st_step=66560
  MARK label="product"
  MATMUL slot=0 imc=16 ppr=4 rows=${rows} steps=${steps} stream=1
  MARK label="rest"
  CONFIG_GM slot=1 kind=bfp32 unit=64 n0=${rows} s0=256 t0=256
  MOVE_OB2GM slot=1 saddr=0x0 daddr=0x20000
  CONFIG_GM slot=2 kind=bfp32 unit=64 n0=${rows} s0=256 t0=256
  MOVE_GM2DDR slot=2 saddr=0x20000 daddr=0xa00000
  HALT
.kernel mm
  .footprint DDR=0x1000000 GM=0x100000 ST=0x800000 OB=0x10000 IB=0x12000 WB=0x2100
  .argument w const u8 shape=[${wbytes}] form=bfp16c
    .piece DDR unit=0 addr=0x0 begin=[0] extent=[${wbytes}]
  .argument a input f32 shape=[64,1024] form=bfp16r
    .piece DDR unit=0 addr=0x800000 begin=[0,0] extent=[64,1024] strides=[66560,4160]
  .argument c output f32 shape=[${rows},64] form=bfp32
    .piece DDR unit=0 addr=0xa00000 begin=[0,0] extent=[${rows},64] strides=[256,4]
  .init
    .launch quad=0 q0=setup
  .main
    .launch quad=0 q0=all
)";

std::string residentText(int rows, int steps) {
  auto str = [](int value) { return std::to_string(value); };
  return fill(kResident, {{"rows", str(rows)}, {"steps", str(steps)}, {"wbytes", str(66560 * steps)}});
}

} // namespace

TEST(CorsairProduct, OneResidentRowIsBoundBySramAtAnEighthOfPeak) {
  CorsairProgram program(residentText(1, 64));
  nlohmann::json report = program.report();
  const nlohmann::json &task = taskOf(report, "product");
  EXPECT_EQ(task["bound"], "SRAM");
  // 65 clocks for a tile against 8 for a row: the formula, and 8/65 of peak.
  EXPECT_EQ(clocksOf(task), 12 + 65 + 63 * 65 + 8 + 24 + 8);
  double fraction = 64.0 * 8 / static_cast<double>(clocksOf(task));
  EXPECT_NEAR(fraction, 1.0 / 8, 0.005);
}

TEST(CorsairProduct, SixtyFourResidentRowsKeepTheArraysBusy) {
  CorsairProgram program(residentText(64, 16));
  nlohmann::json report = program.report();
  const nlohmann::json &task = taskOf(report, "product");
  EXPECT_EQ(task["bound"], "compute");
  EXPECT_EQ(clocksOf(task), 12 + 65 + 16 * 512 + 24 + 8);
  EXPECT_GE(16.0 * 512 / static_cast<double>(clocksOf(task)), 0.9);
}

TEST(CorsairProduct, TheSecondRunReadsNoWeightFromDdr) {
  CorsairProgram program(residentText(1, 4));
  nlohmann::json first = program.report(), second = program.report();
  EXPECT_EQ(first["read_bytes"]["DDR"], 66560) << "activations only: the weights came with init";
  EXPECT_EQ(second["read_bytes"]["DDR"], 66560);
}
