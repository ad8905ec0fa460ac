//===- CudaSimTest.cpp - the simulator of PTX ---------------------------------===//
//
// Kernels written by hand. What an instruction gives is compared with numbers of the PTX manual's definitions, worked
// out here in another way; each check is met by a kernel that breaks its rule and by none that keeps it.
//
//===----------------------------------------------------------------------===//

#include "runtime/devices/cuda/sim/Launch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

using namespace dmxrt;
using namespace dmxrt::cuda;

namespace {

/// A kernel `k` that has the addresses a, b and to, and registers of all kinds.
std::string kernelText(const std::string &body, int threads = 32) {
  return R"(.version 8.0
.target sm_90a
.address_size 64
.global .align 4 .b8 table[12] = {1, 0, 0, 0, 7};
.visible .entry k(.param .u64 .ptr .align 1 a, .param .u64 b, .param .u64 to)
.reqntid )" +
         std::to_string(threads) +
         R"(
{
	.reg .pred %p<8>;
	.reg .b16 %h<16>;
	.reg .b32 %r<32>;
	.reg .b64 %d<32>;
	.local .align 8 .b8 depot[16];
	ld.param.b64 %d0, [a];
	ld.param.b64 %d1, [b];
	ld.param.b64 %d2, [to];
	mov.u32 %r0, %tid.x;
	mov.u32 %r30, %ctaid.x;
	mov.u32 %r31, %ntid.x;
	mad.lo.s32 %r0, %r30, %r31, %r0;
	mul.wide.u32 %d3, %r0, 8;
	add.s64 %d4, %d0, %d3;
	add.s64 %d5, %d1, %d3;
	add.s64 %d6, %d2, %d3;
)" + body +
         "\n	ret;\n}\n";
}

struct Trial {
  std::vector<uint64_t> a, b, to;
  int threads = 32, blocks = 1;
  uint64_t seed = 0, mostSteps = 100000;
  bool filled = false, checks = true;

  LaunchOutcome operator()(const std::string &text) {
    auto module = loadPtx(text);
    if (!module)
      return {module.error().message, 0, 0, 0};
    size_t count = static_cast<size_t>(threads) * static_cast<size_t>(blocks);
    a.resize(count);
    b.resize(count);
    to.resize(count);
    Memory memory;
    memory.races = checks;
    auto region = [&](MemoryRegion::Kind kind, const void *begin, size_t bytes) -> MemoryRegion & {
      MemoryRegion &made = memory.regions.emplace_back();
      made.kind = kind;
      made.begin = reinterpret_cast<uintptr_t>(begin);
      made.bytes = bytes;
      return made;
    };
    MemoryRegion &result = region(MemoryRegion::Result, to.data(), 8 * count);
    result.writers.assign(8 * count, 0);
    result.readers.assign(8 * count, 0);
    result.filled = filled;
    region(MemoryRegion::Operand, a.data(), 8 * count);
    region(MemoryRegion::Operand, b.data(), 8 * count).number = 1;
    for (const Table &table : (*module)->tables)
      region(MemoryRegion::Table, table.begin, table.bytes);
    Launch launch;
    launch.program = (*module)->kernels.data();
    launch.module = module->get();
    launch.blocks = static_cast<uint32_t>(blocks);
    launch.threads = static_cast<uint32_t>(threads);
    launch.seed = seed;
    launch.mostSteps = mostSteps;
    launch.memory = &memory;
    for (const void *pointer : {a.data(), b.data(), to.data()})
      launch.parameters.push_back(reinterpret_cast<uintptr_t>(pointer));
    return runLaunch(launch);
  }
};

