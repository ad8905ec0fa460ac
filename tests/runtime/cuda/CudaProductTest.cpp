//===- CudaProductTest.cpp - tensor maps and wgmma, on the simulator ----------===//
//
// Where a copy puts bytes is compared with the tables of the PTX manual, by rows and places in them; products with sums
// in f64, of multiples of 1/8, which are exact in any order. Kernels are written here, and so are their descriptors.
//
//===----------------------------------------------------------------------===//

#include "CudaTensor.h"

#include <cmath>
#include <cstring>
#include <ctime>
#include <random>

using namespace dmxtest;
using namespace dmxrt::cuda;

namespace {

/// Copies words of shared memory to where the kernel writes.
std::string dump(uint32_t words) {
  std::string text;
  for (uint32_t i = 0; i < words; i += 128)
    text += "\tmov.b64 %d12, room;\n\tmul.wide.u32 %d13, %r0, 4;\n\tadd.s64 %d12, %d12, %d13;\n\tld.shared.b32 %r9, "
            "[%d12+" +
            number(4 * i) + "];\n\tst.global.b32 [%d30+" + number(4 * i) + "], %r9;\n";
  return text;
}

// Rows of as many bytes as are swizzled: 16 bytes of a row change places by the row's number.
TEST(CudaProduct, WhereLoadsPutBytes) {
  for (uint32_t span : {0u, 32u, 64u, 128u})
    for (uint64_t seed : kSeeds) {
      const uint32_t columns = span ? span / 4 : 32, rows = 2048 / columns / 4 * 2, words = rows * columns;
      BlockTrial run;
      run.seed = seed;
      run.shared = 4 * words;
      run.to.resize(words);
      run.from = {counting(200 * 64)};
      run.maps = {matrixMap(1, MapType::F32, 64, 200, columns, rows, span)};
      LaunchOutcome outcome =
          run(blockKernel(kBegin + expect(4 * words) + load(0, 0, "4, 9") + kWait + dump(words), 1, 1));
      ASSERT_EQ(outcome.fault, "") << span;
      for (uint32_t r = 0; r < rows; ++r)
        for (uint32_t c = 0; c < columns; ++c) {
          uint32_t place = c / 4;
          place ^= span == 128 ? r % 8 : span == 64 ? r / 2 % 4 : span == 32 ? r / 4 % 2 : 0;
          ASSERT_EQ(run.to[r * columns + place * 4 + c % 4], 1000 + (9 + r) * 64 + 4 + c)
              << span << " " << r << " " << c;
        }
    }
}

// Beyond all edges there are zeros, and stores leave them out.
TEST(CudaProduct, EdgesAndStores) {
  const std::string there = load(0, 0, "-3, -2"), back = R"(
	fence.proxy.async.shared::cta;
	bar.sync 0;
	mov.b64 %d10, map1;
	cvta.param.u64 %d11, %d10;
	@%p0 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d11, {%r5, %r6}], [room];
	@%p0 cp.async.bulk.commit_group;
	@%p0 cp.async.bulk.wait_group.read 0;)";
  for (uint64_t seed : kSeeds) {
    BlockTrial run;
    run.seed = seed;
    run.shared = 4 * 128;
    run.to.resize(20 * 12);
    run.filled = true;
    run.from = {counting(20 * 7)};
    run.maps = {matrixMap(1, MapType::S32, 20, 7, 8, 16, 32), matrixMap(0, MapType::S32, 12, 20, 8, 16, 32)};
    LaunchOutcome outcome =
        run(blockKernel(kBegin + expect(512) + there + "\tmov.b32 %r5, 8;\n\tmov.b32 %r6, -1;\n" + kWait + back, 1, 2));
    ASSERT_EQ(outcome.fault, "");
    for (int row = 0; row < 20; ++row)
      for (int column = 0; column < 12; ++column) {
        int boxRow = row + 1, boxColumn = column - 8, r = boxRow - 2, c = boxColumn - 3;
        bool isStored = boxRow < 16 && boxColumn >= 0, isThere = r >= 0 && r < 7 && c >= 0;
        uint32_t wanted = isStored && isThere ? static_cast<uint32_t>(1000 + r * 20 + c) : 0;
        ASSERT_EQ(run.to[static_cast<size_t>(row * 12 + column)], wanted) << row << " " << column;
      }
  }
}

