//===- CorsairReshapeTest.cpp - TRANSPOSE, EXTRACT, INSERT ----------------===//

#include "CorsairHarness.h"

using namespace dmxtest;

namespace {

/// i32 x[count] in GM at 0, i64 indices at 0x4000, the result i32 y[out] from 0x8000.
std::string reshapeText(const std::string &body, int64_t count, int64_t out, const std::string &size = "i32") {
  return fill(R"(
.stream s
  CONFIG_GM slot=0 kind=${size} unit=${count}
  MOVE_DDR2GM slot=0
  CONFIG_GM slot=1 kind=i64 unit=16
  MOVE_DDR2GM slot=1 saddr=0x4000 daddr=0x4000
${body}
  CONFIG_GM slot=2 kind=${size} unit=${out}
  MOVE_GM2DDR slot=2 saddr=0x8000 daddr=0x8000
  HALT
.kernel k
  .footprint DDR=0x10000 GM=0x10000 DRE=0x4000
  .argument x input i32 shape=[${count}] form=${size}
    .piece DDR unit=0 addr=0x0 begin=[0] extent=[${count}] strides=[${bytes}]
  .argument i input i64 shape=[16] form=i64
    .piece DDR unit=0 addr=0x4000 begin=[0] extent=[16] strides=[8]
  .argument y output i32 shape=[${out}] form=${size}
    .piece DDR unit=0 addr=0x8000 begin=[0] extent=[${out}] strides=[${bytes}]
  .main
    .launch quad=0 q0=s
)",
              {{"body", body},
               {"count", std::to_string(count)},
               {"out", std::to_string(out)},
               {"size", size},
               {"bytes", std::to_string(isa::elementBytes(*isa::elemKindFromName(size)))}});
}

std::vector<int32_t> run(const std::string &text, const std::vector<int32_t> &x,
                         const std::vector<int64_t> &indices = std::vector<int64_t>(16)) {
  CorsairProgram program(text);
  program.set("x", x);
  program.set("i", indices);
  program.expectRun();
  return program.get<int32_t>("y");
}

std::vector<int32_t> counting(int64_t count) {
  std::vector<int32_t> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<int32_t>(i));
  return values;
}

} // namespace

TEST(CorsairReshape, TransposesBatchesOfEveryElementSize) {
  for (const char *size : {"i8", "i16", "i32", "i64"}) {
    std::string bytes = std::to_string(isa::elementBytes(*isa::elemKindFromName(size)));
    int64_t b = isa::elementBytes(*isa::elemKindFromName(size));
    std::string body = "  TRANSPOSE saddr=0x0 daddr=0x8000 rows=5 cols=7 batch=3 esize=" + bytes +
                       " spitch=" + std::to_string(7 * b) + " dpitch=" + std::to_string(5 * b) +
                       " sbatch=" + std::to_string(35 * b) + " dbatch=" + std::to_string(35 * b);
    std::vector<int32_t> y = run(reshapeText(body, 105, 105, size), counting(105));
    for (int32_t batch = 0; batch < 3; ++batch)
      for (int32_t r = 0; r < 5; ++r)
        for (int32_t c = 0; c < 7; ++c)
          EXPECT_EQ(y[static_cast<size_t>(batch * 35 + c * 5 + r)], batch * 35 + r * 7 + c) << size;
  }
}

TEST(CorsairReshape, TransposeReadsDreAndWantsOneKind) {
  std::string fromDre =
      "  CONFIG_GM slot=3 kind=i32 unit=64\n  MOVE_GM2DRE slot=3 saddr=0x0 daddr=0x100 slices=0x4\n"
      "  TRANSPOSE src=DRE slice=2 saddr=0x100 daddr=0x8000 rows=8 cols=8 esize=4 spitch=32 dpitch=32";
  std::vector<int32_t> y = run(reshapeText(fromDre, 64, 64), counting(64));
  for (int32_t r = 0; r < 8; ++r)
    for (int32_t c = 0; c < 8; ++c)
      EXPECT_EQ(y[static_cast<size_t>(c * 8 + r)], r * 8 + c);
  CorsairProgram mixed(
      reshapeText("  TRANSPOSE saddr=0x3ff0 daddr=0x8000 rows=2 cols=8 esize=4 spitch=32 dpitch=32\n", 4096, 16));
  mixed.expectFault({"format-mismatch", "elements of several kinds"});
}