/// Runs `instruction` on %d10 = x and %d11 = y (with their low halves in %r10, %r11 and %h10, %h11) for all pairs of
/// values; what is in %d20, or with a `width` in %r20 or %h20, is compared with what `wanted` gives.
template <typename Wanted>
void expectOf(const std::string &instruction, const std::vector<uint64_t> &values, int width, Wanted wanted) {
  Trial run;
  for (uint64_t x : values)
    for (uint64_t y : values) {
      run.a.push_back(x);
      run.b.push_back(y);
    }
  run.threads = 128;
  run.blocks = static_cast<int>((run.a.size() + 127) / 128);
  std::string store = width == 64   ? "\tst.global.b64 [%d6], %d9;\n"
                      : width == 32 ? "\tcvt.u64.u32 %d9, %r9;\n\tst.global.b64 [%d6], %d9;\n"
                                    : "\tcvt.u64.u16 %d9, %h9;\n\tst.global.b64 [%d6], %d9;\n";
  std::string body = R"(
	ld.global.b64 %d10, [%d4];
	ld.global.b64 %d11, [%d5];
	cvt.u32.u64 %r10, %d10;
	cvt.u32.u64 %r11, %d11;
	cvt.u16.u64 %h10, %d10;
	cvt.u16.u64 %h11, %d11;
	)" + instruction +
                     "\n" + store;
  LaunchOutcome outcome = run(kernelText(body, 128));
  ASSERT_EQ(outcome.fault, "") << instruction;
  for (size_t i = 0; i < values.size() * values.size(); ++i)
    EXPECT_EQ(run.to[i], wanted(run.a[i], run.b[i]))
        << instruction << std::hex << " of " << run.a[i] << ", " << run.b[i];
}

uint64_t bitsOf(float x) { return x != x ? 0x7fffffff : std::bit_cast<uint32_t>(x); }
float floatOf(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }

const std::vector<uint64_t> kIntegers = {0,          1,
                                         2,          31,
                                         32,         33,
                                         63,         0x7f,
                                         0x80,       0xff,
                                         0x7fff,     0x8000,
                                         0x7fffffff, 0x80000000,
                                         0xffffffff, 0x12345678,
                                         1ull << 32, 0x8000000000000000,
                                         ~0ull,      0x123456789abcdef0};
const std::vector<uint64_t> kFloats = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x3f000000, 0x40200000,
                                       0xc0200000, 0x7f800000, 0xff800000, 0x7fc00000, 1,          0x00800000,
                                       0x7f7fffff, 0x4f000000, 0xcf000001, 0x5f000000, 0x3eaaaaab};

TEST(CudaSim, Integers) {
  using U = uint64_t;
  auto u32 = [](U x) { return static_cast<uint32_t>(x); };
  auto s32 = [](U x) { return static_cast<int32_t>(x); };
  expectOf("add.s32 %r9, %r10, %r11;", kIntegers, 32, [&](U x, U y) -> U { return u32(u32(x) + u32(y)); });
  expectOf("sub.s64 %d9, %d10, %d11;", kIntegers, 64, [&](U x, U y) -> U { return x - y; });
  expectOf("mul.lo.s32 %r9, %r10, %r11;", kIntegers, 32, [&](U x, U y) -> U { return u32(u32(x) * u32(y)); });
  expectOf("mul.hi.s32 %r9, %r10, %r11;", kIntegers, 32,
           [&](U x, U y) -> U { return u32(static_cast<U>(int64_t(s32(x)) * s32(y)) >> 32); });
  expectOf("mul.hi.u64 %d9, %d10, %d11;", kIntegers, 64,
           [&](U x, U y) -> U { return static_cast<U>(static_cast<unsigned __int128>(x) * y >> 64); });
  expectOf("mul.wide.s32 %d9, %r10, %r11;", kIntegers, 64,
           [&](U x, U y) -> U { return static_cast<U>(int64_t(s32(x)) * s32(y)); });
  expectOf("mad.wide.u32 %d9, %r10, %r11, %d10;", kIntegers, 64, [&](U x, U y) -> U { return U(u32(x)) * u32(y) + x; });
  expectOf("max.s32 %r9, %r10, %r11;", kIntegers, 32, [&](U x, U y) -> U { return u32(U(std::max(s32(x), s32(y)))); });
  expectOf("min.u32 %r9, %r10, %r11;", kIntegers, 32, [&](U x, U y) -> U { return std::min(u32(x), u32(y)); });
  expectOf("abs.s32 %r9, %r10;", kIntegers, 32, [&](U x, U) -> U { return s32(x) < 0 ? u32(0 - u32(x)) : u32(x); });
  expectOf("rem.s32 %r9, %r10, %r11;", {7, 0xfffffff9, 3, 0xfffffffd, 0x80000000, 0xffffffff}, 32,
           [&](U x, U y) -> U { return u32(U(int64_t(s32(x)) % int64_t(s32(y)))); });
  expectOf("div.s32 %r9, %r10, %r11;", {7, 0xfffffff9, 3, 0xfffffffd, 0xffffffff}, 32,
           [&](U x, U y) -> U { return u32(U(int64_t(s32(x)) / int64_t(s32(y)))); });
  expectOf("div.u64 %d9, %d10, %d11;", {7, 3, ~0ull, 1ull << 63, 5}, 64, [&](U x, U y) -> U { return x / y; });
}