// Five axes, of which one takes each second element.
TEST(CudaProduct, MapsOfManyAxes) {
  BlockTrial run;
  run.shared = 4 * 128;
  run.to.resize(128);
  run.from = {counting(8 * 5 * 4 * 3 * 6)};
  TensorMap map;
  map.type = MapType::U32;
  map.rank = 5;
  map.base = 1;
  const uint64_t sizes[] = {8, 5, 4, 3, 6}, steps[] = {1, 2, 1, 1, 3};
  const uint32_t box[] = {4, 4, 2, 2, 12};
  uint64_t stride = 4;
  for (int i = 0; i < 5; ++i) {
    map.sizes[i] = sizes[i];
    map.strides[i] = stride;
    map.box[i] = box[i];
    map.steps[i] = static_cast<uint32_t>(steps[i]);
    stride *= sizes[i];
  }
  run.maps = {map};
  LaunchOutcome outcome =
      run(blockKernel(kBegin + expect(512) + load(0, 0, "4, 1, 2, 2, 0") + kWait + dump(128), 1, 1));
  ASSERT_EQ(outcome.fault, "");
  for (uint32_t i = 0; i < 128; ++i) {
    uint32_t at[] = {4 + i % 4, 1 + i / 4 % 2 * 2, 2 + i / 8 % 2, 2 + i / 16 % 2, i / 32 * 3};
    bool isThere = at[3] < 3 && at[4] < 6;
    uint32_t index = at[0] + 8 * (at[1] + 5 * (at[2] + 4 * (at[3] + 3 * at[4])));
    EXPECT_EQ(run.to[i], isThere ? 1000 + index : 0) << i;
  }
}

TEST(CudaProduct, PlainBulkCopies) {
  BlockTrial run;
  run.shared = 512;
  run.to.resize(128);
  run.from = {counting(200)};
  LaunchOutcome outcome = run(blockKernel(kBegin + expect(512) + R"(
	add.s64 %d9, %d1, 64;
	mov.b32 %r5, 512;
	@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [room], [%d9], %r5, [bar];)" +
                                              kWait + R"(
	@%p0 cp.async.bulk.global.shared::cta.bulk_group [%d0], [room], %r5;
	@%p0 cp.async.bulk.commit_group;
	@%p0 cp.async.bulk.wait_group 0;)",
                                          1));
  ASSERT_EQ(outcome.fault, "");
  for (uint32_t i = 0; i < 128; ++i)
    EXPECT_EQ(run.to[i], 1016 + i);
}