TEST(CorsairReshape, StridedRulesSliceFlipPadAndTakeBands) {
  // Every second element of rows 1, 3, 5 of [8, 16], from the back.
  std::string slice =
      "  CONFIG_GM slot=3 kind=i32 unit=1 n2=3 n3=8 s2=128 s3=-8 t2=32 t3=4\n  EXTRACT slot=3 saddr=0x7c daddr=0x8000";
  std::vector<int32_t> y = run(reshapeText(slice, 128, 24), counting(128));
  for (int32_t r = 0; r < 3; ++r)
    for (int32_t c = 0; c < 8; ++c)
      EXPECT_EQ(y[static_cast<size_t>(r * 8 + c)], (2 * r + 1) * 16 + 15 - 2 * c);
  // The band of 3 above and on the diagonal of [8, 16]: element (r, r + c).
  std::string band = "  CONFIG_GM slot=3 kind=i32 unit=3 n3=8 s3=68 t3=12\n  EXTRACT slot=3 daddr=0x8000";
  y = run(reshapeText(band, 128, 24), counting(128));
  for (int32_t r = 0; r < 8; ++r)
    for (int32_t c = 0; c < 3; ++c)
      EXPECT_EQ(y[static_cast<size_t>(r * 3 + c)], r * 17 + c);
  // Two tensors side by side: [4, 2] and [4, 3] into [4, 5].
  std::string concat = "  CONFIG_GM slot=3 kind=i32 unit=2 n3=4 s3=8 t3=20\n  INSERT slot=3 daddr=0x8000\n  CONFIG_GM "
                       "slot=4 kind=i32 unit=3 n3=4 s3=12 t3=20\n  INSERT slot=4 saddr=0x20 daddr=0x8008";
  EXPECT_EQ(run(reshapeText(concat, 20, 20), counting(20)),
            (std::vector<int32_t>{0, 1, 8, 9, 10, 2, 3, 11, 12, 13, 4, 5, 14, 15, 16, 6, 7, 17, 18, 19}));
}

TEST(CorsairReshape, GatherAndScatterCheckTheirIndices) {
  std::string gather = "  CONFIG_GM slot=3 kind=i32 unit=4 n0=5 s0=16 t0=16 ikind=i64 ipitch=8 irange=10\n  EXTRACT "
                       "rule=gather slot=3 daddr=0x8000 iaddr=0x4000";
  std::vector<int64_t> indices = {3, -1, 0, 9, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  std::vector<int32_t> y = run(reshapeText(gather, 40, 20), counting(40), indices);
  const int32_t rows[] = {3, 9, 0, 9, 3};
  for (int32_t r = 0; r < 5; ++r)
    for (int32_t c = 0; c < 4; ++c)
      EXPECT_EQ(y[static_cast<size_t>(r * 4 + c)], rows[r] * 4 + c);
  std::string ddr = gather;
  ddr.replace(ddr.find("rule=gather"), 11, "rule=gather src=DDR");
  EXPECT_EQ(run(reshapeText(ddr, 40, 20), counting(40), indices), y) << "an embedding table may stay in DDR";
  CorsairProgram outside(reshapeText(gather, 40, 20));
  outside.set("i", std::vector<int64_t>{3, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  dmxrt::RunOutcome outcome = outside.run();
  EXPECT_EQ(outcome.code, 1) << "DMX_KERNEL_INDEX_OUT_OF_RANGE";
  EXPECT_NE(outcome.detail.find("index-out-of-range"), std::string::npos) << outcome.detail;
  EXPECT_NE(outcome.detail.find("index 10 at place 1 of an axis of 10"), std::string::npos) << outcome.detail;
  std::string scatter = "  CONFIG_SIMD slot=0 dk=i32 n3=20 d3=4\n  EXEC_SIMD fn=fill slot=0 slices=0x1 d=0x8000 "
                        "index=-7\n  CONFIG_GM slot=3 kind=i32 unit=4 n0=3 s0=16 t0=16 ikind=i64 ipitch=8 irange=5\n"
                        "  INSERT rule=scatter slot=3 daddr=0x8000 iaddr=0x4000";
  y = run(reshapeText(scatter, 12, 20), counting(12), {4, 0, -3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(y, (std::vector<int32_t>{4, 5, 6, 7, -7, -7, -7, -7, 8, 9, 10, 11, -7, -7, -7, -7, 0, 1, 2, 3}));
}

TEST(CorsairReshape, WindowsAreIm2col) {
  // Image 5 x 6 x 3, kernel 3 x 3, stride 2, padding 1: 3 x 3 outputs of 27, rows of 32 in y.
  std::string body =
      "  CONFIG_SIMD slot=0 dk=i32 n3=288 d3=4\n  EXEC_SIMD fn=fill slot=0 slices=0x1 d=0x8000\n"
      "  CONFIG_GM slot=3 kind=i32 win_c=3 n0=9 s1=72 s2=12 t0=128 t1=12 win_h=5 win_w=6 win_kh=3 win_kw=3 win_sh=2 "
      "win_sw=2 win_ph=1 win_pw=1 win_ow=3\n"
      "  EXTRACT rule=window slot=3 daddr=0x8000 n=4\n  EXTRACT rule=window slot=3 daddr=0x8200 pix=4 n=5";
  std::vector<int32_t> x = counting(90), y = run(reshapeText(body, 90, 288), x);
  for (int32_t p = 0; p < 9; ++p)
    for (int32_t kh = 0; kh < 3; ++kh)
      for (int32_t kw = 0; kw < 3; ++kw)
        for (int32_t c = 0; c < 3; ++c) {
          int32_t ih = p / 3 * 2 - 1 + kh, iw = p % 3 * 2 - 1 + kw;
          bool inside = ih >= 0 && ih < 5 && iw >= 0 && iw < 6;
          EXPECT_EQ(y[static_cast<size_t>(p * 32 + (kh * 3 + kw) * 3 + c)], inside ? (ih * 6 + iw) * 3 + c : 0);
        }
}