TEST(CudaSim, Bits) {
  using U = uint64_t;
  auto u32 = [](U x) { return static_cast<uint32_t>(x); };
  expectOf("shl.b32 %r9, %r10, %r11;", kIntegers, 32,
           [&](U x, U y) -> U { return u32(y) >= 32 ? 0 : u32(x) * (U(1) << u32(y)) & 0xffffffff; });
  expectOf("shr.s32 %r9, %r10, %r11;", kIntegers, 32, [&](U x, U y) -> U {
    U wide = x & 0x80000000 ? x | 0xffffffff00000000 : u32(x); // by its sign, shifted by at most 32
    return wide >> std::min<U>(u32(y), 32) & 0xffffffff;
  });
  expectOf("shr.u64 %d9, %d10, %r11;", kIntegers, 64, [&](U x, U y) -> U { return u32(y) > 63 ? 0 : x >> u32(y); });
  expectOf("shf.l.wrap.b32 %r9, %r10, %r11, 7;", kIntegers, 32,
           [&](U x, U y) -> U { return (U(u32(y)) << 7 & 0xffffffff) | u32(x) >> 25; });
  expectOf("shf.r.clamp.b32 %r9, %r10, %r11, 40;", kIntegers, 32, [&](U, U y) -> U { return u32(y); });
  // Bytes 3 and 0 of the first, 1 of the second, and the sign of byte 0 of the first.
  expectOf("prmt.b32 %r9, %r10, %r11, 0x8503;", kIntegers, 32, [&](U x, U y) -> U {
    return (x >> 24 & 0xff) | (x & 0xff) << 8 | (y >> 8 & 0xff) << 16 | U(x & 0x80 ? 0xff : 0) << 24;
  });
  expectOf("bfe.u32 %r9, %r10, 4, 9;", kIntegers, 32, [&](U x, U) -> U { return u32(x) >> 4 & 511; });
  expectOf("bfe.s32 %r9, %r10, 4, 9;", kIntegers, 32,
           [&](U x, U) -> U { return u32(U(int64_t(u32(x) >> 4 & 511) - (u32(x) >> 12 & 1 ? 512 : 0))); });
  expectOf("bfi.b32 %r9, %r10, %r11, 8, 5;", kIntegers, 32,
           [&](U x, U y) -> U { return (u32(y) & ~(31u << 8)) | (u32(x) & 31) << 8; });
  expectOf("popc.b32 %r9, %r10;", kIntegers, 32, [&](U x, U) -> U { return U(__builtin_popcount(u32(x))); });
  expectOf("clz.b64 %r9, %d10;", kIntegers, 32, [&](U x, U) -> U { return x ? U(__builtin_clzll(x)) : 64; });
  expectOf("not.b16 %h9, %h10;", kIntegers, 16, [&](U x, U) -> U { return ~x & 0xffff; });
  expectOf("lop3.b32 %r9, %r10, %r11, %r10, 0x3c;", kIntegers, 32, [&](U x, U y) -> U { return u32(x ^ y); });
  expectOf("mov.b32 {%h8, %h9}, %r10;", kIntegers, 16, [&](U x, U) -> U { return x >> 16 & 0xffff; });
  expectOf("mov.b64 %d9, {%r11, %r10};", kIntegers, 64, [&](U x, U y) -> U { return u32(y) | x << 32; });
}