// Lane 4 r + c of a matrix's register holds row r, columns 2 c and 2 c + 1; transposed the other way round.
TEST(CudaProduct, MatricesOfAWarp) {
  for (bool stores : {false, true})
    for (bool isTransposed : {false, true}) {
      const std::string form = std::string(".sync.aligned.m8n8.x4") + (isTransposed ? ".trans" : "") + ".shared.b16 ";
      std::string body = "\tmov.b64 %d12, room;\n\tmul.wide.u32 %d13, %r0, 16;\n\tadd.s64 %d12, %d12, %d13;\n";
      std::string own = "\tmul.wide.u32 %d15, %r0, 16;\n\tadd.s64 %d14, %d1, %d15;\n\tadd.s64 %d16, %d0, %d15;\n";
      std::string in = "\tld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%d14];\n",
                  put = "\tst.shared.v4.b32 [%d12], {%r10, %r11, %r12, %r13};\n",
                  get = "\tld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%d12];\n", sync = "\tbar.warp.sync -1;\n",
                  out = "\tst.global.v4.b32 [%d16], {%r10, %r11, %r12, %r13};";
      body += own + in;
      body += stores ? "\tstmatrix" + form + "[%d12], {%r10, %r11, %r12, %r13};\n" + sync + get
                     : put + sync + "\tldmatrix" + form + "{%r10, %r11, %r12, %r13}, [%d12];\n";
      BlockTrial run;
      run.threads = 32;
      run.shared = 512;
      run.to.resize(128);
      std::vector<uint16_t> halves(256);
      for (size_t i = 0; i < halves.size(); ++i)
        halves[i] = static_cast<uint16_t>(i * 257);
      run.from = {std::vector<uint32_t>(128)};
      std::memcpy(run.from[0].data(), halves.data(), 512);
      LaunchOutcome outcome = run(blockKernel(body + out, 1, 0, 32));
      ASSERT_EQ(outcome.fault, "");
      std::vector<uint16_t> got(256);
      std::memcpy(got.data(), run.to.data(), 512);
      for (size_t m = 0; m < 4; ++m)
        for (size_t row = 0; row < 8; ++row)
          for (size_t column = 0; column < 8; ++column) {
            size_t line = isTransposed ? column : row, place = isTransposed ? row : column;
            size_t inRegisters = (line * 4 + place / 2) * 8 + m * 2 + place % 2, inMemory = (m * 8 + row) * 8 + column;
            EXPECT_EQ(got[stores ? inMemory : inRegisters], halves[stores ? inRegisters : inMemory]);
          }
    }
}

/// D (64 x columns, f32) = A * B, each way that wgmma takes its operands.
struct Product {
  MapType type = MapType::Bf16;
  uint32_t columns = 32, span = 128, depth = 64; ///< of the swizzle; of k in elements
  bool aInRegisters = false, aIsMnMajor = false, bIsMnMajor = false;
  int signA = 1, signB = 1;

  uint32_t size() const { return type == MapType::Tf32 ? 4 : 2; }
  uint32_t step() const { return 32 / size(); }
  uint32_t width() const { return (span ? span : 16) / size(); } ///< of a box, in elements

  /// Loads of a matrix of `lines` (M or N) into `at`; bytes that that is.
  uint32_t loads(int map, bool isMnMajor, uint32_t lines, uint32_t at, std::string &text) const {
    uint32_t boxes = (isMnMajor ? lines : depth) / width(), bytes = (isMnMajor ? depth : lines) * width() * size();
    for (uint32_t i = 0; i < boxes; ++i)
      text += load(map, at + i * bytes, number(uint64_t(i) * width()) + ", 0");
    return boxes * bytes;
  }
  TensorMap map(uint64_t buffer, bool isMnMajor, uint32_t lines) const {
    return isMnMajor ? matrixMap(buffer, type, lines, depth, width(), depth, span)
                     : matrixMap(buffer, type, depth, lines, width(), lines, span);
  }
  /// The descriptor of a step along k of a matrix at `at`, without its address; `offset`: bytes of the step.
  uint64_t descriptor(bool isMnMajor, uint32_t lines, uint32_t step, uint32_t &offset) const {
    uint64_t leading = 1, stride = 0, pitch = span ? span : 16, k = uint64_t(step) * this->step();
    if (isMnMajor) {
      offset = static_cast<uint32_t>(k * pitch);
      stride = 8 * pitch;      // 8 more along k
      leading = depth * pitch; // the next box
      if (!span)
        std::swap(stride, leading);
    } else {
      offset = static_cast<uint32_t>(k / width() * lines * pitch + k % width() * size());
      stride = 8 * pitch;
      leading = span ? 16 : lines * pitch;
    }
    uint64_t code = span == 128 ? 1 : span == 64 ? 2 : span == 32 ? 3 : 0;
    return code << 62 | (stride >> 4) << 32 | (leading >> 4) << 16;
  }
  std::string kernel() const;
  std::string name() const {
    return "n" + number(columns) + " span " + number(span) + (aIsMnMajor ? " A MN" : "") + (bIsMnMajor ? " B MN" : "") +
           (aInRegisters ? " A in registers" : "");
  }
};

std::string Product::kernel() const {
  std::string text = kBegin, copies, list;
  uint32_t bytesA = aInRegisters ? 0 : loads(0, aIsMnMajor, 64, 0, copies);
  uint32_t placeB = 16384, bytesB = loads(1, bIsMnMajor, columns, placeB, copies);
  text += expect(bytesA + bytesB) + copies + kWait;
  for (uint32_t i = 0; i < columns / 2; ++i)
    list += (i ? ", " : "") + ("%r" + number(60 + i));
  // The thread's row of A and of D: 16 * warp + lane / 4.
  text += "\tshr.u32 %r20, %r0, 5;\n\tand.b32 %r21, %r0, 31;\n\tshr.u32 %r22, %r21, 2;\n\tand.b32 %r23, %r21, 3;\n"
          "\tmad.lo.s32 %r24, %r20, 16, %r22;\n";
  const std::string type = this->type == MapType::Bf16 ? "bf16" : this->type == MapType::F16 ? "f16" : "tf32";
  uint32_t steps = depth / step();
  for (uint32_t s = 0; aInRegisters && s < steps; ++s)
    for (uint32_t i = 0; i < 4; ++i) { // one word: two elements along k, or one of tf32
      uint32_t perWord = 4 / size(), k = s * step() + i / 2 * 4 * perWord;
      text += "\tmad.lo.s32 %r25, %r24, " + number(depth * size()) + ", " +
              number(i % 2 * 8 * depth * size() + k * size()) +
              ";\n\tmad.lo.s32 %r25, %r23, 4, %r25;\n\tcvt.u64.u32 %d20, %r25;\n\tadd.s64 %d20, %d1, "
              "%d20;\n\tld.global.b32 %r" +
              number(30 + 4 * s + i) + ", [%d20];\n";
    }
  text += "\twgmma.fence.sync.aligned;\n";
  for (uint32_t s = 0; s < steps; ++s) {
    uint32_t offsetA = 0, offsetB = 0;
    uint64_t a = descriptor(aIsMnMajor, 64, s, offsetA), b = descriptor(bIsMnMajor, columns, s, offsetB);
    std::string first = "%d21", registers = number(30 + 4 * s);
    if (aInRegisters)
      first = "{%r" + registers + ", %r" + number(31 + 4 * s) + ", %r" + number(32 + 4 * s) + ", %r" +
              number(33 + 4 * s) + "}";
    else
      text += descriptorText("%d21", a, offsetA);
    text += descriptorText("%d22", b, placeB + offsetB) + "\tsetp.ne.b32 %p2, " + (s ? "1" : "0") +
            ", 0;\n\twgmma.mma_async.sync.aligned.m64n" + number(columns) + "k" + number(step()) + ".f32." + type +
            "." + type + " {" + list + "}, " + first + ", %d22, %p2, " + std::to_string(signA) + ", " +
            std::to_string(signB);
    if (this->type != MapType::Tf32)
      text += std::string(aInRegisters ? "" : aIsMnMajor ? ", 1" : ", 0") + (bIsMnMajor ? ", 1" : ", 0");
    text += ";\n";
  }
  text += "\twgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;\n\tmul.lo.s32 %r26, %r24, " +
          number(columns * 4) +
          ";\n\tmad.lo.s32 %r26, %r23, 8, %r26;\n\tcvt.u64.u32 %d23, %r26;\n\tadd.s64 %d23, %d0, %d23;\n";
  for (uint32_t i = 0; i < columns / 2; ++i)
    text += "\tst.global.b32 [%d23+" + number(4 * (i / 2 % 2 * 8 * columns + i / 4 * 8 + i % 2)) + "], %r" +
            number(60 + i) + ";\n";
  return blockKernel(text, 2, 2);
}

uint16_t halfOf(float x, bool isBf16) { // of multiples of 1/8 between -2 and 2: exact
  auto bits = std::bit_cast<uint32_t>(x);
  if (isBf16 || x == 0)
    return static_cast<uint16_t>(bits >> 16);
  return static_cast<uint16_t>((bits >> 16 & 0x8000) | (((bits >> 23 & 255) - 112) << 10) | (bits >> 13 & 1023));
}