TEST(CudaSim, Floats) {
  using U = uint64_t;
  auto of2 = [](float (*f)(float, float)) { return [f](U x, U y) -> U { return bitsOf(f(floatOf(x), floatOf(y))); }; };
  expectOf("add.rn.f32 %r9, %r10, %r11;", kFloats, 32, of2([](float x, float y) { return x + y; }));
  expectOf("mul.rn.f32 %r9, %r10, %r11;", kFloats, 32, of2([](float x, float y) { return x * y; }));
  expectOf("div.rn.f32 %r9, %r10, %r11;", kFloats, 32, of2([](float x, float y) { return x / y; }));
  // A product in f64 is exact, and so is its sum with these.
  expectOf("fma.rn.f32 %r9, %r10, %r11, 0f3f800000;", {0x3f800000, 0x3f800001, 0xbf800001, 0x40490fdb, 0xc0000000}, 32,
           of2([](float x, float y) { return static_cast<float>(double(x) * y + 1.0); }));
  expectOf("sqrt.rn.f32 %r9, %r10;", kFloats, 32, [](U x, U) -> U { return bitsOf(std::sqrt(floatOf(x))); });
  // Of a number and a NaN the number; zeros by their signs.
  auto larger = [](U x, U y) -> U {
    float a = floatOf(x), b = floatOf(y);
    if (a == 0 && b == 0)
      return x & y & 0x80000000;
    return std::isnan(a) ? bitsOf(b) : std::isnan(b) || a > b ? x & 0xffffffff : y & 0xffffffff;
  };
  expectOf("max.f32 %r9, %r10, %r11;", kFloats, 32, larger);
  expectOf("max.NaN.f32 %r9, %r10, %r11;", kFloats, 32,
           [&](U x, U y) -> U { return std::isnan(floatOf(x)) || std::isnan(floatOf(y)) ? 0x7fffffff : larger(x, y); });
  expectOf("copysign.f32 %r9, %r10, %r11;", kFloats, 32,
           [](U x, U y) -> U { return (x & 0x80000000) | (y & 0x7fffffff); });
  expectOf("setp.ltu.f32 %p1, %r10, %r11;\n\tselp.b32 %r9, 5, 9, %p1;", kFloats, 32,
           [](U x, U y) -> U { return !(floatOf(x) >= floatOf(y)) ? 5 : 9; });
  expectOf("setp.neu.f32 %p1, %r10, %r11;\n\tselp.b32 %r9, 5, 9, %p1;", kFloats, 32,
           [](U x, U y) -> U { return floatOf(x) != floatOf(y) ? 5 : 9; });
  expectOf("setp.ne.f32 %p1, %r10, %r11;\n\tselp.b32 %r9, 5, 9, %p1;", kFloats, 32,
           [](U x, U y) -> U { return floatOf(x) < floatOf(y) || floatOf(x) > floatOf(y) ? 5 : 9; });
  expectOf("testp.subnormal.f32 %p1, %r10;\n\tselp.b32 %r9, 1, 0, %p1;", kFloats, 32,
           [](U x, U) -> U { return (x & 0x7fffffff) && (x & 0x7fffffff) < 0x00800000; });
}