LaunchOutcome runProduct(const Product &product, const std::string &text, uint64_t seed, bool compares = true) {
  std::mt19937 random(static_cast<unsigned>(seed + 3));
  auto matrix = [&](uint32_t lines, bool isMnMajor, std::vector<float> &values) {
    values.resize(size_t(lines) * product.depth);
    std::vector<uint32_t> out((values.size() * product.size() + 3) / 4);
    for (uint32_t line = 0; line < lines; ++line)
      for (uint32_t k = 0; k < product.depth; ++k) {
        float x = static_cast<float>(static_cast<int>(random() % 17)) / 8.0f - 1.0f;
        values[size_t(line) * product.depth + k] = x;
        size_t at = isMnMajor ? size_t(k) * lines + line : size_t(line) * product.depth + k;
        uint16_t half = halfOf(x, product.type == MapType::Bf16);
        if (product.size() == 4)
          std::memcpy(&out[at], &x, 4);
        else
          std::memcpy(reinterpret_cast<uint16_t *>(out.data()) + at, &half, 2);
      }
    return out;
  };
  BlockTrial run;
  std::vector<float> a, b;
  run.seed = seed;
  run.shared = 65536;
  run.to.resize(64 * size_t(product.columns));
  run.from = {matrix(64, product.aIsMnMajor, a), matrix(product.columns, product.bIsMnMajor, b)};
  run.maps = {product.map(1, product.aIsMnMajor, 64), product.map(2, product.bIsMnMajor, product.columns)};
  LaunchOutcome outcome = run(text);
  for (size_t row = 0; compares && row < 64; ++row)
    for (size_t column = 0; column < product.columns; ++column) {
      double sum = 0;
      for (size_t k = 0; k < product.depth; ++k)
        sum += double(a[row * product.depth + k]) * b[column * product.depth + k];
      float wanted = static_cast<float>(sum * product.signA * product.signB),
            got = std::bit_cast<float>(run.to[row * product.columns + column]);
      if (outcome.fault.empty() && got != wanted)
        outcome.fault = "row " + number(row) + " column " + number(column) + ": " + std::to_string(got) + ", not " +
                        std::to_string(wanted);
    }
  return outcome;
}

TEST(CudaProduct, EveryLayout) {
  std::vector<Product> all;
  for (uint32_t span : {0u, 32u, 64u, 128u})
    for (int form = 0; form < 6; ++form)
      all.push_back({form % 2 ? MapType::F16 : MapType::Bf16, span == 128 && form % 2 ? 128u : 64u, span, 64, form >= 4,
                     form == 1 || form == 3, form == 2 || form == 3 || form == 5});
  for (uint32_t columns : {8u, 24u, 96u, 240u, 256u})
    all.push_back({MapType::Bf16, columns});
  for (uint32_t span : {0u, 32u, 64u, 128u})
    all.push_back({MapType::Tf32, 48, span, 32, span == 64});
  all.push_back({MapType::Bf16, 16, 128, 64, false, false, false, -1, 1});
  all.push_back({MapType::F16, 16, 128, 64, false, false, false, -1, -1});
  uint64_t seed = 0;
  for (const Product &each : all)
    EXPECT_EQ(runProduct(each, each.kernel(), ++seed).fault, "") << each.name();
}

// What takes longer than other instructions counts as more of them: the bound of a launch is one of seconds.
TEST(CudaProduct, ThoseThatDoNotEnd) {
  Product product;
  product.columns = 128;
  const std::string fence = "\twgmma.fence.sync.aligned;\n", wait = "\twgmma.wait_group.sync.aligned 0;\n";
  std::string text = replaced(product.kernel(), fence, "$again:\n" + fence);
  std::clock_t start = std::clock();
  LaunchOutcome outcome = runProduct(product, replaced(text, wait, wait + "\tbra $again;\n"), 1, /*compares=*/false);
  double seconds = double(std::clock() - start) / CLOCKS_PER_SEC, bound = double(BlockTrial().mostSteps);
  EXPECT_NE(outcome.fault.find("endless: "), std::string::npos) << outcome.fault;
  EXPECT_LT(seconds * double(kMostSteps) / bound, timesCount ? 10 : 100);
  std::printf("%.1f s by default\n", seconds * double(kMostSteps) / bound);
}

TEST(CudaProduct, PlantedFaults) {
  Product product;
  product.columns = 16;
  const std::string good = product.kernel();
  struct Case {
    std::string text, words;
  };
  const std::string commit = "\twgmma.commit_group.sync.aligned;\n", wait = "\twgmma.wait_group.sync.aligned 0;\n";
  const Case cases[] = {
      {replaced(good, "\twgmma.fence.sync.aligned;\n", "\tmov.b32 %r60, 0;\n"), "wgmma-fence: something was put into"},
      {replaced(good, "{%r60, %r61", "{%r61, %r60"), "wgmma-fence: some registers of its accumulator are those of"},
      {replaced(good, wait, ""), "wgmma-fence: it reads a register of a wgmma that was not waited for"},
      {replaced(good, wait, "\twgmma.wait_group.sync.aligned 1;\n"), "wgmma-fence: it reads a register"},
      {replaced(good, commit, ""), "wgmma-fence: it reads a register"},
      {replaced(good, wait, "\tmov.b32 %r60, 0;\n" + wait), "wgmma-fence: it writes a register"},
      {replaced(good, wait, "\tst.shared.b32 [room], %r0;\n" + wait), "smem-race"},
      {replaced(good, kWait, ""), "smem-"},
      {replaced(good, expect(8192 + 2048), expect(8192 + 2064)), "tx-mismatch: no thread of the block can go on"},
      {replaced(good, expect(8192 + 2048), expect(8192)), "tx-mismatch"},
      {replaced(good, "\tfence.mbarrier_init.release.cluster;\n", ""), "mbar-init: nothing tells the async proxy of"},
      {replaced(good, "[room+16384]", "[room+16400]"), "tma-align: the box in shared memory begins at byte 18448"},
      {replaced(good, "[room+16384]", "[room+65536]"), "bounds: the box of a bulk load is bytes"},
      {replaced(good, ", {0, 0}", ", {0, 0, 0}"), "a copy of a tensor of 2 axes has 3 coordinates"},
      {replaced(good, "mov.b64 %d10, map1;\n\tcvta.param.u64 %d11, %d10;", "add.s64 %d11, %d0, 0;"),
       "map-invalid: its tensor map is none of the launch's"},
      {replaced(good, "\tor.b64 %d21, %d21, ", "\tor.b64 %d21, %d21, 562949953421312;\n\tor.b64 %d21, %d21, "),
       "desc-layout"},
      {replaced(good, "4611686293305360384", "9223372311732748288"),
       "desc-layout: its descriptor says a swizzle of 64 bytes, and the bulk load"},
      {replaced(good, "add.s64 %d22, %d22, 16384", "add.s64 %d22, %d22, 20480"), "smem-uninit: it reads byte"},
      {replaced(good, "add.s64 %d22, %d22, 16384", "add.s64 %d22, %d22, 200000"),
       "bounds: its descriptor leads to byte"},
      {replaced(good, "\tsetp.ne.b32 %p2, 0, 0;", "\tsetp.ne.b32 %p2, %r23, 1;"),
       "diverged: threads of a warp do not agree"},
      {replaced(good, "\tsetp.ne.b32 %p2, 0, 0;", "\tsetp.ne.b32 %p2, 1, 0;"), "uninit: it adds to a register"},
      {replaced(good, "\tst.global.b32", "\tst.shared.b32 [room], %r0;\n\tst.global.b32"), "smem-race"},
      {replaced(good, kBegin, "\tsetp.ge.s32 %p5, %r0, 120;\n\t@%p5 bra $end;" + kBegin), "there is no label"},
  };
  for (const Case &each : cases)
    for (uint64_t seed : {1, 2}) {
      std::string got = runProduct(product, each.text, seed, false).fault;
      EXPECT_NE(got.find(each.words), std::string::npos) << "wanted '" << each.words << "' and got '" << got << "'";
    }
}