TEST(CudaSim, Conversions) {
  using U = uint64_t;
  auto s32 = [](double x) -> U {
    return std::isnan(x) ? 0 : U(uint32_t(int32_t(std::clamp(x, -2147483648.0, 2147483647.0))));
  };
  expectOf("cvt.rzi.s32.f32 %r9, %r10;", kFloats, 32, [&](U x, U) { return s32(std::trunc(double(floatOf(x)))); });
  expectOf("cvt.rni.s32.f32 %r9, %r10;", kFloats, 32, [&](U x, U) { return s32(std::nearbyint(double(floatOf(x)))); });
  expectOf("cvt.rzi.u64.f32 %d9, %r10;", kFloats, 64, [](U x, U) -> U {
    float f = floatOf(x);
    return std::isnan(f) ? 1ull << 63 : f <= 0 ? 0 : f >= 18446744073709551616.0f ? ~0ull : U(f);
  });
  expectOf("cvt.rmi.f32.f32 %r9, %r10;", kFloats, 32, [](U x, U) -> U { return bitsOf(std::floor(floatOf(x))); });
  expectOf("cvt.rn.f32.s32 %r9, %r10;", kIntegers, 32,
           [](U x, U) -> U { return bitsOf(static_cast<float>(static_cast<int32_t>(x))); });
  expectOf("cvt.rn.f32.u64 %r9, %d10;", kIntegers, 32, [](U x, U) -> U { return bitsOf(static_cast<float>(x)); });
  expectOf("cvt.s64.s8 %d9, %h10;", kIntegers, 64, [](U x, U) -> U { return U(int64_t(int8_t(x))); });
  expectOf("cvt.u16.u8 %h9, %r10;", kIntegers, 16, [](U x, U) -> U { return x & 0xff; });
  expectOf("cvt.sat.s8.s32 %h9, %r10;", kIntegers, 16,
           [](U x, U) -> U { return U(uint16_t(int16_t(std::clamp(static_cast<int32_t>(x), -128, 127)))); });
  // Every f16 there is, there and back: subnormals, infinities, both zeros.
  for (uint64_t high : {0x0000u, 0x0300u, 0x0400u, 0x3c00u, 0x7b00u, 0x8000u, 0xfb00u}) {
    std::vector<uint64_t> halves;
    for (uint64_t low = 0; low < 8; ++low)
      halves.push_back(high + low * 37 % 256);
    expectOf("cvt.f32.f16 %r12, %h10;\n\tcvt.rn.f16.f32 %h9, %r12;", halves, 16, [](U x, U) -> U { return x; });
  }
  // Half way between two: to the even one; beyond the largest: infinity.
  expectOf("cvt.rn.f16.f32 %h9, %r10;",
           {bitsOf(2049), bitsOf(2051), bitsOf(65519), bitsOf(65520), bitsOf(1.0f / (1 << 25))}, 16, [](U x, U) -> U {
             float f = floatOf(x);
             return f == 2049 ? 0x6800 : f == 2051 ? 0x6802 : f == 65519 ? 0x7bff : f == 65520 ? 0x7c00 : 0;
           });
}

// Lanes part and meet again: each thread adds up as many numbers as its own says.
TEST(CudaSim, Divergence) {
  for (uint64_t seed : {0, 1, 2, 3}) {
    Trial run;
    run.seed = seed;
    run.blocks = 5;
    run.threads = 96;
    LaunchOutcome outcome = run(kernelText(R"(
	and.b32 %r1, %r0, 15;
	mov.b32 %r2, 0;
	mov.b32 %r3, 0;
	setp.eq.s32 %p1, %r1, 0;
	@%p1 bra $done;
$loop:
	add.s32 %r3, %r3, 1;
	and.b32 %r4, %r3, 1;
	setp.ne.s32 %p2, %r4, 0;
	@!%p2 bra $even;
	add.s32 %r2, %r2, %r3;
	bra.uni $next;
$even:
	add.s32 %r2, %r2, 100;
$next:
	setp.lt.s32 %p3, %r3, %r1;
	@%p3 bra $loop;
$done:
	cvt.u64.u32 %d9, %r2;
	st.global.b64 [%d6], %d9;)",
                                           96));
    ASSERT_EQ(outcome.fault, "");
    for (size_t i = 0; i < run.to.size(); ++i) {
      uint64_t wanted = 0;
      for (uint64_t n = 1; n <= i % 16; ++n)
        wanted += n % 2 ? n : 100;
      EXPECT_EQ(run.to[i], wanted) << i;
    }
  }
}