// Each 16 bytes that it reads have to be laid out as it says, not the first ones of a line alone.
TEST(CudaProduct, LayoutsOfEachRow) {
  Product product;
  product.columns = 16;
  const std::string good = product.kernel();
  ASSERT_EQ(runProduct(product, good, 1).fault, "");
  // Over the second 16 bytes of a line a plain copy, which swizzles nothing.
  std::string other = replaced(good, kWait, kWait + R"(
	bar.sync 0;
	@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 16;
	mov.b32 %r5, 16;
	@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [room+16400], [%d1], %r5, [bar];
$again:
	mbarrier.try_wait.parity.shared.b64 %p1, [bar], 1;
	@!%p1 bra $again;
)");
  std::string got = runProduct(product, other, 1, false).fault;
  EXPECT_EQ(got.substr(0, 12), "desc-layout:") << got;
}

/// Threads write a tile, and one stores it.
TEST(CudaProduct, StoresAndProxies) {
  const std::string good = blockKernel(R"(
	mov.b64 %d12, room;
	mul.wide.u32 %d13, %r0, 4;
	add.s64 %d12, %d12, %d13;
	st.shared.b32 [%d12], %r0;
	fence.proxy.async.shared::cta;
	bar.sync 0;
	setp.eq.s32 %p0, %r0, 0;
	mov.b64 %d10, map0;
	cvta.param.u64 %d11, %d10;
	@!%p0 bra $stored;
	cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%d11, {0, 0}], [room];
	cp.async.bulk.commit_group;
	cp.async.bulk.wait_group.read 0;
$stored:
	bar.sync 0;
	st.shared.b32 [%d12], %r0;)",
                                       0, 1);
  auto fault = [&](const std::string &text, uint64_t seed) {
    BlockTrial run;
    run.seed = seed;
    run.shared = 512;
    run.to.resize(128);
    run.maps = {matrixMap(0, MapType::U32, 8, 16, 8, 16, 0)};
    std::string got = run(text).fault;
    for (uint32_t i = 0; i < 128 && got.empty(); ++i)
      EXPECT_EQ(run.to[i], i);
    return got;
  };
  auto has = [&](const std::string &text, const std::string &words) {
    for (uint64_t seed : kSeeds) {
      std::string got = fault(text, seed);
      EXPECT_NE(got.find(words), std::string::npos) << "wanted '" << words << "' and got '" << got << "'";
    }
  };
  for (uint64_t seed : kSeeds)
    EXPECT_EQ(fault(good, seed), "");
  const std::string fence = "\tfence.proxy.async.shared::cta;\n", wait = "\tcp.async.bulk.wait_group.read 0;\n";
  // The fence may also stand behind the barrier.
  EXPECT_EQ(fault(replaced(replaced(good, fence, ""), "\t@!%p0 bra $stored;", fence + "\t@!%p0 bra $stored;"), 1), "");
  has(replaced(good, fence, ""), "proxy-fence: it reads byte 1024 of shared memory, which warp ");
  has(replaced(good, fence, "\tfence.proxy.async.global;\n"), "proxy-fence");
  has(replaced(good, "\tbar.sync 0;\n\tsetp", "\tsetp"), "smem-");
  has(replaced(good, wait, ""), "smem-race: it writes byte");
  has(replaced(replaced(good, wait, ""), "\tst.shared.b32 [%d12], %r0;\n\tret", "\tret"),
      "exit-pending: thread 0 ends");
  has(replaced(good, "\tcp.async.bulk.commit_group;\n", ""), "smem-race: it writes byte");
  has(replaced(good, "{0, 0}", "{0, 4}"), "unwritten: no thread wrote byte 0 of result 0");
}

} // namespace