// Labels are their scope's, as assembly that is put in twice needs them; a branch may leave its scope.
TEST(CudaSim, LabelsOfScopes) {
  Trial run;
  const std::string piece = R"(
	{
	.reg .pred p;
again:
	add.s32 %r1, %r1, 1;
	setp.ge.s32 p, %r1, %r2;
	@p bra.uni done;
	bra.uni again;
done:
	}
	add.s32 %r2, %r2, 3;)";
  LaunchOutcome outcome = run(kernelText(
      "\tmov.b32 %r1, 0;\n\tmov.b32 %r2, 4;" + piece + piece +
      "\n\t{\n\tbra $out;\n\t}\n\tmov.b32 %r1, 0;\n$out:\n\tcvt.u64.u32 %d9, %r1;\n\tst.global.b64 [%d6], %d9;"));
  ASSERT_EQ(outcome.fault, "");
  EXPECT_EQ(run.to[0], 7u);
}

TEST(CudaSim, TablesAndLocalMemory) {
  Trial run;
  LaunchOutcome outcome = run(kernelText(R"(
	mov.b64 %d10, table;
	ld.global.nc.b32 %r1, [%d10+4];
	mov.b64 %d11, depot;
	cvta.local.u64 %d12, %d11;
	st.local.b32 [%d11+8], %r0;
	ld.b32 %r2, [%d12+8];
	add.s32 %r3, %r1, %r2;
	cvt.u64.u32 %d9, %r3;
	st.global.b64 [%d6], %d9;)"));
  ASSERT_EQ(outcome.fault, "");
  for (size_t i = 0; i < run.to.size(); ++i)
    EXPECT_EQ(run.to[i], i + 7);
}

void expectFault(const std::string &body, const std::string &words, bool filled = false) {
  Trial run;
  run.filled = filled;
  LaunchOutcome outcome = run(kernelText(body));
  EXPECT_NE(outcome.fault.find(words), std::string::npos) << body << "\ngave '" << outcome.fault << "'";
  if (outcome.fault.find("unwritten") == std::string::npos)
    EXPECT_GT(outcome.line, 22u) << body;
}

TEST(CudaSim, Checks) {
  const std::string good = "\tst.global.b64 [%d6], %d3;\n";
  EXPECT_EQ(Trial()(kernelText(good)).fault, "");
  expectFault("\tst.global.b64 [%d6+8], %d3;",
              "bounds: it writes 8 bytes outside of what the kernel has: byte 256 of result 0");
  expectFault("\tst.global.b64 [%d4], %d3;\n" + good, "bounds: it writes byte 0 of operand 0, which it may only read");
  expectFault("\tld.global.b64 %d9, [%d4+-8];\n" + good, "bounds: it reads 8 bytes outside");
  expectFault("\tld.global.b64 %d9, [%d4+4];\n" + good,
              "align: it reads 8 bytes at an address that is no multiple of 8");
  expectFault("\tadd.s64 %d9, %d9, 1;\n" + good, "uninit: it reads a register");
  expectFault("\t@%p1 add.s64 %d9, %d3, 1;\n" + good, "uninit: its guard is a predicate");
  expectFault("\tld.global.b64 %d9, [%d6];\n" + good, "uninit: it reads byte 0 of result 0, which nobody wrote");
  expectFault("\tst.global.b64 [%d2], %d3;\n" + good, "race: it writes byte 0 of result 0, which thread 0 wrote", true);
  expectFault("\tld.global.b64 %d9, [%d2];\n" + good, "race: it writes byte 0 of result 0, which other threads read",
              true);
  expectFault("\tst.global.b64 [%d6], %d3;\n\tld.global.b64 %d9, [%d2];",
              "race: it reads byte 0 of result 0, which thread 0 wrote");
  expectFault("\tld.global.nc.b64 %d9, [%d6];\n" + good, "constant: it reads result 0", true);
  expectFault("\tst.global.b32 [%d6], %r0;", "unwritten: no thread wrote byte 4 of result 0");
  expectFault("$again:\n\tbra $again;",
              "endless: the launch has done 100000 instructions, and none of its warps ended");
}

TEST(CudaSim, RefusesWhatItDoesNotKnow) {
  struct Case {
    const char *body, *words;
  };
  const Case cases[] = {
      {"\tadd.rz.f32 %r1, %r0, %r0;", "kernel 'k', line 24: 'add.rz.f32' is no instruction that is known here"},
      {"\tadd.ftz.f32 %r1, %r0, %r0;", "'add.ftz.f32' is no instruction"},
      {"\tfma.rn.ftz.f32 %r1, %r0, %r0, %r0;", "'fma.rn.ftz.f32' is no instruction"},
      {"\tld.global.volatile.b32 %r1, [%d4];", "is no instruction"},
      {"\tadd.s64 %r1, %d0, %d0;", "'add.s64' writes %r1, a register of 32 bits"},
      {"\tadd.s32 %r1, %d0, %r0;", "'add.s32' reads %d0, a register of 64 bits"},
      {"\tadd.s32 %r1, %r0;", "'add.s32' has 2 operands, not 3"},
      {"\tadd.s32 %r1, %r0, %r40;", "'%r40' is no special register"},
      {"\tadd.s32 %p1, %r0, %r0;", "writes %p1"},
      {"\tbra $nowhere;", "there is no label '$nowhere'"},
      {"\t@%r1 bra $x;\n$x:", "'%r1' is no predicate register"},
      {"\tld.param.b64 %d1, [c];", "there is no parameter 'c'"},
      {"\tld.param.b32 %r1, [b];", "a parameter of another width"},
      {"\tmov.b64 %d1, elsewhere;", "there is no variable 'elsewhere'"},
      {"\tcall f;", "'call' is no instruction"},
      {"\tmov.u32 %r1, %clock;", "'%clock' is no special register"},
      {"\tadd.s32 %r1, %r0, 5", "stands where ; is wanted"},
      {"\t$x: $x:", "label '$x' stands at two places"},
      {"\t{\n$inner:\n\tbra $inner;\n\t}\n\tbra $inner;", "line 28: there is no label '$inner'"},
      {"\tmbarrier.init.shared::cta.b65 [%d1], 1;", "'mbarrier.init.shared::cta.b65' is no instruction"},
      {"\t.shared .align 3 .b8 room[4];", "an alignment of 3 is no power of two"},
      {"\tmov.b32 %r1, 0f3f8;", "stands where"},
  };
  for (const Case &each : cases) {
    auto module = loadPtx(kernelText(each.body));
    ASSERT_FALSE(module) << each.body;
    EXPECT_NE(module.error().message.find(each.words), std::string::npos)
        << each.body << "\ngave " << module.error().message;
    EXPECT_EQ(module.error().status, DMX_STATUS_INVALID_BUNDLE);
  }
}

// Damaged texts end in an error or in a run that ends.
TEST(CudaSim, DamagedTexts) {
  const std::string text = kernelText(R"(
	setp.gt.s32 %p1, %r0, 3;
	@%p1 bra $b;
	mov.b32 {%h1, %h2}, %r0;
	mov.b64 %d10, table;
	ld.global.b32 %r1, [%d10+4];
$b:
	st.global.b64 [%d6], %d3;)");
  std::mt19937 random(7);
  int refused = 0, ran = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string damaged = text;
    for (int n = 1 + static_cast<int>(random() % 3); n > 0; --n) {
      size_t at = random() % damaged.size();
      switch (random() % 3) {
      case 0:
        damaged[at] = static_cast<char>(random() % 256);
        break;
      case 1:
        damaged.erase(at, 1 + random() % 8);
        break;
      default:
        damaged.insert(at, damaged.substr(random() % damaged.size(), random() % 12));
      }
    }
    auto module = loadPtx(damaged);
    if (!module) {
      EXPECT_NE(module.error().message.find("line"), std::string::npos) << module.error().message;
      ++refused;
    } else if ((*module)->kernels.size() == 1 &&
               (*module)->kernels[0].parameterBytes == std::vector<uint8_t>{8, 8, 8}) {
      Trial run;
      run.mostSteps = 10000;
      static_cast<void>(run(damaged));
      ++ran;
    }
  }
  EXPECT_GT(refused, 300);
  EXPECT_GT(ran, 10);
}

} // namespace
